"""Known bad (M-25): no task of this process runs the child, so it is started.

The child of the last life is alive, or has done its work. Caught by ``one-effect-per-command``: it
runs twice (PRC-02, ADM-05).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import child, offers
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.command import RunCommand
from worker_under_test.capabilities.registry import installed
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor, ProgressReporter
    from worker_under_test.ports.processes import ProcessIdentity


class StartsAgain(RunCommand):
    """Looks at what this process started, and at nothing else."""

    async def _of_earlier_life(
        self, command: Command, reporter: ProgressReporter, token: str, argv: list[str]
    ) -> ProcessIdentity | None:
        return await self._start(command, reporter, token, argv)


def forgetful(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, StartsAgain(tools.processes))


NOT_OURS_SO_NOT_RUNNING = capability_scenario(
    "not-ours-so-not-running",
    offers(child("p1")),
    parts=Parts(capabilities=forgetful),
    pin=broken_by("one-effect-per-command"),
    strike=("process.spawn.after", "process.wait.before", "process.result.after"),
)
