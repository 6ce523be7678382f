"""``command``: a child process, never started twice (PRC-01..PRC-07).

Payload ``{"argv": [TEXT, ...]}``. Recovery policy: find the process.

Evidence: a token, saved before the child is started and given to it in its environment; then pid,
start time and boot.

The window: between the saved token and the saved identity the child may or may not have been
started. A restart looks for a living process with the token, then for the exit code that the child
leaves in a file. A child that is found is waited for. If there is neither, the child was killed or
never began: only where no identity is saved, and its directory, which is made before, is missing
too, is it known that there was none, and it is started; else the attempt is UNKNOWN. That nothing
of it runs in this process proves nothing (PRC-02), nor does a process under the saved pid (PRC-03).

A cancel ends the child, if it is proved to be ours; what it did before is not undone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.event import AttemptEvent, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.recovery import Decision, Proposal, RecoveryPolicy
from worker_under_test.ports.processes import ProcessIdentity

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command as WorkCommand
    from worker_under_test.domain.json_value import JsonValue
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.capability import ProgressReporter
    from worker_under_test.ports.processes import Processes

MAX_ARGUMENTS = 100


class RunCommand:
    """The capability ``command``, version 1.

    Args:
        processes: Starts children, and finds them again.
    """

    name = "command"
    version = 1
    policy = RecoveryPolicy.FIND_PROCESS

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def recover(
        self,
        command: WorkCommand,  # noqa: ARG002
        checkpoint: Checkpoint | None,
    ) -> Proposal:
        """Start if no token is saved; else look for the child."""
        if checkpoint is None:
            return Proposal(Decision.START, "no token is saved, so no child was started")
        if token_of(checkpoint) is None:
            return Proposal(Decision.UNKNOWN, "the saved token cannot be understood")
        return Proposal(Decision.FIND_PROCESS, "a child with the saved token may be there")

    async def execute(
        self, command: WorkCommand, reporter: ProgressReporter
    ) -> AttemptEvent | None:
        """Start the child, or find the one of an earlier life; wait for its end.

        Args:
            command: The command.
            reporter: Line to the attempt.

        Returns:
            How the child ended, or ``unknown`` if it is gone without a trace.

        Raises:
            DomainError: Of kind invalid, if the payload is not well formed.
            OSError: The child could not be started, so there is none.
        """
        argv = _argv(command)
        token = token_of(reporter.checkpoint)
        if token is None:
            token = await self._save_token(reporter)
            identity: ProcessIdentity | None = await self._start(command, reporter, token, argv)
        else:
            identity = await self._of_earlier_life(command, reporter, token, argv)
        if identity is not None:
            crash_point("process.wait.before", command=command.command_id)
            await self._wait(identity, token, reporter)
        code = await self._processes.result(token)
        crash_point("process.result.after", command=command.command_id)
        if code is None:
            reason = "the child is gone and left no exit code"
            return AttemptEvent(EventKind.UNKNOWN, {"token": token, "reason": reason})
        output = await self._processes.output(token)
        kind = EventKind.FAILED if code else EventKind.SUCCEEDED
        return AttemptEvent(kind, {"token": token, "exit_code": code, "output": output})

    async def _wait(
        self, identity: ProcessIdentity, token: str, reporter: ProgressReporter
    ) -> None:
        try:
            await self._processes.wait(identity)
        except asyncio.CancelledError:
            # A worker that ends leaves its child to the next life; a cancel does not.
            if reporter.cancelled:
                await self._processes.end(identity, token)
            raise

    async def _save_token(self, reporter: ProgressReporter) -> str:
        token = f"command-{reporter.attempt_id}"
        await reporter(Progress("start", "running", 0), {"token": token})
        return token

    async def _start(
        self, command: WorkCommand, reporter: ProgressReporter, token: str, argv: list[str]
    ) -> ProcessIdentity:
        await self._processes.prepare(token)
        crash_point("process.spawn.before", command=command.command_id)
        identity = await self._processes.spawn(token, argv)
        crash_point("process.spawn.after", command=command.command_id)
        await self._save_identity(command, reporter, token, identity)
        return identity

    async def _save_identity(
        self,
        command: WorkCommand,
        reporter: ProgressReporter,
        token: str,
        identity: ProcessIdentity,
    ) -> None:
        crash_point("process.identity.before", command=command.command_id)
        evidence: dict[str, JsonValue] = {
            "token": token,
            "pid": identity.pid,
            "start_time": identity.start_time,
            "boot_id": identity.boot_id,
        }
        await reporter(Progress("run", "running", 50), evidence)

    async def _of_earlier_life(
        self,
        command: WorkCommand,
        reporter: ProgressReporter,
        token: str,
        argv: list[str],
    ) -> ProcessIdentity | None:
        crash_point("process.find.before", command=command.command_id)
        saved, identity = identity_of(reporter.checkpoint), await self._processes.find(token)
        if identity is None:
            # One whose identity is saved was started, whatever it did to its directory.
            if saved is None and not await self._processes.prepared(token):
                return await self._start(command, reporter, token, argv)
        elif identity != saved:
            await self._save_identity(command, reporter, token, identity)
        return identity


def token_of(checkpoint: Checkpoint | None) -> str | None:
    """Read the token from saved evidence; None if there is none that can be understood."""
    token = checkpoint.evidence.get("token") if checkpoint else None
    return token if isinstance(token, str) and token else None


def identity_of(checkpoint: Checkpoint | None) -> ProcessIdentity | None:
    """Read the identity from saved evidence, if it was saved."""
    match dict(checkpoint.evidence) if checkpoint else {}:
        case {"pid": int(pid), "start_time": int(start_time), "boot_id": str(boot_id)}:
            return ProcessIdentity(pid, start_time, boot_id)
    return None


def _argv(command: WorkCommand) -> list[str]:
    argv = command.payload.get("argv")
    if not isinstance(argv, list) or not 1 <= len(argv) <= MAX_ARGUMENTS:
        raise DomainError(Kind.INVALID, f"argv is not a list of 1 to {MAX_ARGUMENTS} texts")
    read = [each for each in argv if isinstance(each, str) and _is_argument(each)]
    if len(read) < len(argv) or not read[0]:
        raise DomainError(Kind.INVALID, "argv holds something that is not an argument")
    return read


def _is_argument(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # It holds half of a surrogate pair.
        return False
