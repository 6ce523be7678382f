"""Waiting. Nothing the worker saves depends on the time of day, so there is no ``now``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Clock(Protocol):
    """Monotonic waits (OUT-35)."""

    async def sleep(self, delay_s: float) -> None:
        """Back off: wait the whole time, whatever happens.

        Args:
            delay_s: How long, in seconds.
        """

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Idle: wait until an event is set or the time is over, whichever is first.

        Args:
            event: The event; it is not cleared.
            timeout_s: How long at most, in seconds.
        """
