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
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.domain.recovery import RecoveryDecision
    from worker_under_test.domain.registration import Life


class Acceptance(enum.StrEnum):
    """What the store said to a command."""

    ACCEPTED = "accepted"
    """New: its inbox row and its attempt are saved."""
    REPEATED = "repeated"
    """Known with this content; nothing was written (INB-06)."""
    CONFLICTING = "conflicting"
    """Known with other content; nothing was written (INB-12)."""


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
        """Open the database, and create its schema if it is new."""

    async def close(self) -> None:
        """Close the database and join its thread; does nothing if it is not open."""

    async def begin_life(self, instance_id: str) -> Life:
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

    async def unfinished(self) -> list[UnfinishedAttempt]:
        """Return the attempts that are not terminal, in the order of acceptance."""

    async def decide(self, decision: RecoveryDecision) -> None:
        """Save a recovery decision; an attempt that had begun becomes RECOVERING with it.

        Args:
            decision: The decision.
        """

    async def start(self, attempt_id: str, *, acknowledged: bool) -> Checkpoint | None:
        """Save that an attempt is RUNNING.

        Args:
            attempt_id: The attempt.
            acknowledged: The coordinator confirmed the ACK of its command; saved with it, so
                that the inbox knows without a transaction of its own (INB-10).

        Returns:
            Its last checkpoint, if it has one.
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
