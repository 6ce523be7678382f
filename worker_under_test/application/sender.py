"""The one sender of a session: reads the outbox, delivers, marks (OUT-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.application.cancelling import being_cancelled
from worker_under_test.application.flush_requests import FlushRequests
from worker_under_test.domain.errors import DomainError, Kind, retryable_delivery

if TYPE_CHECKING:
    from worker_under_test.application.backoff import Backoff
    from worker_under_test.application.current_session import CurrentSession
    from worker_under_test.application.quiet import Quiet
    from worker_under_test.domain.event import Event
    from worker_under_test.ports.bundle import Ports

IDLE_POLL_S = 1.0
"""How often the outbox is read without a wake, in seconds (OUT-05)."""


class Sender:
    """Delivers saved events in the order of saving.

    Args:
        ports: The store where events are saved, the control plane where they are delivered.
        session: The session to deliver under.
        quiet: Holds the wake, and is told of each flush that succeeded.
        backoff: The waits after failures; the sender's own.
    """

    def __init__(
        self, ports: Ports, session: CurrentSession, quiet: Quiet, backoff: Backoff
    ) -> None:
        self._ports = ports
        self._session = session
        self._quiet = quiet
        self._backoff = backoff
        self._requests = FlushRequests()

    async def run(self) -> None:
        """Send until cancelled. The first flush is at once, whatever was woken (OUT-03).

        Being cancelled is the end of the session and no error, whatever fails meanwhile (OUT-25).

        Raises:
            Exception: A failure that waiting cannot heal: of the local store, or a delivery that
                was refused as unauthenticated or forbidden (OUT-22). Unsent events stay saved.
        """
        self._backoff.reset()
        self._requests.open()
        try:
            while await self._round():
                pass
        finally:
            self._requests.close()

    async def flush(self) -> None:
        """Ask for one round of sending and wait for its end (OUT-16, OUT-21).

        The round begins after the request. A request that comes during a back-off is answered
        when that is over (OUT-18); the caller bounds its own waiting (OUT-19).

        Raises:
            Exception: What the round failed with, also if the sender will try again (OUT-17).
            DomainError: Of kind conflict, if there is no sender, or it ended first (OUT-19).
        """
        answer = self._requests.ask()
        self._quiet.outbox_wake.set()
        await answer

    async def _round(self) -> bool:
        """Flush once and wait; say whether to go on."""
        # Taken before the flush reads, so an event saved meanwhile has its flush (OUT-08).
        self._quiet.outbox_wake.clear()
        requests = self._requests.take()
        try:
            await self._flush()
        except Exception as error:
            # Before the retry decision: no requester is kept through the wait (OUT-17).
            requests.answer(error)
            if being_cancelled():
                return False
            if not self._may_retry(error):
                raise
            self._ports.observation.event("event delivery deferred", error)
            await self._backoff.wait()
            return True
        except BaseException:
            requests.answer(DomainError(Kind.CONFLICT, "the session ended in the round"))
            raise
        requests.answer(None)
        self._backoff.reset()
        self._quiet.flushed()
        await self._ports.clock.wait(self._quiet.outbox_wake, IDLE_POLL_S)
        return True

    def _may_retry(self, error: Exception) -> bool:
        return retryable_delivery(error)

    async def _flush(self) -> None:
        for event in await self._ports.store.unreported():
            await self._deliver(event)

    async def _deliver(self, event: Event) -> None:
        await self._send(event)
        await self._mark(event)

    async def _send(self, event: Event) -> None:
        crash_point("event.send.before", event=event.kind, command=event.command_id)
        await self._ports.control.send_event(self._session.session, event)
        crash_point("event.send.after", event=event.kind, command=event.command_id)

    async def _mark(self, event: Event) -> None:
        await self._ports.store.mark_reported(event)
        crash_point("event.mark.after", event=event.kind, command=event.command_id)
