"""Oracles of inbox, attempts, outbox and events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness_doubles import Scene, facts

from harness.model.errors import HarnessError
from harness.model.oracle import Finding, OracleStatus
from harness.oracles.mailbox.agreement import EventsOnce, InboxOutboxConsistent
from harness.oracles.mailbox.worker_state import AttemptRow, InboxRow, OutboxRow, WorkerState

if TYPE_CHECKING:
    from pathlib import Path

    from harness.world.coordinator.facts import CoordinatorFacts

INBOX = InboxRow("c1", "digest")
ENDED_ATTEMPT = AttemptRow("a1", "c1", "compute/1", "SUCCEEDED", has_result=True)
OPEN_ATTEMPT = replace(ENDED_ATTEMPT, state="RUNNING", has_result=False)
STARTED = OutboxRow("e1", "a1", "c1", "started", "digest", reported=True)
ENDED = OutboxRow("e2", "a1", "c1", "succeeded", "digest", reported=True)
BOOKS = WorkerState(1, (INBOX,), (ENDED_ATTEMPT,), (STARTED, ENDED))
OPEN_BOOKS = replace(BOOKS, attempts=(OPEN_ATTEMPT,), outbox=(STARTED,))
EVENT_STARTED = ("e1", "c1", "a1", "started")
EVENT_ENDED = ("e2", "c1", "a1", "succeeded")
FACTS = facts(delivered=["c1"], acked=["c1"], events=[EVENT_STARTED, EVENT_ENDED])
OPEN_FACTS = facts(delivered=["c1"], acked=["c1"], events=[EVENT_STARTED])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Give an experiment that was struck before anything happened."""
    scene = Scene(tmp_path)
    scene.put_books(WorkerState(), scene.crash)
    scene.put_facts(facts(delivered=["c1"]), scene.crash)
    return scene


def judged(
    scene: Scene, books: WorkerState, seen: CoordinatorFacts, crash: WorkerState | None = None
) -> Finding:
    """Ask the oracle about a worker that was at rest with these books and facts."""
    at_rest = (scene.settled, scene.after_restart, scene.final)
    scene.put_books(books, *at_rest)
    scene.put_facts(seen, *at_rest)
    if crash is not None:
        scene.put_books(crash, scene.crash)
    return InboxOutboxConsistent(scene.read_books).check(scene.evidence())


@pytest.mark.requirement("INV-2", "INV-4", "INV-5", "INV-6", "INB-01", "INB-02")
def test_boxes_that_agree_hold(scene: Scene) -> None:
    """Everything is there, reported and marked."""
    assert judged(scene, BOOKS, FACTS) == Finding(OracleStatus.HOLDS)


def test_a_crash_image_may_be_in_the_middle(scene: Scene) -> None:
    """What must be only when the worker is quiet is not asked of a crash image."""
    unreported = replace(BOOKS, outbox=(STARTED, replace(ENDED, reported=False)))
    for books in (OPEN_BOOKS, unreported):
        scene.books.clear()
        crash = Scene(scene.path / f"{len(books.outbox)}")
        crash.put_facts(OPEN_FACTS, crash.crash)
        assert judged(crash, BOOKS, FACTS, crash=books) == Finding(OracleStatus.HOLDS)


@pytest.mark.requirement("INB-02", "INV-2", "INV-6")
@pytest.mark.parametrize(
    ("books", "fact"),
    [
        (replace(BOOKS, attempts=(), outbox=()), "command 'c1' is in the inbox without an attempt"),
        (replace(BOOKS, inbox=()), "command 'c1' has an attempt and is not in the inbox"),
        (
            replace(BOOKS, attempts=(ENDED_ATTEMPT, replace(OPEN_ATTEMPT, attempt_id="a2"))),
            "command 'c1' has 2 attempts",
        ),
        (
            replace(BOOKS, attempts=(replace(ENDED_ATTEMPT, has_result=False),), outbox=(STARTED,)),
            "attempt of 'c1' is SUCCEEDED, result saved: False",
        ),
        (
            replace(BOOKS, attempts=(replace(OPEN_ATTEMPT, has_result=True),)),
            "attempt of 'c1' is RUNNING, result saved: True",
        ),
        (
            replace(BOOKS, outbox=(STARTED,)),
            "attempt of 'c1' has 0 result events, result saved: True",
        ),
        (
            replace(BOOKS, outbox=(STARTED, ENDED, replace(ENDED, event_id="e3", kind="failed"))),
            "attempt of 'c1' has 2 result events, result saved: True",
        ),
        (
            replace(BOOKS, attempts=(OPEN_ATTEMPT,)),
            "attempt of 'c1' has 1 result events, result saved: False",
        ),
    ],
)
def test_books_that_contradict_themselves(tmp_path: Path, books: WorkerState, fact: str) -> None:
    """Every image is looked at, so a crash image too."""
    scene = Scene(tmp_path)
    scene.put_facts(FACTS, scene.crash)
    finding = judged(scene, BOOKS, FACTS, crash=books)
    assert finding.answer is OracleStatus.BROKEN
    assert f"after incarnation 1: {fact}" in finding.evidence
    assert not [each for each in finding.evidence if each.startswith("at rest")]


