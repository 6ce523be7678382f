"""Known bad: the child's token is saved when the child has been started.

A worker that is killed in between knows of no child and starts another. Caught by
``one-effect-per-command`` (PRC-04).
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
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor, ProgressReporter


class SavesLater(RunCommand):
    """Makes a token, and saves it with the identity."""

    async def _save_token(self, reporter: ProgressReporter) -> str:
        return f"command-{reporter.attempt_id}"


def later(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, SavesLater(tools.processes))


TOKEN_SAVED_AFTER_SPAWN = capability_scenario(
    "token-saved-after-spawn",
    offers(child("p1")),
    parts=Parts(capabilities=later),
    pin=broken_by("one-effect-per-command"),
    strike=("process.spawn.after", "process.identity.before"),
)
