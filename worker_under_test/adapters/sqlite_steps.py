"""Snapshots and results of steps in the worker's own database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_under_test.checkpoint.stores.sqlite_table import read, write_if_newer
from worker_under_test.domain.json_value import canonical

if TYPE_CHECKING:
    from worker_under_test.adapters.sqlite_connection import SqliteConnection
    from worker_under_test.checkpoint import Snapshot
    from worker_under_test.ports.step_store import StepResult


class SqliteSteps:
    """A `StepStore` on the connection of the local store.

    Args:
        database: The connection; opened and closed by the local store.
    """

    def __init__(self, database: SqliteConnection) -> None:
        self._database = database

    async def load(self, run_id: str) -> Snapshot:
        """Return the stored snapshot, as committed."""
        async with self._database.transaction() as transaction:
            return await read(transaction, run_id)

    async def save_step(self, snapshot: Snapshot, result: StepResult | None) -> None:
        """Save snapshot and result in one transaction (ORC-09)."""
        async with self._database.transaction() as transaction:
            await write_if_newer(transaction, snapshot)
            if result is not None:
                # A step that runs again gives its result again; the last one counts.
                await transaction.execute(
                    "INSERT INTO step_results (run_id, step_id, seq, output) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (run_id, step_id) DO UPDATE SET"
                    " seq = excluded.seq, output = excluded.output",
                    (snapshot.run_id, result.step_id, snapshot.seq, canonical(result.output)),
                )
