"""Known bad (M-13): the command is acknowledged first and saved second.

A worker that is killed in between has accepted a command that it does not know. Caught by
``boxes-agree``: what was acknowledged is not in the inbox; the command never ends, either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.application.intake import Admitted, Intake
from worker_under_test.application.runtime import Roles
from worker_under_test.domain.attempt import Attempt
from worker_under_test.main import Parts
from worker_under_test.ports.local_store import Acceptance

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command


class AckFirst(Intake):
    """Confirms before it saves."""

    async def accept(self, command: Command) -> Admitted | None:
        """Acknowledge, then save."""
        acknowledged = await self._acknowledge(command)
        saved = await self._save(command)
        if saved.outcome is not Acceptance.ACCEPTED:
            return None
        return Admitted(Attempt(saved.attempt_id, command), acknowledged)


ACK_BEFORE_SAVE = variant(
    "ack-before-save", Parts(roles=Roles(intake=AckFirst)), broken_by("boxes-agree")
)
