"""Known bad (M-13): the command is acknowledged first and saved second.

A worker that is killed in between has accepted a command that it does not know. Caught by
``boxes-agree``: what was acknowledged is not in the inbox; the command never ends, either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.application.intake import Intake, Refused
from worker_under_test.application.runtime import Roles
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.local_store import Accepted


class AckFirst(Intake):
    """Confirms before it saves."""

    async def save(self, command: Command) -> Accepted | Refused:
        """Acknowledge, then save."""
        await self._confirmation.acknowledge(command)
        return await super().save(command)

    async def answer(self, command: Command, saved: Accepted | Refused) -> bool:  # noqa: ARG002
        """Do nothing: it is acknowledged already."""
        return True


ACK_BEFORE_SAVE = variant(
    "ack-before-save",
    Parts(roles=Roles(intake=AckFirst)),
    broken_by("boxes-agree"),
    strike=(
        "ack.send.after",
        "inbox.save.mid",
        "inbox.commit.before",
    ),
)
