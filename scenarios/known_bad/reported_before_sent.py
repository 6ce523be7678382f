"""Known bad (M-15): an event is marked as reported before it is sent.

A worker that is killed in between never sends it. Caught by ``boxes-agree``: the outbox says
reported, and the coordinator does not have the event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.application.runtime import Roles
from worker_under_test.application.sender import Sender
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.event import Event


class MarkFirst(Sender):
    """Marks before it sends."""

    async def _deliver(self, event: Event) -> None:
        await self._mark(event)
        await self._send(event)


REPORTED_BEFORE_SENT = variant(
    "reported-before-sent",
    Parts(roles=Roles(sender=MarkFirst)),
    broken_by("boxes-agree"),
    strike=(
        "event.send.before",
        "event.mark.mid",
        "event.mark.after",
    ),
)