@pytest.mark.requirement("INB-01")
def test_an_acknowledged_command_is_in_the_inbox(tmp_path: Path) -> None:
    """No ACK before the command is saved; said once, however often it was acknowledged."""
    scene = Scene(tmp_path)
    scene.put_facts(facts(delivered=["c1"], acked=["c1", "c1"]), scene.crash)
    assert judged(scene, BOOKS, FACTS, crash=WorkerState()) == Finding(
        OracleStatus.BROKEN,
        ("after incarnation 1: command 'c1' was acknowledged and is not in the inbox",),
    )


@pytest.mark.requirement("INV-5")
def test_what_is_marked_as_reported_is_at_the_coordinator(tmp_path: Path) -> None:
    """An event that is marked and that the coordinator lacks is found."""
    scene = Scene(tmp_path)
    scene.put_facts(OPEN_FACTS, scene.crash)
    assert judged(scene, BOOKS, FACTS, crash=BOOKS) == Finding(
        OracleStatus.BROKEN,
        (
            (
                "after incarnation 1: event 'succeeded' of 'c1' is marked as reported "
                "and the coordinator does not have it"
            ),
        ),
    )


@pytest.mark.requirement("INV-4")
@pytest.mark.parametrize(
    ("books", "seen", "fact"),
    [
        (OPEN_BOOKS, OPEN_FACTS, "attempt of 'c1' is still RUNNING"),
        (
            replace(
                BOOKS, attempts=(replace(ENDED_ATTEMPT, state="FAILED"),), outbox=(STARTED, ENDED)
            ),
            FACTS,
            "attempt of 'c1' is FAILED and the coordinator heard succeeded",
        ),
        (
            replace(BOOKS, outbox=(STARTED, replace(ENDED, reported=False))),
            OPEN_FACTS,
            "attempt of 'c1' is SUCCEEDED and the coordinator heard nothing",
        ),
        (
            replace(BOOKS, outbox=(replace(STARTED, reported=False), ENDED)),
            FACTS,
            "event 'started' of 'c1' is not marked as reported",
        ),
        (
            replace(BOOKS, outbox=(ENDED,)),
            FACTS,
            "event 'started' of 'c1' was reported and never saved",
        ),
    ],
)
def test_at_rest_both_sides_tell_the_same(
    scene: Scene, books: WorkerState, seen: CoordinatorFacts, fact: str
) -> None:
    """When the worker is quiet, everything is reported and marked."""
    finding = judged(scene, books, seen)
    assert finding.answer is OracleStatus.BROKEN
    assert f"at rest: {fact}" in finding.evidence
    assert len(set(finding.evidence)) == len(finding.evidence)


@pytest.mark.parametrize(("where", "when"), [("settled", "at rest"), ("final", "at the end")])
def test_the_end_is_looked_at_twice(scene: Scene, where: str, when: str) -> None:
    """Both sides are compared after the recovery and after the fresh command."""
    others = [image for image in scene.every[1:] if image is not getattr(scene, where)]
    scene.put_books(BOOKS, *others)
    scene.put_facts(FACTS, *others)
    scene.put_books(OPEN_BOOKS, getattr(scene, where))
    scene.put_facts(OPEN_FACTS, getattr(scene, where))
    finding = InboxOutboxConsistent(scene.read_books).check(scene.evidence())
    assert finding.evidence == (f"{when}: attempt of 'c1' is still RUNNING",)


def test_without_a_coordinator_there_is_no_answer(tmp_path: Path) -> None:
    """An oracle that finds no facts does not say that they hold."""
    scene = Scene(tmp_path)
    with pytest.raises(HarnessError, match="no coordinator was open there"):
        InboxOutboxConsistent(scene.read_books).check(scene.evidence())


def events_once(tmp_path: Path, seen: CoordinatorFacts) -> Finding:
    """Ask about the events that are at the coordinator in the end."""
    scene = Scene(tmp_path)
    scene.put_facts(seen, scene.final)
    return EventsOnce().check(scene.evidence())


@pytest.mark.requirement("INV-4")
def test_events_that_came_once_hold(tmp_path: Path) -> None:
    """A receipt that repeats an event with its own id and content is no second event."""
    seen = facts(
        events=[EVENT_STARTED, EVENT_ENDED, ("e3", "c2", "a2", "failed")],
        receipts=[("repeated", EVENT_ENDED)],
    )
    assert events_once(tmp_path, seen) == Finding(OracleStatus.HOLDS)


@pytest.mark.requirement("INV-4", "ATT-05", "ATT-06")
@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (
            facts(events=[EVENT_STARTED, ("e9", "c1", "a1", "started")]),
            ("event 'started' of attempt 'a1' came under 2 ids",),
        ),
        (
            facts(events=[EVENT_ENDED, ("e9", "c1", "a1", "failed")]),
            ("command 'c1' ended 2 times",),
        ),
        (
            facts(events=[EVENT_ENDED, ("e9", "c1", "a2", "succeeded")]),
            ("command 'c1' ended 2 times",),
        ),
        (
            facts(events=[EVENT_ENDED], receipts=[("conflicting", EVENT_ENDED)]),
            ("event 'e2' came again with other content",),
        ),
    ],
)
def test_events_that_came_twice(
    tmp_path: Path, seen: CoordinatorFacts, found: tuple[str, ...]
) -> None:
    """Another id, a second end, or other content under the same id is found."""
    assert events_once(tmp_path, seen) == Finding(OracleStatus.BROKEN, found)
