"""Known bad: a restart asks for the job under a new request id.

The service creates once for each id, and two ids are two jobs. Caught by
``one-effect-per-command`` (UNK-02, UNK-08).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import offers, render, render_service
from scenarios.capability_rules import capability_scenario
from worker_under_test.capabilities.registry import installed
from worker_under_test.capabilities.render import Render, Request
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.ports.bundle import Tools
    from worker_under_test.ports.capability import CapabilityExecutor


class NewId(Render):
    """Takes a new id when it goes on."""

    async def _job(
        self, command: Command, request: Request, spec: JsonObject, *, may_exist: bool
    ) -> str | None:
        if may_exist:
            request = replace(request, request_id=f"{request.request_id}-again")
        return await super()._job(command, request, spec, may_exist=may_exist)


def new_id(tools: Tools) -> CapabilityExecutor:
    """Install the capabilities."""
    return installed(tools, NewId(tools.remote, tools.clock))


REQUEST_ID_MADE_ANEW = capability_scenario(
    "request-id-made-anew",
    offers(render("r1")),
    (render_service(idempotent=True, lookup=False),),
    parts=Parts(capabilities=new_id),
    pin=broken_by("one-effect-per-command"),
    strike=("render.create.before", "render.create.after"),
)
