"""Known bad (M-18): the capacity is checked without the lock.

Two commands look at once, both find room for one, and both come in. Caught by ``within-capacity``
on the crash image (INV-15, ADM-01).

The slow disk of this worker is what makes it sure: all that came together are looked at before one
of them is saved, and all are saved before one of them is confirmed.
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
"""Of virtual time, which passes when nothing else can go on."""


class Unlocked(Intake):
    """Checks, and saves some time later with what came along, as on a slow disk."""

    _pause: asyncio.Event | None = None

    async def save(self, command: Command) -> Accepted | Refused:
        """Save a command for which there was room when it was looked for."""
        reason = await self._refusal(command)
        if reason is not None:
            self._admission.turn_away(command.command_id)
            return Refused(reason)
        await self._wait_for_others()
        saved = await self._ports.store.accept(command, self._ports.ids.new("attempt"))
        await self._wait_for_others()
        return saved

    async def _wait_for_others(self) -> None:
        """Wait until every command that came along waits here, too."""
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
    ),
)
