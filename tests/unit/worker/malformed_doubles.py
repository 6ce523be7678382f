"""What the tests of malformed input have in common: a reporter that saves, a clock without time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from worker_under_test.domain.progress import Checkpoint

if TYPE_CHECKING:
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress


class Saving:
    """A `ProgressReporter` that keeps the last checkpoint."""

    attempt_id = "attempt-1"
    cancelled = False

    def __init__(self, evidence: JsonObject | None = None) -> None:
        self.checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Keep a report."""
        seq = self.checkpoint.seq if self.checkpoint else 0
        self.checkpoint = Checkpoint(seq + 1, progress.to_json(), evidence or {})


class NoTime:
    """A `Clock` on which waits take none."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        """Note a wait."""
        self.slept.append(delay_s)
        await asyncio.sleep(0)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Wait for the event."""
        await event.wait()
