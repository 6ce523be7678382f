"""Waits between tries: 1, 2, 4, 8, 16, 30, 30 ... seconds (OUT-10..OUT-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point

if TYPE_CHECKING:
    from worker_under_test.ports.clock import Clock

MAX_DELAY_S = 30.0
"""The longest wait between two tries, in seconds."""


class Backoff:
    """A wait that doubles each time, up to `MAX_DELAY_S`.

    Args:
        clock: Where the waiting is done.
        initial_s: The first wait, in seconds.
    """

    def __init__(self, clock: Clock, initial_s: float) -> None:
        self._clock = clock
        self._initial_s = initial_s
        self._delay_s = initial_s

    def reset(self) -> None:
        """Begin again with the first wait: a try succeeded."""
        self._delay_s = self._initial_s

    async def wait(self) -> None:
        """Wait; the next wait is twice as long. Nothing cuts it short (OUT-13)."""
        crash_point("backoff.wait.before")
        await self._clock.sleep(self._delay_s)
        self._delay_s = min(self._delay_s * 2, MAX_DELAY_S)
