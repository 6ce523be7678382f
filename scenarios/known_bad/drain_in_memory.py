"""Known bad (M-19): that the worker is draining is known in memory only.

A worker that is killed after it confirmed the drain comes back and takes work in. Caught by
``draining-admits-nothing``: the inbox has work between the order to drain and the one that ends it
(INV-14, DRN-01).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.scenario import broken_by
from scenarios.reference_control import control_variant
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.order import Directives
from worker_under_test.main import Parts

if TYPE_CHECKING:
    from worker_under_test.settings import Settings


class Forgetful(SqliteStore):
    """Remembers no directives from an earlier life."""

    async def directives(self) -> Directives:
        """Return what a new worker begins with."""
        return Directives()


def forgetful(settings: Settings) -> Forgetful:
    """Make the store."""
    return Forgetful(settings.root / "worker.db", init=settings.init)


DRAIN_IN_MEMORY = control_variant(
    "drain-in-memory",
    Parts(store=forgetful),
    broken_by("draining-admits-nothing"),
    strike=(
        "result.save.mid",
        "result.commit.before",
        "result.commit.after",
    ),
)
