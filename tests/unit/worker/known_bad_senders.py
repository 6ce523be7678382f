"""Known-bad workers that only a timeline on a controlled clock shows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker_under_test.application.backoff import MAX_DELAY_S, Backoff
from worker_under_test.application.execution import Execution
from worker_under_test.application.sender import Sender
from worker_under_test.domain.errors import is_delivery

if TYPE_CHECKING:
    from worker_bench import Bench

    from worker_under_test.domain.attempt import Attempt
    from worker_under_test.domain.event import AttemptEvent


class RetriesEverything(Sender):
    """Known bad (M-23): a local database error is taken for a network failure. Caught by T8."""

    def _may_retry(self, error: Exception) -> bool:
        return True


class RetriesRefusals(Sender):
    """Known bad (M-31): a 401 stays in the back-off loop. Caught by T10."""

    def _may_retry(self, error: Exception) -> bool:
        return is_delivery(error)


class Interruptible(Backoff):
    """A back-off that a wake cuts short."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.clock, 1.0)
        self._wake = bench.quiet.outbox_wake

    async def wait(self) -> None:
        """Wait for the delay or the next wake."""
        await self._clock.wait(self._wake, self._delay_s)
        self._delay_s = min(self._delay_s * 2, MAX_DELAY_S)


def interruptible_sender(bench: Bench) -> Sender:
    """Known bad (M-22): a wake interrupts the back-off. Caught by T4."""
    return Sender(bench.ports, bench.session, bench.quiet, Interruptible(bench))


class BlockingProducer(Execution):
    """Known bad (M-20): a producer waits until its wake is taken. Caught by the producers' check.

    In the back-off nobody takes a wake, so attempts stand still for up to 30 seconds.
    """

    async def _finish(self, attempt: Attempt, outcome: AttemptEvent) -> None:
        while self._quiet.outbox_wake.is_set():  # noqa: ASYNC110 - what is wrong with it
            await asyncio.sleep(0)
        await super()._finish(attempt, outcome)
