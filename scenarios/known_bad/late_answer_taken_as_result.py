"""Known bad: what the outside says later becomes the result of an attempt that is unknown.

The coordinator was told one end and the books tell another. Caught by ``boxes-agree`` (UNK-07).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.capabilities import NO_KEYS, notify, offers
from scenarios.capability_rules import capability_scenario
from scenarios.reference import control
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.event import EventKind
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.event import Event
    from worker_under_test.settings import Settings


class TakesAnswers(SqliteStore):
    """Lets an unknown attempt succeed if somebody said so."""

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save the end; then believe what was said."""
        await super().finish(event, artifacts)
        if event.kind is EventKind.UNKNOWN:
            async with self._database.transaction() as transaction:
                await transaction.execute(
                    "UPDATE attempts SET state = 'SUCCEEDED' WHERE command_id IN"
                    " (SELECT command_id FROM late_answers) AND command_id = ?",
                    (event.command_id,),
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
