"""Known bad (M-14): the result and its event are saved in two transactions.

A worker that is killed in between has ended an attempt and will never say so. Caught by
``boxes-agree``: a result without its one event (INV-6, ATT-02).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.points import crash_point
from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.artifact import Artifact
    from worker_under_test.domain.event import Event
    from worker_under_test.settings import Settings


class TwoTransactions(SqliteStore):
    """Commits the result before it saves the event."""

    async def finish(self, event: Event, artifacts: tuple[Artifact, ...]) -> None:
        """Save the result; then save the event."""
        async with self._database.transaction() as transaction:
            await self._insert_result(transaction, event, artifacts)
        crash_point("result.save.mid", event=event.kind, command=event.command_id)
        async with self._database.transaction() as transaction:
            await self._insert_event(transaction, event)


def two_transactions(settings: Settings) -> TwoTransactions:
    """Make the store."""
    return TwoTransactions(settings.root / "worker.db", init=settings.init)


EVENT_APART_FROM_RESULT = variant(
    "event-apart-from-result",
    Parts(store=two_transactions),
    broken_by("boxes-agree"),
    strike=(
        "result.save.mid",
        "result.commit.before",
    ),
)
