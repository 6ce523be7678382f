"""Known-bad workers that the smallest tier does not catch are pinned with the tier that does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.explore.session import run_session
from harness.explore.session_request import SessionRequest
from harness.model.workload import Command, Workload
from harness.oracles.effects import NoEffectTwice
from harness.points import crash_point
from harness.record.outcome import ExitCode
from harness.scenario import Scenario, TierName, broken_by
from harness.world.ledger import EffectLedger

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.site import Site


def _trusts_what_it_began(site: Site) -> None:
    """Look outside for what one crash left in doubt, and forget that after a second."""
    ledger = EffectLedger(site.world_dir)
    begun = site.worker_dir / "begun"
    in_doubt = begun.read_text(encoding="utf-8") if begun.exists() else ""
    for order in site.offered:
        finished = site.worker_dir / f"finished-{order.command_id}"
        if finished.exists():
            continue
        done = (
            {effect.key for effect in ledger.effects()} if in_doubt == order.command_id else set()
        )
        begun.write_text(order.command_id if in_doubt != order.command_id else "", encoding="utf-8")
        crash_point("order.charge.before")
        if order.command_id not in done:
            ledger.record("charge", order.command_id)
        crash_point("order.charge.after")
        finished.touch()


FORGETS = Scenario(
    "forgets",
    _trusts_what_it_began,
    lambda _: Workload((Command("o1"),), Command("o2")),
    (NoEffectTwice(),),
)


@pytest.mark.parametrize(
    ("tier", "code"), [("smoke", ExitCode.BROKEN), ("full", ExitCode.AS_PINNED)]
)
def test_a_fault_that_needs_a_second_crash_can_be_pinned(
    tmp_path: Path, tier: TierName, code: ExitCode
) -> None:
    """A run of the smallest tier runs what is pinned with a larger one in that one."""
    scenario = replace(FORGETS, pin=broken_by("no-effect-twice", tier=tier))
    done = run_session(SessionRequest((scenario,), tmp_path, out=tmp_path / "runs"))
    assert done.exit_code is code
    assert done.record is not None
    (row,) = done.record["scenarios"]
    assert row["pin"] == str(scenario.pin)
    assert bool(row["mismatch"]) == (code is ExitCode.BROKEN)
    caught = [e["schedule"] for e in done.record["experiments"] if e["verdict"] == "broken"]
    assert all(schedule.count("kill") == 2 for schedule in caught)
