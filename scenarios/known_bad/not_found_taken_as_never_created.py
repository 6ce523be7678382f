"""Known bad: a job that a look-up does not show is created again.

The service shows a new job late, and creates a second one. Caught by ``one-effect-per-command``
(REC-10, UNK-08).
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
    from worker_under_test.ports.capability import CapabilityExecutor


class TakesNotFoundAsProof(Render):
    """Creates whatever is not found."""

    def _may_create_again(self, request: Request) -> bool:  # noqa: ARG002
        return True


def credulous(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, TakesNotFoundAsProof(tools.remote, tools.clock))


NOT_FOUND_TAKEN_AS_NEVER_CREATED = capability_scenario(
    "not-found-taken-as-never-created",
    offers(render("r1")),
    (render_service(idempotent=False, lookup=True, late=2),),
    parts=Parts(capabilities=credulous),
    pin=broken_by("one-effect-per-command"),
    strike=("render.create.before", "render.create.after"),
)
