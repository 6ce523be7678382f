"""Oracles of admission, drain, capacity and cancel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, facts

from harness.model.oracle import OracleStatus
from harness.oracles.mailbox.admission import CancelHonoured, DrainingAdmitsNothing, WithinCapacity
from harness.oracles.mailbox.worker_state import AttemptRow, InboxRow, WorkerState

if TYPE_CHECKING:
    from pathlib import Path

    from harness.model.workload import Command


def open_books(*command_ids: str, state: str = "RUNNING") -> WorkerState:
    """Return books with an attempt of each command."""
    return WorkerState(
        attempts=tuple(
            AttemptRow(f"a-{name}", name, "work/1", state, has_result=state == "SUCCEEDED")
            for name in command_ids
        )
    )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an experiment with three commands, in which nothing happened."""
    scene = Scene(tmp_path, commands=("c1", "c2", "c3"))
    scene.put_facts(facts())
    return scene


def takes_room(row: AttemptRow) -> bool:
    """Tell apart what takes no room."""
    return row.command_id != "c3"


@pytest.mark.requirement("ADM-02", "INV-15")
def test_attempts_that_are_over_or_take_no_room_fit_in(scene: Scene) -> None:
    """Only attempts that are open and take room are counted."""
    fits = open_books("c1", "c3").attempts
    scene.put_books(WorkerState(attempts=(*fits, *open_books("c2", state="SUCCEEDED").attempts)))
    finding = WithinCapacity(scene.read_books, 1, takes_room).check(scene.evidence())
    assert finding.answer is OracleStatus.HOLDS


@pytest.mark.requirement("INV-15", "REC-18")
@pytest.mark.parametrize("image", range(4))
def test_more_open_attempts_than_there_is_room_for(scene: Scene, image: int) -> None:
    """One open attempt too many is found in any image."""
    scene.put_books(open_books("c1", "c2"), scene.every[image])
    finding = WithinCapacity(scene.read_books, 1, takes_room).check(scene.evidence())
    assert finding.answer is OracleStatus.BROKEN
    (fact,) = finding.evidence
    assert fact.endswith(": 2 attempts are open, capacity 1: c1, c2")


def drains(command: Command) -> bool | None:
    """Read an order from the id of a command; other ids are work."""
    return {"drain": True, "undrain": False, "limit": None}[command.command_id]


@pytest.mark.requirement("INV-14", "DRN-06")
@pytest.mark.parametrize(
    ("inbox", "admitted"),
    [
        ("c1 drain", ()),
        ("drain undrain c1", ()),
        ("c1 drain limit undrain c2", ()),
        ("drain c1", ("command 'c1' was admitted after 'drain' was saved",)),
        ("drain limit c1 undrain c2", ("command 'c1' was admitted after 'drain' was saved",)),
        ("drain undrain c1 drain c2", ("command 'c2' was admitted after 'drain' was saved",)),
    ],
)
def test_a_draining_worker_admits_nothing(
    scene: Scene, inbox: str, admitted: tuple[str, ...]
) -> None:
    """The order of the inbox shows it, and one image is enough."""
    scene.commands = ("c1", "c2", "drain", "undrain", "limit")
    rows = tuple(InboxRow(command_id, "") for command_id in inbox.split())
    scene.put_books(WorkerState(inbox=rows), scene.crash)
    finding = DrainingAdmitsNothing(scene.read_books, drains).check(scene.evidence())
    assert finding.evidence == admitted
    assert (finding.answer is OracleStatus.BROKEN) == bool(admitted)


def target(command: Command) -> str | None:
    """Let the second command cancel the first."""
    return "c1" if command.command_id == "c2" else None


@pytest.mark.requirement("ADM-07..ADM-09")
@pytest.mark.parametrize(
    ("found", "end", "fact"),
    [
        ("PENDING", "cancelled", None),
        ("RUNNING", "succeeded", None),
        ("", "cancelled", "cancel 'c2' was never answered"),
        ("PENDING", "succeeded", "'c1' was cancelled before it started and ended 'succeeded'"),
        ("PENDING", "", "'c1' was cancelled before it started and ended 'nothing'"),
    ],
)
def test_a_cancel_that_came_in_time_is_honoured(
    scene: Scene, found: str, end: str, fact: str | None
) -> None:
    """The cancel's answer and the end of its command show whether it was honoured."""
    ends = [("e1", "c1", "a1", end), ("e2", "c2", "a2", "succeeded" if found else "")]
    seen = facts(events=[each for each in ends if each[-1]])
    answered = tuple(
        replace(receipt, event=replace(receipt.event, body={"found": found}))
        for receipt in seen.receipts
    )
    scene.put_facts(replace(seen, receipts=answered), scene.settled, scene.final)
    finding = CancelHonoured(target).check(scene.evidence())
    assert finding.answer is (OracleStatus.HOLDS if fact is None else OracleStatus.BROKEN)
    assert [each.removeprefix("command ") for each in finding.evidence] == [fact] * bool(fact)


@pytest.mark.requirement("ADM-09")
def test_a_cancel_that_is_answered_after_one_more_restart_is_late(scene: Scene) -> None:
    """The second restart picks up what the recovery left lying; in real life there may be none."""
    seen = facts(events=[("e1", "c1", "a1", "succeeded"), ("e2", "c2", "a2", "succeeded")])
    scene.put_facts(seen, scene.final)
    finding = CancelHonoured(target).check(scene.evidence())
    assert finding.evidence == ("cancel 'c2' was never answered",)
