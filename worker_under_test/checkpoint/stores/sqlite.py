"""A store in a SQLite database of its own, shared by any number of processes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Self

import aiosqlite

from harness.points import crash_point
from worker_under_test.checkpoint.stores.sqlite_table import (
    create_table,
    read,
    write,
    write_if_newer,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from types import TracebackType

    from worker_under_test.checkpoint.snapshot import Snapshot

_REQUIRED_PRAGMAS = {"journal_mode": "wal", "synchronous": 2}
"""What `SqliteStore.open` sets and then reads back. With ``synchronous`` FULL (2) a committed
transaction also survives power loss; with NORMAL, in WAL mode, it need not (STO-19)."""


class PragmaRefusedError(Exception):
    """SQLite did not take a setting on which durability rests."""


class SqliteStore:
    """Snapshots in the table ``checkpoint_snapshot``, each save a transaction of its own.

    It is both a `Store` and a `StoreCAS`. An object belongs to one event loop; other loops, threads
    and processes open their own on the same path. A save that has to wait longer than the busy
    timeout for another process raises ``sqlite3.OperationalError``, and nothing is written.

    To write a snapshot together with other rows, use `sqlite_table.write_if_newer` instead.

    Args:
        connection: A connection as `open` makes it, used by nobody else.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        # Tasks share the connection and so its transaction: without the lock one would commit
        # another's half, or load what is rolled back a moment later.
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path, *, busy_timeout_s: float = 5.0) -> Self:
        """Open or create the database and make sure that commits are durable.

        Args:
            path: The database file.
            busy_timeout_s: How long to wait for another process's transaction, in seconds.

        Raises:
            PragmaRefusedError: Write-ahead logging or full synchronisation could not be had.
        """
        connection = await aiosqlite.connect(path, timeout=busy_timeout_s, isolation_level=None)
        try:
            await _require_durability(connection)
            await create_table(connection)
        except BaseException:
            await connection.close()
            raise
        return cls(connection)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def save(self, snapshot: Snapshot) -> None:
        """Save a snapshot (see `Store.save`).

        Args:
            snapshot: The snapshot; its present content is written.

        Raises:
            StaleSeq: Its number is 0.
            ConflictingSnapshotError: Other content is stored under this number.
            InvalidSnapshotError: It cannot be stored.
            sqlite3.Error: The database failed; whether the snapshot landed is open.
        """
        snapshot = snapshot.clone()
        async with self._transaction() as connection:
            await write(connection, snapshot)

    async def save_if_newer(self, snapshot: Snapshot) -> None:
        """Save a snapshot if it is newer (see `StoreCAS.save_if_newer`).

        Args:
            snapshot: The snapshot; its present content is written.

        Raises:
            StaleSeq: An equal or higher number is stored, or the number is 0.
            InvalidSnapshotError: It cannot be stored.
            sqlite3.Error: The database failed; whether the snapshot landed is open.
        """
        snapshot = snapshot.clone()
        async with self._transaction() as connection:
            await write_if_newer(connection, snapshot)
        crash_point("snapshot.save.after", run=snapshot.run_id, seq=snapshot.seq)

    async def load(self, run_id: str) -> Snapshot:
        """Return the stored snapshot.

        Args:
            run_id: The run.

        Raises:
            NotFound: There is none.
            DamagedRecordError: The row, or the database, is not what was written.
        """
        async with self._lock:
            return await read(self._connection, run_id)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._lock:
            try:
                await self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                await self._connection.commit()
            except BaseException:
                # The connection's thread does what it is given in order. So whatever this task was
                # waiting for when it was cancelled has ended before the rollback, and the rollback
                # before anything the next task asks for, even if this wait is cancelled as well.
                # An error here would only hide the first; the next BEGIN meets it again.
                with suppress(Exception):
                    await self._connection.rollback()
                raise


async def _require_durability(connection: aiosqlite.Connection) -> None:
    for pragma, wanted in _REQUIRED_PRAGMAS.items():
        await connection.execute(f"PRAGMA {pragma} = {wanted}")
        async with connection.execute(f"PRAGMA {pragma}") as cursor:
            row = await cursor.fetchone()
        if row is None or row[0] != wanted:
            raise PragmaRefusedError(f"{pragma} is {row and row[0]!r} and must be {wanted!r}")
