"""Known bad: a child that is gone and left no exit code is taken for one that did its work.

It was killed while the worker was down. Caught by ``child-ends-once``: the command succeeded and
its child never came to its end (PRC-05).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import child, offers
from scenarios.capability_rules import CHILD_ENDS, capability_scenario
from scenarios.children import WatchedProcesses, kill_children
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.settings import Settings


class GoneIsDone(WatchedProcesses):
    """Takes no news for good news."""

    async def result(self, token: str) -> int | None:
        """Return success if nothing else is known."""
        return await super().result(token) or 0


def hopeful(settings: Settings) -> GoneIsDone:
    """Make the processes."""
    return GoneIsDone(settings.root / "processes")


GONE_CHILD_TAKEN_FOR_DONE = capability_scenario(
    "gone-child-taken-for-done",
    offers(child("p1")),
    parts=Parts(processes=hopeful),
    pin=broken_by(CHILD_ENDS),
    between=kill_children,
    strike=("process.spawn.after", "process.wait.before"),
)
