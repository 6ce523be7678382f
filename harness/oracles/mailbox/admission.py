"""Admission: draining, capacity, and cancelled commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.oracle import Finding, broken_if
from harness.oracles.mailbox.worker_state import ENDED
from harness.world.coordinator.facts import ENDING_KINDS, read_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.model.oracle import Evidence
    from harness.model.workload import Command
    from harness.oracles.mailbox.worker_state import AttemptRow, StateReader, WorkerState
    from harness.world.coordinator.facts import CoordinatorFacts


@dataclass(frozen=True, slots=True)
class DrainingAdmitsNothing:
    """From a saved drain until the saved end of it, no work is accepted (INV-14, DRN-06).

    Judged by the order of the inbox: the order to drain is in it like any command, so what stands
    between it and the order that ends it was admitted by a draining worker.

    Attributes:
        read_books: Reader of the worker's books.
        drains: Tells of a command whether it starts draining (True), ends it (False), or is
            another order (None); raises `LookupError` for what is not an order.
    """

    read_books: StateReader
    drains: Callable[[Command], bool | None]
    name: str = "draining-admits-nothing"
    promise: str = "a worker that was told to drain admits no work until it is told otherwise"
    remedy: str = (
        "Save the order before it is confirmed, and read it again at every start, before the "
        "first command is admitted."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Read the inbox of every image in its order."""
        workload = evidence.workload
        commands = {c.command_id: c for c in (*workload.commands, workload.fresh)}
        return broken_if(
            dict.fromkeys(
                fact
                for _, image in evidence.images
                for fact in self._admitted(image.read(self.read_books, image.worker_dir), commands)
            )
        )

    def _admitted(self, books: WorkerState, commands: dict[str, Command]) -> Iterator[str]:
        draining = ""
        for row in books.inbox:
            try:
                change = self.drains(commands[row.command_id])
            except LookupError:
                if draining:
                    yield f"command {row.command_id!r} was admitted after {draining!r} was saved"
                continue
            if change is not None:
                draining = row.command_id if change else ""


@dataclass(frozen=True, slots=True)
class WithinCapacity:
    """No more attempts are open than the worker has room for (INV-15, REC-18).

    For a worker whose capacity is not lowered while it works.

    Attributes:
        read_books: Reader of the worker's books.
        capacity: How many attempts may be open.
        counts: Tells whether an attempt takes room.
    """

    read_books: StateReader
    capacity: int
    counts: Callable[[AttemptRow], bool]
    name: str = "within-capacity"
    promise: str = "no more attempts are open than the worker has room for"
    remedy: str = (
        "Look for room and take it in one transaction, or under one lock that is held until "
        "the command is saved."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Count the open attempts of every image."""
        found = []
        for when, image in evidence.images:
            books = image.read(self.read_books, image.worker_dir)
            open_ids = [
                row.command_id
                for row in books.attempts
                if row.state not in ENDED and self.counts(row)
            ]
            if len(open_ids) > self.capacity:
                found.append(
                    f"{when}: {len(open_ids)} attempts are open, "
                    f"capacity {self.capacity}: {', '.join(open_ids)}"
                )
        return broken_if(found)


@dataclass(frozen=True, slots=True)
class CancelHonoured:
    """A cancel that found its command not started prevents the start (ADM-07, ADM-08).

    And whatever it found, it is answered, and its command ends at most once (ADM-09).

    Attributes:
        target: The command that a command cancels, or None if it cancels nothing.
    """

    target: Callable[[Command], str | None]
    name: str = "cancel-honoured"
    promise: str = "a command that was cancelled before it started never runs"
    remedy: str = (
        "Save the cancellation before it is confirmed, and look for it in the transaction "
        "that starts the work."
    )

    def check(self, evidence: Evidence) -> Finding:
        """Compare the answer of every cancel with the end of its command.

        That is done when the recovered worker is quiet, and again at the end.
        """
        return broken_if(
            dict.fromkeys(
                fact
                for image in (evidence.settled, evidence.final)
                for fact in self._faults(evidence, image.read(read_facts, image.world_dir))
            )
        )

    def _faults(self, evidence: Evidence, facts: CoordinatorFacts) -> list[str]:
        ends = {e.command_id: e for e in facts.events if e.kind in ENDING_KINDS}
        found = []
        for command in evidence.workload.commands:
            target = self.target(command)
            if target is None:
                continue
            answer = ends.get(command.command_id)
            if answer is None:
                found.append(f"cancel {command.command_id!r} was never answered")
            elif answer.body.get("found") == "PENDING" and (
                target not in ends or ends[target].kind != "cancelled"
            ):
                told = ends[target].kind if target in ends else "nothing"
                found.append(
                    f"command {target!r} was cancelled before it started and ended {told!r}"
                )
        return found
