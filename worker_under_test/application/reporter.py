"""Turns a capability's progress into a checkpoint and a heartbeat (CAP-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.domain.errors import is_delivery
from worker_under_test.domain.progress import Checkpoint

if TYPE_CHECKING:
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.application.running import Handle
    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress
    from worker_under_test.ports.bundle import Ports


class AttemptReporter:
    """A `ProgressReporter` for one execution of one attempt.

    Args:
        attempt: The attempt.
        checkpoint: Its last checkpoint, from an earlier life.
        ports: The store for checkpoints, the control plane for heartbeats.
        session: The session to send heartbeats under.
        handle: The hold on the execution.
    """

    def __init__(
        self,
        attempt: Attempt,
        checkpoint: Checkpoint | None,
        ports: Ports,
        session: CurrentSession,
        handle: Handle,
    ) -> None:
        self._attempt = attempt
        self._checkpoint = checkpoint
        self._ports = ports
        self._session = session
        self._handle = handle
        self._closed = False
        self.store_failure: Exception | None = None
        """What the local store raised, if it did: the capability may hide it, and must not."""

    @property
    def attempt_id(self) -> str:
        """Identity of the attempt."""
        return self._attempt.attempt_id

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint."""
        return self._checkpoint

    @property
    def cancelled(self) -> bool:
        """Whether an order cancelled the command."""
        return self._handle.cancelled

    def close(self) -> None:
        """End the line: what is reported from now on is ignored (CAP-11)."""
        self._closed = True

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Save a checkpoint, then send a heartbeat (CAP-07)."""
        if self._closed:
            self._ports.observation.event("late report ignored", attempt=self.attempt_id)
            return
        seq = 1 if self._checkpoint is None else self._checkpoint.seq + 1
        await self._save(Checkpoint(seq, progress.to_json(), evidence or {}))
        await self._send_heartbeat(progress)

    async def _save(self, checkpoint: Checkpoint) -> None:
        command_id = self._attempt.command.command_id
        crash_point("checkpoint.save.before", command=command_id)
        try:
            saved = await self._ports.store.save_checkpoint(self._attempt, checkpoint)
        except Exception as error:
            self.store_failure = error
            raise
        if saved:
            self._checkpoint = checkpoint
        crash_point("checkpoint.save.after", command=command_id)

    async def _send_heartbeat(self, progress: Progress) -> None:
        try:
            await self._ports.control.heartbeat(self._session.session, self._attempt, progress)
        except Exception as error:
            if not is_delivery(error):
                raise
            # Not evidence of anything (SES-05): the work goes on without it.
            self._ports.observation.event("heartbeat lost", error, attempt=self.attempt_id)
            return
        crash_point("heartbeat.send.after", command=self._attempt.command.command_id)
