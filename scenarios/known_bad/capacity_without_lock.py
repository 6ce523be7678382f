"""Known bad (M-18): the capacity is checked without the lock.

Two commands look at once, both find room for one, and both come in. Caught by ``within-capacity``
on the crash image (INV-15, ADM-01).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference_control import control_variant
from worker_under_test.application.intake import Intake, Refused
from worker_under_test.application.runtime import Roles
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.command import Command
    from worker_under_test.ports.local_store import Accepted

_PAUSE_S = 0.001
"""Between check and saving; in it every command that came along is checked too."""


class Unlocked(Intake):
    """Checks, and saves some time later, as on a slow disk."""

    _pause: asyncio.Event | None = None

    async def save(self, command: Command) -> Accepted | Refused:
        """Save a command for which there was room when it was looked for."""
        reason = await self._refusal(command)
        if reason is not None:
            self._admission.turn_away(command.command_id)
            return Refused(reason)
        await self._be_slow()
        return await self._ports.store.accept(command, self._ports.ids.new("attempt"))

    async def _be_slow(self) -> None:
        if self._pause is not None:
            await self._pause.wait()
            return
        self._pause = asyncio.Event()
        await self._ports.clock.sleep(_PAUSE_S)
        self._pause.set()
        self._pause = None


CAPACITY_WITHOUT_LOCK = control_variant(
    "capacity-without-lock",
    Parts(roles=Roles(intake=Unlocked)),
    broken_by("within-capacity"),
    strike=(
        "ack.send.after",
        "attempt.start.before",
        "attempt.start.after",
        "capability.run.before",
    ),
)
