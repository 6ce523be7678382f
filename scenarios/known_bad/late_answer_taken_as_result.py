"""Known bad: what the outside says later becomes the result of an attempt that is unknown.

The coordinator was told one end and the books tell another. Caught by ``boxes-agree`` (UNK-07).
Whether the answer or the restart's decision is saved first is left to the draws: it is believed
whenever both are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import NO_KEYS, notify, offers
from scenarios.capability_rules import capability_scenario
from scenarios.reference import control
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.command import Command
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.order import Order
    from worker_under_test.ports.local_store import Accepted
    from worker_under_test.settings import Settings


class TakesAnswers(SqliteStore):
    """Lets an unknown attempt succeed if somebody said so."""

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save the end; then believe what was said before."""
        await super().finish(event, artifacts)
        await self._believe()

    async def accept_order(
        self, command: Command, order: Order, attempt_id: str, event_id: str
    ) -> Accepted:
        """Save the order; then believe what it said of an end that was saved before."""
        accepted = await super().accept_order(command, order, attempt_id, event_id)
        await self._believe()
        return accepted

    async def _believe(self) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute(
                "UPDATE attempts SET state = 'SUCCEEDED' WHERE state = 'UNKNOWN'"
                " AND command_id IN (SELECT command_id FROM late_answers)"
            )


def taking(settings: Settings) -> TakesAnswers:
    """Make the store."""
    return TakesAnswers(settings.root / "worker.db", init=settings.init)


LATE_ANSWER_TAKEN_AS_RESULT = capability_scenario(
    "late-answer-taken-as-result",
    offers(notify("n1"), control("e", "evidence", {"command_id": "n1", "said": {"sent": True}})),
    (NO_KEYS,),
    parts=Parts(store=taking),
    pin=broken_by("boxes-agree"),
    strike=("notify.send.before", "notify.send.after", "capability.run.after"),
)
