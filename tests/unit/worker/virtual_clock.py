"""Time that only a test moves, and waiting until nothing more can happen without it."""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


SETTLING_ROUNDS = 50


async def settled() -> None:
    """Let every task run until it waits for something that only the test can give."""
    for _ in range(SETTLING_ROUNDS):
        await asyncio.sleep(0)


class VirtualClock:
    """A `Clock` whose time only a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []
        self._timers: list[tuple[float, int, asyncio.Future[None]]] = []

    def _timer(self, delay_s: float) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._timers, (self.now_s + delay_s, len(self._timers), future))
        return future

    def at(self, time_s: float, action: Callable[[], object]) -> None:
        """Do something at a time."""
        self._timer(time_s - self.now_s).add_done_callback(lambda _: action())

    async def sleep(self, delay_s: float) -> None:
        """Back off."""
        self.slept.append(delay_s)
        await self._timer(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Idle."""
        timer = self._timer(timeout_s)
        woken = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait((timer, woken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()

    async def run_until(self, time_s: float) -> None:
        """Let time pass, one timer after the other."""
        await settled()
        while self._timers and self._timers[0][0] <= time_s:
            when_s, _, future = heapq.heappop(self._timers)
            if future.done():
                continue
            self.now_s = when_s
            future.set_result(None)
            await settled()
        self.now_s = time_s
