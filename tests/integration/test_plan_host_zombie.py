"""A slow commit of one incarnation while another works on: the zombie wakes up last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment
from harness.world.ledger import EffectLedger
from scenarios.plan_host.fault_plan import PlannedFaults
from scenarios.plan_host.host import PlanHost
from scenarios.plan_host.reference import DIAMOND, plan_host, read_books
from scenarios.plan_host.requested_graphs import requesting, run

if TYPE_CHECKING:
    from pathlib import Path

    from harness.oracles.mailbox.worker_state import SnapshotRow

HOST = plan_host("zombie-host", PlanHost, requesting(run("r1", DIAMOND)), PlannedFaults())


def stored(worker_dir: Path) -> SnapshotRow:
    """Return the snapshot that is durable now."""
    (snapshot,) = read_books(worker_dir).snapshots
    return snapshot


@pytest.mark.requirement("COM-25", "COM-27", "ORC-10", "INV-7", "CP-E1")
def test_a_commit_frozen_before_its_save_is_refused_when_it_wakes() -> None:
    """The successor has ended the run, and the old 3 does not land.

    The store refuses the zombie's snapshot, and the host, which loads again, finds the run ended
    and stops. What no number can undo are effects the zombie had before it asked.
    """
    with Experiment(HOST) as x:
        a = x.start()
        assert a.run_until("snapshot.accept.after#3").hit is not None
        b = x.start(identity="same")
        assert b.run_until_quiet().quiet
        ended = stored(x.worker_dir)
        assert ended.status == "completed"
        a.resume()
        x.settle()
        assert stored(x.worker_dir) == ended
        x.check().raise_if_not_held()


@pytest.mark.requirement("COM-25", "STO-12", "STO-17", "INV-7", "CP-E2")
def test_a_save_frozen_inside_its_transaction_holds_the_other_up() -> None:
    """The successor gives the run up, and the stored number does not go back.

    The zombie holds the write lock of the database. The successor's commits fail, it gives up
    without harm, and the woken zombie finishes; one that was killed instead is rolled back.
    """
    with Experiment(HOST) as x:
        a = x.start()
        assert a.run_until("snapshot.save.mid#2").hit is not None
        before = stored(x.worker_dir)
        b = x.start(identity="same")
        assert b.run_until_quiet().quiet
        assert stored(x.worker_dir) == before
        a.resume()
        x.settle()
        after = stored(x.worker_dir)
        assert (after.status, set(after.done)) == ("completed", set("abcde"))
        assert after.seq > before.seq


@pytest.mark.requirement("ORC-10")
def test_what_a_zombie_does_again_is_seen_in_the_world() -> None:
    """Numbers fence the zombie's commits and not its effects; the ledger shows the gap."""
    with Experiment(HOST) as x:
        a = x.start()
        assert a.run_until("task.run.before#4").hit is not None
        x.start(identity="same").run_until_quiet()
        ended = stored(x.worker_dir)
        before = EffectLedger(x.world_dir).effects()
        a.resume()
        x.settle()
        assert stored(x.worker_dir) == ended
        (late,) = EffectLedger(x.world_dir).effects()[len(before) :]
        assert late.token == "1"
        assert late.key in {effect.key for effect in before}
