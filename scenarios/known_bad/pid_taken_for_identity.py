"""Known bad: a pid alone says which process it is.

The child came to its end while the worker was down, and its pid belongs to another process now.
That one is taken for the child and waited for. Caught by ``strangers-left-alone`` (PRC-03).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import child, offers
from scenarios.capability_rules import capability_scenario
from scenarios.children import WatchedProcesses, reuse_pids
from scenarios.commands import AMONG_STRANGERS
from worker_under_test.adapters.local_processes import process_under
from worker_under_test.capabilities.command import RunCommand, identity_of
from worker_under_test.capabilities.registry import installed
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor, ProgressReporter
    from worker_under_test.ports.processes import ProcessIdentity
    from worker_under_test.settings import Settings


class AsksForThePid(RunCommand):
    """Goes on with whatever is alive under the saved pid."""

    async def _of_earlier_life(
        self, command: Command, reporter: ProgressReporter, token: str, argv: list[str]
    ) -> ProcessIdentity | None:
        saved = identity_of(reporter.checkpoint)
        if saved is not None and process_under(saved.pid) is not None:
            return saved
        return await super()._of_earlier_life(command, reporter, token, argv)


class WaitsForThePid(WatchedProcesses):
    """Waits for whatever is alive under a pid."""

    async def wait(self, identity: ProcessIdentity) -> None:
        """Wait for the end of the process that has the pid now."""
        await super().wait(process_under(identity.pid) or identity)


def by_pid(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, AsksForThePid(tools.processes))


def waits_for_pids(settings: Settings) -> WaitsForThePid:
    """Make the processes."""
    return WaitsForThePid(settings.root / "processes")


PID_TAKEN_FOR_IDENTITY = capability_scenario(
    "pid-taken-for-identity",
    offers(child("p1")),
    parts=Parts(capabilities=by_pid, processes=waits_for_pids),
    pin=broken_by("strangers-left-alone"),
    between=reuse_pids,
    strike=("process.spawn.after", "process.wait.before"),
    oracles=AMONG_STRANGERS,
)
