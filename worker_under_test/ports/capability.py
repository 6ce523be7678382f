"""The contract between the runtime and what does the work (CAP-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Checkpoint, Progress
    from worker_under_test.domain.recovery import Proposal, RecoveryPolicy


class ProgressReporter(Protocol):
    """A capability's line to its attempt, valid while the capability executes."""

    @property
    def attempt_id(self) -> str:
        """Identity of the attempt, stable over restarts; it may name temporary files."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint: what was recorded, which proves nothing of the outside."""

    @property
    def cancelled(self) -> bool:
        """Whether an order cancelled the command; otherwise it is the worker that ends."""

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Save a checkpoint, then send a heartbeat (CAP-06, CAP-07).

        Args:
            progress: How far the attempt is.
            evidence: What the capability wants to find again after a crash.

        Raises:
            Exception: Whatever the local store raised. A lost heartbeat raises nothing.
        """


class Capability(Protocol):
    """One kind of work, in one version."""

    @property
    def name(self) -> str:
        """Its name in commands."""

    @property
    def version(self) -> int:
        """Its version in commands."""

    @property
    def policy(self) -> RecoveryPolicy:
        """How an interrupted attempt is continued."""

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:
        """Say what is done with an attempt at a command that had begun (REC-02, REC-13).

        Asked at a restart, before anything is done; only the saved evidence may be looked at. What
        `execute` then finds outside is the capability's to judge.

        Args:
            command: The command.
            checkpoint: The attempt's last checkpoint, or None if it never saved one.

        Returns:
            The proposal; evidence that cannot be understood asks for the stricter rule (REC-16).
        """

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Do the work, or go on with it: the reporter knows the checkpoint of an earlier life.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            The result. None is a breach of the contract and is recorded as a failure (CAP-09).

        Raises:
            Exception: Why the work failed; recorded as a failure (ATT-08).
        """


class CapabilityExecutor(Protocol):
    """Dispatches a command by capability name and version (CAP-02)."""

    def policy_of(self, command: Command) -> RecoveryPolicy | None:
        """Tell how a command's interrupted attempt is continued.

        Args:
            command: The command.

        Returns:
            The policy, or None if its capability and version are not installed.
        """

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:
        """Say what is done with an attempt that had begun; see `Capability.recover`.

        Args:
            command: The command; its capability and version are installed.
            checkpoint: The attempt's last checkpoint, or None.
        """

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Execute a command; see `Capability.execute`.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            What the capability returned.

        Raises:
            DomainError: Of kind not found, if its capability and version are not installed.
        """
