"""A store in memory: the contract without a medium, for tests and as the shortest example."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from worker_under_test.checkpoint.errors import NotFound
from worker_under_test.checkpoint.stores.rules import (
    is_repetition,
    require_newer,
    require_writable,
)

if TYPE_CHECKING:
    from worker_under_test.checkpoint.snapshot import Snapshot


class MemoryStore:
    """Keeps the last snapshot of each run for as long as the object lives.

    It may be shared by threads and event loops. It is both a `Store` and a `StoreCAS`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: dict[str, Snapshot] = {}

    async def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot (see `Store.save`).

        Args:
            snapshot: The snapshot; a copy is kept.

        Raises:
            StaleSeq: Its number is 0.
            ConflictingSnapshotError: Other content is stored under this number.
            InvalidSnapshotError: It cannot be stored.
        """
        require_writable(snapshot)
        with self._lock:
            if not is_repetition(self._snapshots.get(snapshot.run_id), snapshot):
                self._snapshots[snapshot.run_id] = snapshot.clone()

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save a snapshot if it is newer (see `StoreCAS.save_if_newer`).

        Args:
            snapshot: The snapshot; a copy is kept.

        Raises:
            StaleSeq: An equal or higher number is stored, or the number is 0.
            InvalidSnapshotError: It cannot be stored.
        """
        require_writable(snapshot)
        with self._lock:
            require_newer(self._snapshots.get(snapshot.run_id), snapshot)
            self._snapshots[snapshot.run_id] = snapshot.clone()

    async def load(self, run_id: str) -> Snapshot:
        """Return a copy of the stored snapshot.

        Args:
            run_id: The run.

        Raises:
            NotFound: There is none.
        """
        with self._lock:
            snapshot = self._snapshots.get(run_id)
        if snapshot is None:
            raise NotFound(f"run {run_id!r}")
        return snapshot.clone()
