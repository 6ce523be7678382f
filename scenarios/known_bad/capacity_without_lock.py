"""Known bad (M-18): the capacity is checked without the lock.

Two commands look at once, both find room for one, and both come in. Caught by ``within-capacity``
on the crash image (INV-15, ADM-01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference_control import control_variant
from worker_under_test.application.intake import Intake, Refused
from worker_under_test.application.runtime import Roles
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.local_store import Accepted

_DETOURS = 4
"""Reads between check and saving: they make the window wide enough for nearly every seed."""


class Unlocked(Intake):
    """Checks, and saves some time later."""

    async def save(self, command: Command) -> Accepted | Refused:
        """Save a command for which there was room when it was looked for."""
        reason = await self._refusal(command)
        if reason is not None:
            self._admission.turn_away(command.command_id)
            return Refused(reason)
        for _ in range(_DETOURS):
            await self._ports.store.directives()
        return await self._ports.store.accept(command, self._ports.ids.new("attempt"))


CAPACITY_WITHOUT_LOCK = control_variant(
    "capacity-without-lock", Parts(roles=Roles(intake=Unlocked)), broken_by("within-capacity")
)
