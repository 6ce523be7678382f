"""UNKNOWN as a state of its own: kept, reported, left alone, and settled by a person."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from harness.experiment.handle import Experiment
from harness.world.coordinator.facts import read_facts
from harness.world.services.receiver import Receiver, read_notifications
from harness.world.wire_faults import Fault
from scenarios.capabilities import notify, offers
from scenarios.capability_rules import capability_scenario
from scenarios.reference import control
from scenarios.reference_books import read_books

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.workload import Command

LOSES_REPLY = partial(Receiver, honours_keys=False, faults=(Fault("reply_lost", "notify", "n1"),))
UNKNOWN = capability_scenario("unknown", offers(notify("n1")), (LOSES_REPLY,))


def answer(verdict: str) -> Command:
    """Return what a person answers."""
    return control("person", "reconcile", {"command_id": "n1", "answer": verdict})


def settled(worker_dir: Path) -> list[tuple[str, str]]:
    """Read what was settled, and how."""
    with closing(sqlite3.connect(worker_dir / "worker.db")) as database:
        return list(database.execute("SELECT command_id, answer FROM reconciliations"))


def states(worker_dir: Path) -> dict[str, str]:
    """Read the states of the attempts."""
    return {row.command_id: row.state for row in read_books(worker_dir).attempts}


@pytest.mark.requirement("UNK-03", "UNK-05", "INV-10")
def test_an_unknown_outcome_survives_restarts_and_causes_nothing() -> None:
    """Three restarts add no event, no call and no decision."""
    with Experiment(UNKNOWN) as x:
        for _ in range(4):
            life = x.start()
            assert life.run_until_quiet().quiet
            life.kill()
            assert states(x.worker_dir) == {"n1": "UNKNOWN"}
            assert len(read_notifications(x.world_dir)) == 1
        assert [each.kind for each in read_facts(x.world_dir).events] == ["unknown"]
        assert not read_books(x.worker_dir).decisions
        x.settle()
        x.check().raise_if_not_held()


@pytest.mark.requirement("UNK-06")
@pytest.mark.parametrize(
    "place",
    [
        "order.save.before",
        "order.save.mid",
        "order.commit.before",
        "order.apply.before",
        "order.apply.after",
    ],
)
def test_an_answer_is_saved_before_it_acts(place: str) -> None:
    """Wherever the worker is killed, the answer takes effect once and is reported."""
    with Experiment(UNKNOWN) as x:
        life = x.start()
        life.run_until_quiet()
        x.offer(answer("confirmed_not_done"))
        assert life.run_until(f"{place}[order=control.reconcile]").hit is not None
        life.kill()
        saved = place.startswith("order.apply")
        assert settled(x.worker_dir) == ([("n1", "confirmed_not_done")] if saved else [])
        x.settle()
        assert settled(x.worker_dir) == [("n1", "confirmed_not_done")]
        (told,) = (e for e in read_facts(x.world_dir).events if e.command_id == "person")
        assert told.body["settled"] == "confirmed_not_done"
        assert len(read_notifications(x.world_dir)) == 1


@pytest.mark.requirement("UNK-07")
def test_a_late_answer_is_evidence_and_no_second_result() -> None:
    """The late answer is kept; the attempt stays as it was, also after a restart."""
    with Experiment(UNKNOWN) as x:
        life = x.start()
        life.run_until_quiet()
        x.offer(control("late", "evidence", {"command_id": "n1", "said": {"sent": True}}))
        life.run_until_quiet()
        life.kill()
        x.settle()
        assert states(x.worker_dir)["n1"] == "UNKNOWN"
        ends = [e.kind for e in read_facts(x.world_dir).events if e.command_id == "n1"]
        assert ends == ["unknown"]
        with closing(sqlite3.connect(x.worker_dir / "worker.db")) as database:
            assert list(database.execute("SELECT command_id, said FROM late_answers")) == [
                ("n1", '{"sent":true}')
            ]
