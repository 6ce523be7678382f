"""Execution of an attempt: RUNNING is saved, the capability is called, the result is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.application.reporter import AttemptReporter
from worker_under_test.domain.errors import LocalFailureError
from worker_under_test.domain.event import AttemptEvent, Event, EventKind

if TYPE_CHECKING:
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.application.quiet import Quiet
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
        quiet: Told when an event was saved.
    """

    def __init__(self, ports: Ports, session: CurrentSession, quiet: Quiet) -> None:
        self._ports = ports
        self._session = session
        self._quiet = quiet

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
        if self._ports.capabilities.policy_of(command) is None:
            # Never RUNNING: a restart must not take it for work that may have been done (CAP-02).
            missing = f"{command.capability!r} version {command.version}"
            await self._finish(attempt, _failure(f"capability {missing} is not installed"))
            return
        checkpoint = await self._start(attempt, acknowledged=acknowledged)
        outcome = await self._call(attempt, checkpoint)
        await self._finish(attempt, outcome)

    async def give_up(self, attempt: Attempt, reason: str) -> None:
        """End an attempt whose outcome cannot be told: UNKNOWN, and reported (REC-15).

        Args:
            attempt: The attempt; recovery has decided about it.
            reason: Why, for the event.
        """
        await self._finish(attempt, AttemptEvent(EventKind.UNKNOWN, {"reason": reason}))

    async def _start(self, attempt: Attempt, *, acknowledged: bool) -> Checkpoint | None:
        command_id = attempt.command.command_id
        crash_point("attempt.start.before", command=command_id)
        checkpoint = await self._ports.store.start(attempt.attempt_id, acknowledged=acknowledged)
        crash_point("attempt.start.after", command=command_id)
        return checkpoint

    async def _call(self, attempt: Attempt, checkpoint: Checkpoint | None) -> AttemptEvent:
        command = attempt.command
        reporter = AttemptReporter(attempt, checkpoint, self._ports, self._session)
        crash_point("capability.run.before", command=command.command_id)
        outcome: AttemptEvent | None
        try:
            outcome = await self._ports.capabilities.execute(command, reporter)
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


def _failure(reason: str) -> AttemptEvent:
    # The reason may quote any input, and must be text that can be sent.
    text = reason[:MAX_REASON_CHARS].encode(errors="backslashreplace").decode()
    return AttemptEvent(EventKind.FAILED, {"reason": text})
