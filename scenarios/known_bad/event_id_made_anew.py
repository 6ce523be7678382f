"""Known bad (M-32): an event that a restart finds unsent gets a new id.

A worker that is killed after the server stored the event sends it again as another one. Caught by
``events-once``: one end under two ids (INV-4, ATT-06).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference import variant
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.domain.event import Event
    from worker_under_test.domain.registration import Incarnation
    from worker_under_test.settings import Settings


class NewIds(SqliteStore):
    """Renames what an earlier life left unsent."""

    async def begin_incarnation(self, instance_id: str) -> Incarnation:
        """Begin, and remember what is to be renamed."""
        incarnation = await super().begin_incarnation(instance_id)
        self._suffix = f"-again-{incarnation.boot}"
        self._old = {event.event_id for event in await super().unreported()}
        return incarnation

    async def unreported(self) -> list[Event]:
        """Return the unsent events, those of earlier lives under new ids."""
        return [
            replace(event, event_id=event.event_id + self._suffix)
            if event.event_id in self._old
            else event
            for event in await super().unreported()
        ]

    async def mark_reported(self, event: Event) -> None:
        """Mark an event under the id that it was saved with."""
        saved = event.event_id.removesuffix(self._suffix)
        await super().mark_reported(replace(event, event_id=saved))


def new_ids(settings: Settings) -> NewIds:
    """Make the store."""
    return NewIds(settings.root / "worker.db", init=settings.init)


EVENT_ID_MADE_ANEW = variant(
    "event-id-made-anew",
    Parts(store=new_ids),
    broken_by("events-once"),
    strike=(
        "event.send.after",
        "event.mark.mid",
        "event.mark.after",
        "result.commit.after",
    ),
)
