"""Real, monotonic time."""

from __future__ import annotations

import asyncio
import contextlib


class SystemClock:
    """A `Clock` on the event loop's monotonic clock (OUT-35)."""

    async def sleep(self, delay_s: float) -> None:
        """Wait the whole time."""
        await asyncio.sleep(delay_s)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Wait until an event is set or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()
