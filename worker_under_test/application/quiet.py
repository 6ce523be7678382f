"""Knows when nothing is left to do, and says so once."""

from __future__ import annotations

import asyncio

from harness.points import crash_point


class Quiet:
    """What is still to be done in this process.

    The worker is idle when the stream has been read up to its end, no command or attempt is being
    handled, and the last flush emptied the outbox. ``worker.idle.before`` is hit once for each
    time it becomes idle, at the change that made it so and never by the passing of time.

    Attributes:
        outbox_wake: Set when an event was saved; wakes are merged and a producer never waits
            (OUT-06). The sender clears it before it reads (OUT-08).
    """

    def __init__(self) -> None:
        self.outbox_wake = asyncio.Event()
        self._caught_up = False
        self._in_hand = 0
        self._outbox_empty = False
        self._idle = False

    def connected(self, *, caught_up: bool) -> None:
        """Note that the stream was read to its end, or that a session begins and it was not."""
        self._caught_up = caught_up
        if not caught_up:
            self._outbox_empty = False
            self._idle = False
        self._settle()

    def take(self) -> None:
        """Note that a command or an attempt is in hand."""
        self._in_hand += 1
        self._idle = False

    def put_down(self) -> None:
        """Note that one of those in hand is finished."""
        self._in_hand -= 1
        self._settle()

    def event_saved(self) -> None:
        """Note that the outbox holds an event, and wake the sender."""
        self._outbox_empty = False
        self.outbox_wake.set()

    def flushed(self) -> None:
        """Note that everything the last flush had read was delivered."""
        # A wake since the flush began means that it may not have read everything.
        self._outbox_empty = not self.outbox_wake.is_set()
        self._settle()

    def _settle(self) -> None:
        nothing_left = self._caught_up and self._in_hand == 0 and self._outbox_empty
        if nothing_left and not self._idle:
            self._idle = True
            crash_point("worker.idle.before")
