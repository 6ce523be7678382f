"""One SQLite connection: opened with checked settings, used by one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiosqlite

from harness.points import crash_point
from worker_under_test.adapters.sqlite_schema import SCHEMA, SCHEMA_VERSION
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator
    from pathlib import Path

_SETTINGS = """
PRAGMA busy_timeout = 5000;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
"""

_ASK_SETTINGS = """
SELECT (SELECT journal_mode FROM pragma_journal_mode),
       (SELECT synchronous FROM pragma_synchronous),
       (SELECT foreign_keys FROM pragma_foreign_keys),
       (SELECT user_version FROM pragma_user_version)
"""

_WANTED = ("wal", 2, 1)
"""What a commit needs to survive a power loss: WAL, a sync at each commit, and foreign keys."""


class SqliteConnection:
    """A connection of the worker's own; its thread lives from `open` to `close`.

    Args:
        path: The database file; its directory exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None
        # aiosqlite lets statements of several tasks interleave; transactions must not.
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Open the file, check the settings, and create the schema if the file is new.

        Raises:
            DomainError: Of kind internal, if a setting did not take or the schema is of another
                version: the worker must not go on with less durability than it promises.
            sqlite3.Error: The file cannot be used.
        """
        crash_point("store.open.before")
        # isolation_level=None: sqlite3 starts no transaction behind our back.
        self._connection = await aiosqlite.connect(self._path, isolation_level=None)
        await self._connection.executescript(_SETTINGS)
        (answer,) = await self._connection.execute_fetchall(_ASK_SETTINGS)
        *settings, version = answer
        if tuple(settings) != _WANTED:
            raise DomainError(Kind.INTERNAL, f"SQLite did not take the settings: {settings}")
        if version == 0:
            await self._create(self._connection)
        elif version != SCHEMA_VERSION:
            raise DomainError(Kind.INTERNAL, f"the database has schema version {version}")
        crash_point("store.open.after")

    @staticmethod
    async def _create(connection: aiosqlite.Connection) -> None:
        await connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}")
        crash_point("store.migrate.mid")
        await connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        await connection.execute("COMMIT")

    async def close(self) -> None:
        """Close the file and join the thread; does nothing if it is not open."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        await connection.close()
        # close() returns when the thread has nothing left to do but end; a process that forks
        # next needs it gone. Older aiosqlite connections are threads, newer ones hold one.
        thread = getattr(connection, "_thread", connection)
        if isinstance(thread, threading.Thread):
            thread.join()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """Open a write transaction; commit it at the end, roll it back on any error.

        Yields:
            The connection, inside the transaction.
        """
        async with self._lock:
            connection = self._opened()
            try:
                await connection.execute("BEGIN IMMEDIATE")
                yield connection
                await connection.execute("COMMIT")
            except BaseException:
                # A cancelled task leaves no transaction open either. After a failed BEGIN or
                # COMMIT there may be none to roll back; the first error is the one that counts.
                with contextlib.suppress(aiosqlite.Error):
                    await connection.execute("ROLLBACK")
                raise

    async def read(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        """Read rows.

        Args:
            sql: One SELECT.
            *parameters: Its parameters.

        Returns:
            All its rows.
        """
        async with self._lock:
            return list(await self._opened().execute_fetchall(sql, parameters))

    def _opened(self) -> aiosqlite.Connection:
        if self._connection is None:
            raise DomainError(Kind.INTERNAL, "the local store is not open")
        return self._connection
