"""Clean-up: removes what no attempt and no unsent event can need any more (CLN-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.order import CLEAN_UP
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import CapabilityExecutor, ProgressReporter
    from worker_under_test.ports.file_space import FileSpace
    from worker_under_test.ports.local_store import LocalStore


class CleanUp:
    """The worker's own work, ``control.cleanup``; killed anywhere, it is done again (CLN-03).

    Like all work it begins when the recovery scan is complete (CLN-04). It touches temporary files
    only: the database, its log and its rows are none (CLN-05, INB-16).

    Args:
        files: Where the temporary files are.
        store: Knows which commands have files of value.
    """

    def __init__(self, files: FileSpace, store: LocalStore) -> None:
        self._files = files
        self._store = store

    async def run(self, reporter: ProgressReporter) -> AttemptEvent:
        """Remove the temporary files of commands that are over and reported.

        Args:
            reporter: Line to the attempt.

        Returns:
            ``succeeded``. What was removed is not in it: a repeat finds less to remove.
        """
        crash_point("cleanup.scan.before")
        found = await self._files.leftovers()
        # Asked after the look: a file that was found and whose command is of no value now never
        # will be, since an attempt is saved before it makes a file.
        of_value = await self._store.commands_of_value()
        removable = [each for each in found if each.command_id not in of_value]
        for done, each in enumerate(removable):
            if done:
                crash_point("cleanup.remove.mid")
            await self._files.remove(each)
        crash_point("cleanup.remove.after")
        await reporter(Progress("clean-up", "done", 100))
        return AttemptEvent(EventKind.SUCCEEDED, {})


class WithCleanUp:
    """A `CapabilityExecutor` that does the worker's own work itself.

    Args:
        others: What does all other work.
        cleanup: The clean-up.
    """

    def __init__(self, others: CapabilityExecutor, cleanup: CleanUp) -> None:
        self._others = others
        self._cleanup = cleanup

    def policy_of(self, command: Command) -> RecoveryPolicy | None:
        """Tell how a command's interrupted attempt is continued (REC-02)."""
        if command.capability == CLEAN_UP:
            return RecoveryPolicy.RECOMPUTE
        return self._others.policy_of(command)

    def recover(self, command: Command, checkpoint: Checkpoint | None) -> Proposal:
        """Say what is done with an attempt that had begun (REC-02)."""
        if command.capability == CLEAN_UP:
            return Proposal(Decision.RECOMPUTE, "a clean-up can be done again")
        return self._others.recover(command, checkpoint)

    async def execute(self, command: Command, reporter: ProgressReporter) -> AttemptEvent | None:
        """Execute a command."""
        if command.capability == CLEAN_UP:
            return await self._cleanup.run(reporter)
        return await self._others.execute(command, reporter)
