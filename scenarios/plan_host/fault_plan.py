"""The faults of a plan host: slow steps, late commits, and stores that fail."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from worker_under_test.checkpoint import Snapshot


@dataclass(frozen=True, slots=True)
class PlannedFaults:
    """The steps of a plan host that go slow, and the saves and loads that fail.

    Attributes:
        slow: Steps whose work takes effect late: everything else that can go on goes first.
        late: Steps whose commit begins late, in the same way.
        overtaken: Steps whose save is slow inside a store that can be overtaken.
        twice: Steps whose snapshot is committed a second time.
        busy: Steps whose first save of an incarnation fails.
        busy_from: Number of crashes from which on saves and loads fail.
        busy_loads: How many loads fail at the beginning of such an incarnation; none in the first.
    """

    slow: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    overtaken: frozenset[str] = frozenset()
    twice: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()
    busy_from: int = 0
    busy_loads: int = 0


class BothStores(Protocol):
    """A store that is both `Store` and `StoreCAS`."""

    async def save(self, snapshot: Snapshot) -> None:
        """See `Store.save`."""

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """See `StoreCAS.save_if_newer`."""

    async def load(self, run_id: str) -> Snapshot:
        """See `Store.load`."""


@dataclass
class Busy:
    """A store whose first save of some steps, and whose first loads, fail.

    Attributes:
        inner: The store behind it.
        steps: Steps whose first save fails; a snapshot is that of the step it names last.
        loads: How many loads fail.
    """

    inner: BothStores
    steps: set[str] = field(default_factory=set)
    loads: int = 0

    async def save(self, snapshot: Snapshot) -> None:
        """Save, or fail once."""
        self._fail_once(snapshot)
        await self.inner.save(snapshot)

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save if newer, or fail once."""
        self._fail_once(snapshot)
        await self.inner.save_if_newer(snapshot)

    async def load(self, run_id: str) -> Snapshot:
        """Load, or fail."""
        if self.loads:
            self.loads -= 1
            raise sqlite3.OperationalError("database is locked")
        return await self.inner.load(run_id)

    def _fail_once(self, snapshot: Snapshot) -> None:
        step = snapshot.done[-1] if snapshot.done else ""
        if step in self.steps:
            self.steps.discard(step)
            raise sqlite3.OperationalError("database is locked")


@dataclass(frozen=True)
class Plain:
    """A store that saves what it is given, in the place of one that compares (STO-16).

    Attributes:
        inner: The store behind it.
    """

    inner: BothStores

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save, newer or not."""
        await self.inner.save(snapshot)

    async def load(self, run_id: str) -> Snapshot:
        """Load."""
        return await self.inner.load(run_id)
