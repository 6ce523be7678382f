"""Agreement of inbox, attempts and outbox with each other and with the coordinator."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if, first_seen
from harness.oracles.mailbox.worker_state import ENDED
from harness.world.coordinator.facts import ENDING_KINDS, read_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.oracle import Evidence
    from harness.oracles.mailbox.worker_state import StateReader, WorkerState
    from harness.world.coordinator.facts import CoordinatorFacts


@dataclass(frozen=True, slots=True)
class InboxOutboxConsistent:
    """Inbox, attempts and outbox agree, at every moment and in the end.

    At every image: a command and its attempt are both there or both missing (INB-02, INV-2), what
    was acknowledged is in the inbox (INB-01), a result has its one event (INV-6), and what is
    marked as reported is at the coordinator (INV-5). When the worker is quiet: everything has been
    reported and marked (INV-4), and both sides tell the same end.

    Attributes:
        read_books: Reader of the worker's books.
    """

    read_books: StateReader
    name: str = "boxes-agree"
    promise: str = "inbox, attempts and outbox agree with each other and with the coordinator"
    remedy: str = (
        "Save first, tell afterwards: a command before it is acknowledged, a result in one "
        "transaction with its event, reported only when that is confirmed."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare the books with themselves and with the facts, image by image."""
        return broken_if(first_seen(self._faults(evidence)))

    def _faults(self, evidence: Evidence) -> Iterator[tuple[str, str]]:
        for when, image in evidence.images:
            books = image.read(self.read_books, image.worker_dir)
            facts = image.read(read_facts, image.world_dir)
            found = [*_inside(books), *_against(books, facts)]
            if image in (evidence.settled, evidence.final):
                found += _at_rest(books, facts)
            yield from ((when, fact) for fact in found)


@dataclass(frozen=True, slots=True)
class EventsOnce:
    """No event twice, or under a new id (INV-4, ATT-05, ATT-06)."""

    name: str = "events-once"
    promise: str = "every event is at the coordinator once, under the one id that it was saved with"
    remedy: str = (
        "Give an event its id when it is saved, and send it under that id until it is "
        "confirmed, after a restart too."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Look through every receipt of an event at the coordinator."""
        facts = evidence.final.read(read_facts, evidence.final.world_dir)
        return broken_if(_repeats(facts))


def _repeats(facts: CoordinatorFacts) -> Iterator[str]:
    ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for event in facts.events:
        ids[event.attempt_id, event.kind].add(event.event_id)
    for (attempt_id, kind), seen in sorted(ids.items()):
        if len(seen) > 1:
            yield f"event {kind!r} of attempt {attempt_id!r} came under {len(seen)} ids"
    ends = Counter(e.command_id for e in facts.events if e.kind in ENDING_KINDS)
    for command_id, count in sorted(ends.items()):
        if count > 1:
            yield f"command {command_id!r} ended {count} times"
    for receipt in facts.receipts:
        if receipt.outcome == "conflicting":
            yield f"event {receipt.event.event_id!r} came again with other content"


def _inside(books: WorkerState) -> Iterator[str]:
    attempts = Counter(row.command_id for row in books.attempts)
    inbox = {row.command_id for row in books.inbox}
    for command_id in sorted(inbox - attempts.keys()):
        yield f"command {command_id!r} is in the inbox without an attempt"
    for command_id, count in sorted(attempts.items()):
        if command_id not in inbox:
            yield f"command {command_id!r} has an attempt and is not in the inbox"
        if count > 1:
            yield f"command {command_id!r} has {count} attempts"
    ends = Counter(row.attempt_id for row in books.outbox if row.kind in ENDING_KINDS)
    for row in books.attempts:
        if row.has_result != (row.state in ENDED):
            yield f"attempt of {row.command_id!r} is {row.state}, result saved: {row.has_result}"
        if ends[row.attempt_id] != row.has_result:
            yield (
                f"attempt of {row.command_id!r} has {ends[row.attempt_id]} result events, "
                f"result saved: {row.has_result}"
            )


def _against(books: WorkerState, facts: CoordinatorFacts) -> Iterator[str]:
    inbox = {row.command_id for row in books.inbox}
    for command_id in dict.fromkeys(ack.command_id for ack in facts.acks):
        if command_id not in inbox:
            yield f"command {command_id!r} was acknowledged and is not in the inbox"
    known = {event.event_id for event in facts.events}
    for row in books.outbox:
        if row.reported and row.event_id not in known:
            yield (
                f"event {row.kind!r} of {row.command_id!r} is marked as reported "
                "and the coordinator does not have it"
            )


def _at_rest(books: WorkerState, facts: CoordinatorFacts) -> Iterator[str]:
    ends = {e.command_id: e.kind for e in facts.events if e.kind in ENDING_KINDS}
    for attempt in books.attempts:
        if attempt.state not in ENDED:
            yield f"attempt of {attempt.command_id!r} is still {attempt.state}"
        elif ends.get(attempt.command_id) != attempt.state.lower():
            told = ends.get(attempt.command_id, "nothing")
            yield (
                f"attempt of {attempt.command_id!r} is {attempt.state} "
                f"and the coordinator heard {told}"
            )
    for row in books.outbox:
        if not row.reported:
            yield f"event {row.kind!r} of {row.command_id!r} is not marked as reported"
    saved = {row.event_id for row in books.outbox}
    for event in facts.events:
        if event.event_id not in saved:
            yield f"event {event.kind!r} of {event.command_id!r} was reported and never saved"
