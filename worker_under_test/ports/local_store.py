"""The local database: the only ground for recovery."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.attempt import Attempt, UnfinishedAttempt
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.order import Directives, Order
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.domain.recovery import RecoveryDecision
    from worker_under_test.domain.registration import Incarnation


class Acceptance(enum.StrEnum):
    """What the store said to a command."""

    ACCEPTED = "accepted"
    """New: its inbox row and its attempt are saved."""
    REPEATED = "repeated"
    """Known with this content; nothing was written (INB-06)."""
    CONFLICTING = "conflicting"
    """Known with other content; nothing was written (INB-12)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What admission asks of the store (ADM-02).

    Attributes:
        known: The command is in the inbox: a repeat, whatever its content.
        open_attempts: How many attempts at work are not terminal.
    """

    known: bool
    open_attempts: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a worker that is to go away still has to do (DRN-07).

    Attributes:
        open_attempts: How many attempts at work are not terminal.
        unsent: How many events are not marked reported.
        unknown: Commands whose outcome waits for a person, in the order of acceptance. They hold
            nothing up, and are named so that nobody takes the worker for clean.
    """

    open_attempts: int
    unsent: int
    unknown: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """Whether nothing is left that the worker itself can do."""
        return self.open_attempts == 0 and self.unsent == 0


@dataclass(frozen=True, slots=True)
class Started:
    """What the start of an attempt came to.

    Attributes:
        running: It is saved as RUNNING; False if a cancel was saved first (ADM-07).
        checkpoint: Its last checkpoint, if it has one.
    """

    running: bool
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A command's place in the store.

    Attributes:
        outcome: What the store said.
        attempt_id: The command's one attempt, now or from before.
    """

    outcome: Acceptance
    attempt_id: str


class LocalStore(Protocol):
    """Durable state of one worker.

    Each method is one transaction: when it returns, what it wrote is on disk. A failure is raised
    as it is and never carries the mark of a failed delivery (DEL-02).
    """

    async def open(self) -> None:
        """Open the database; a store that may not make one fails if there is none (IDN-02)."""

    async def close(self) -> None:
        """Close the database and join its thread; does nothing if it is not open."""

    async def begin_incarnation(self, instance_id: str) -> Incarnation:
        """Count this start; save the identity if it is the first one (IDN-06).

        Args:
            instance_id: Identity to take if none is saved.

        Returns:
            The saved identity and the number of this start.
        """

    async def accept(self, command: Command, attempt_id: str) -> Accepted:
        """Save a new command's inbox row and its pending attempt together (INB-02).

        Args:
            command: The command.
            attempt_id: Identity of its attempt, if the command is new.

        Returns:
            Whether it was new, and its attempt.
        """

    async def standing(self, command_id: str) -> Standing:
        """Say whether a command is known, and how many attempts are open.

        Args:
            command_id: The command.
        """

    async def directives(self) -> Directives:
        """Return what the saved orders add up to (DRN-01)."""

    async def accept_order(
        self, command: Command, order: Order, attempt_id: str, event_id: str
    ) -> Accepted:
        """Save an order's inbox row, what it changes, and its answer, together (DRN-02, AMB-14).

        A cancel is saved only if its target is open; the answer's ``found`` tells in which state
        the target was, and is ``"none"`` if it is not in the inbox (ADM-09).

        Args:
            command: The command that carries the order.
            order: The order.
            attempt_id: Identity of its attempt, if the command is new.
            event_id: Identity of its answer, if the command is new.

        Returns:
            Whether it was new; the order is in force only if it was.
        """

    async def remaining(self) -> Remaining:
        """Say what is still to be done, and what waits for a person (DRN-07)."""

    async def commands_of_value(self) -> frozenset[str]:
        """Return the commands whose files must stay: open or unknown attempts, unsent events."""

    async def unfinished(self) -> list[UnfinishedAttempt]:
        """Return the attempts that are not terminal, in the order of acceptance."""

    async def decide(self, decision: RecoveryDecision) -> None:
        """Save a recovery decision; an attempt that had begun becomes RECOVERING with it.

        Args:
            decision: The decision.
        """

    async def start(self, attempt_id: str, *, acknowledged: bool) -> Started:
        """Save that an attempt is RUNNING, unless a cancel was saved before it ever started.

        Args:
            attempt_id: The attempt.
            acknowledged: The coordinator confirmed the ACK of its command; saved with it, so
                that the inbox knows without a transaction of its own (INB-10).

        Returns:
            Whether it is running now, and its last checkpoint.
        """

    async def save_checkpoint(self, attempt: Attempt, checkpoint: Checkpoint) -> bool:
        """Save a checkpoint unless one with the same or a higher number is there.

        Args:
            attempt: The attempt.
            checkpoint: The checkpoint.

        Returns:
            Whether it was saved.
        """

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save result, event, artifacts and the terminal state together (ATT-02).

        Args:
            event: The result's event; its kind gives the state.
            artifacts: The files that belong to the result.
        """

    async def unreported(self) -> list[Event]:
        """Return the events not marked reported, in the order of saving (OUT-31)."""

    async def mark_reported(self, event: Event) -> None:
        """Mark an event reported.

        Args:
            event: An event that the server has stored (ATT-04).
        """
