"""Known bad (M-17): RUNNING is saved before a job is created, and nothing else is.

A worker that is killed between the call and its record finds an attempt without a request id, and
creates another job. Caught by ``one-effect-per-command`` (UNK-01, UNK-04).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import offers, render, render_service
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.registry import installed
from worker_under_test.capabilities.render import Render, Request
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor, ProgressReporter


class Unsaved(Render):
    """Saves no request id before the call."""

    async def _save(self, request: Request, reporter: ProgressReporter) -> None:
        """Do nothing."""


def unsaved(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, Unsaved(tools.remote, tools.clock))


RUNNING_IS_THE_ONLY_GUARD = capability_scenario(
    "running-is-the-only-guard",
    offers(render("r1")),
    (render_service(idempotent=False, lookup=True),),
    parts=Parts(capabilities=unsaved),
    pin=broken_by("one-effect-per-command"),
    strike=("render.create.before", "render.create.after"),
)
