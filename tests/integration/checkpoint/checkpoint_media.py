"""The three stores behind one way of opening them, so that one test body serves all."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from worker_under_test.checkpoint import Store, StoreCAS
from worker_under_test.checkpoint.stores.file import FileStore
from worker_under_test.checkpoint.stores.memory import MemoryStore
from worker_under_test.checkpoint.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

KINDS = ("memory", "sqlite", "file")
DURABLE_KINDS = ("sqlite", "file")


class BothStores(Store, StoreCAS, Protocol):
    """What each of the three stores is."""


class Medium:
    """Where one store keeps its records; opened again it holds the same ones.

    Args:
        kind: ``memory``, ``sqlite`` or ``file``.
        folder: A directory of its own.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.database = folder / "snapshots.db"
        self._memory = MemoryStore() if kind == "memory" else None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[BothStores]:
        """Open the store for one event loop."""
        match self.kind:
            case "memory":
                assert self._memory is not None
                yield self._memory
            case "file":
                yield FileStore(self.folder)
            case _:
                async with await SqliteStore.open(self.database, busy_timeout_s=30) as store:
                    yield store

    def count_records(self) -> int:
        """Return how many records there are, read past the store."""
        match self.kind:
            case "memory":
                assert self._memory is not None
                return len(self._memory._snapshots)
            case "file":
                return sum(path.suffix == ".json" for path in self.folder.iterdir())
            case _:
                connection = sqlite3.connect(self.database)
                try:
                    (count,) = connection.execute(
                        "SELECT count(*) FROM checkpoint_snapshot"
                    ).fetchone()
                finally:
                    connection.close()
                return int(count)
