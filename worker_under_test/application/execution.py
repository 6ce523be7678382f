"""Execution of an attempt: RUNNING is saved, the capability is called, the result is saved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.application.cancelling import being_cancelled
from worker_under_test.application.reporter import AttemptReporter
from worker_under_test.domain.errors import LocalFailureError
from worker_under_test.domain.event import AttemptEvent, Event, EventKind
from worker_under_test.domain.recovery import end_of_cancel

if TYPE_CHECKING:
    from worker_under_test.application.admission import Admission
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.application.quiet import Quiet
    from worker_under_test.application.running import Handle, Running
    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.progress import Checkpoint
    from worker_under_test.ports.bundle import Ports

MAX_REASON_CHARS = 500
"""Longest reason of a failure that is saved, in characters."""


class Execution:
    """Executes attempts.

    Args:
        ports: The store, the capabilities, and what a reporter needs.
        session: The session to send heartbeats under.
        quiet: Told when an event was saved, and of what is to be asked for again.
        running: The set of what is executed.
        admission: Told when an attempt ended.
    """

    def __init__(
        self,
        ports: Ports,
        session: CurrentSession,
        quiet: Quiet,
        running: Running,
        admission: Admission,
    ) -> None:
        self._ports = ports
        self._session = session
        self._quiet = quiet
        self._running = running
        self._admission = admission

    async def run(self, attempt: Attempt, *, acknowledged: bool = False) -> None:
        """Execute an attempt that is pending or that recovery decided to continue.

        Args:
            attempt: The attempt; its row is committed (INB-08).
            acknowledged: The coordinator confirmed the ACK of its command.

        Raises:
            Exception: The local store failed. The attempt is left as it is saved, for the next
                start; a failure of the capability is a result and raises nothing (ATT-08).
        """
        command = attempt.command
        with self._running.entered(command.command_id) as handle:
            if self._ports.capabilities.policy_of(command) is None:
                # Never RUNNING: a restart must not take it for work that may have been done.
                missing = f"{command.capability!r} version {command.version}"
                outcome = _failure(f"capability {missing} is not installed")
            else:
                outcome = await self._execute(attempt, handle, acknowledged=acknowledged)
        await self._finish(attempt, outcome)

    async def give_up(self, attempt: Attempt, reason: str) -> None:
        """End an attempt whose outcome cannot be told: UNKNOWN, and reported (REC-15).

        Args:
            attempt: The attempt; recovery has decided about it.
            reason: Why, for the event.
        """
        await self._finish(attempt, AttemptEvent(EventKind.UNKNOWN, {"reason": reason}))

    async def end_cancelled(self, attempt: Attempt, reason: str) -> None:
        """End an attempt that a restart found cancelled (ADM-08).

        Args:
            attempt: The attempt; recovery has decided about it.
            reason: Why, for the event.
        """
        await self._finish(attempt, AttemptEvent(EventKind.CANCELLED, {"reason": reason}))

    async def _execute(
        self, attempt: Attempt, handle: Handle, *, acknowledged: bool
    ) -> AttemptEvent:
        command_id = attempt.command.command_id
        crash_point("attempt.start.before", command=command_id)
        started = await self._ports.store.start(attempt.attempt_id, acknowledged=acknowledged)
        crash_point("attempt.start.after", command=command_id)
        if not started.running:
            return AttemptEvent(EventKind.CANCELLED, {"reason": "cancelled before it started"})
        return await self._call(attempt, started.checkpoint, handle)

    async def _call(
        self, attempt: Attempt, checkpoint: Checkpoint | None, handle: Handle
    ) -> AttemptEvent:
        command = attempt.command
        reporter = AttemptReporter(attempt, checkpoint, self._ports, self._session, handle)
        crash_point("capability.run.before", command=command.command_id)
        # A task of its own, so that a cancel reaches the capability and nothing of the worker's.
        work = asyncio.create_task(self._ports.capabilities.execute(command, reporter))
        handle.hold(work)
        outcome: AttemptEvent | None
        try:
            outcome = await work
        except asyncio.CancelledError:
            if not handle.cancelled or being_cancelled():
                raise
            outcome = self._cancelled(attempt)
        except LocalFailureError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a capability raises is its result
            self._ports.observation.event("capability failed", error, command=command.command_id)
            outcome = _failure(f"{type(error).__name__}: {error}")
        finally:
            reporter.close()
        if reporter.store_failure is not None:
            # The worker's own store failed, not the work: no result may be made of that.
            raise reporter.store_failure
        crash_point("capability.run.after", command=command.command_id)
        return outcome or _failure("the capability returned no event")

    def _cancelled(self, attempt: Attempt) -> AttemptEvent:
        # What it did before is not undone, and a cancel proves nothing of the outside (ADM-10).
        kind = end_of_cancel(self._ports.capabilities.policy_of(attempt.command))
        return AttemptEvent(kind, {"reason": "cancelled while it ran"})

    async def _finish(self, attempt: Attempt, outcome: AttemptEvent) -> None:
        command_id = attempt.command.command_id
        event = Event(
            event_id=self._ports.ids.new("event"),
            command_id=command_id,
            attempt_id=attempt.attempt_id,
            kind=outcome.kind,
            body=outcome.body,
        )
        await self._ports.store.finish(event, outcome.artifacts)
        crash_point("result.commit.after", event=event.kind, command=command_id)
        # Save first, wake second (OUT-07); a crash in between costs nothing but time (ATT-03).
        self._quiet.event_saved()
        if self._admission.look_again():
            self._quiet.take()


def _failure(reason: str) -> AttemptEvent:
    # The reason may quote any input, and must be text that can be sent.
    text = reason[:MAX_REASON_CHARS].encode(errors="backslashreplace").decode()
    return AttemptEvent(EventKind.FAILED, {"reason": text})
