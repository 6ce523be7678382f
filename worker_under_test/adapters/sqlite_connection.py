"""One SQLite connection: opened with checked settings, used by one transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiosqlite

from harness.points import crash_point
from worker_under_test.adapters import sqlite_file
from worker_under_test.adapters.sqlite_schema import SCHEMA_VERSION, STEPS
from worker_under_test.domain.errors import DomainError, Kind

if TYPE_CHECKING:
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
       (SELECT user_version FROM pragma_user_version),
       (SELECT quick_check FROM pragma_quick_check LIMIT 1)
"""

_WANTED = ("wal", 2, 1)
"""What a commit needs to survive a power loss: WAL, a sync at each commit, and foreign keys."""


class SqliteConnection:
    """A connection of the worker's own; its thread lives from `open` to `close`.

    Args:
        path: The database file; its directory exists.
        init: The file may be made if there is none (IDN-02).
    """

    def __init__(self, path: Path, *, init: bool = False) -> None:
        self._path = path
        self._init = init
        self._held = -1
        self._connection: aiosqlite.Connection | None = None
        # aiosqlite lets statements of several tasks interleave; transactions must not.
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Hold the file, make it if this is a first start, check it, and bring it up to date.

        Raises:
            DomainError: The database is missing, damaged, read-only, held by another worker or of
                a version that is not known, or it does not take the settings: the worker must not
                go on with less than it promises (IDN-02, IDN-03, IDN-05).
        """
        crash_point("store.open.before")
        self._held = sqlite_file.lock(self._path)
        if sqlite_file.must_be_made(self._path, init=self._init):
            await self._make()
        try:
            await self._open_and_check()
        except sqlite3.Error as error:
            raise sqlite_file.damaged(self._path, str(error)) from error
        crash_point("store.open.after")

    async def _make(self) -> None:
        unfinished = sqlite_file.unfinished_path(self._path)
        connection = await aiosqlite.connect(unfinished, isolation_level=None)
        try:
            await connection.execute("PRAGMA synchronous = FULL")
            await _bring_up(connection, 0)
        finally:
            await _closed(connection)
        crash_point("store.create.before")
        sqlite_file.put_in_place(unfinished, self._path)
        crash_point("store.create.after")

    async def _open_and_check(self) -> None:
        # isolation_level=None: sqlite3 starts no transaction behind our back.
        self._connection = await aiosqlite.connect(self._path, isolation_level=None)
        await self._connection.executescript(_SETTINGS)
        (answer,) = await self._connection.execute_fetchall(_ASK_SETTINGS)
        *settings, version, health = answer
        if tuple(settings) != _WANTED:
            raise DomainError(Kind.INTERNAL, f"SQLite did not take the settings: {settings}")
        if health != "ok":
            raise sqlite_file.damaged(self._path, health)
        if version == 0:
            raise sqlite_file.damaged(self._path, "it holds nothing of a worker")
        if version > SCHEMA_VERSION:
            raise DomainError(Kind.INVALID, f"the database has schema version {version}")
        if version < SCHEMA_VERSION:
            await _bring_up(self._connection, version)

    async def close(self) -> None:
        """Close the file, join the thread, let go of the lock; does nothing if it is not open."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                await _closed(connection)
        finally:
            held, self._held = self._held, -1
            if held >= 0:
                os.close(held)

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


async def _bring_up(connection: aiosqlite.Connection, version: int) -> None:
    """Take every step from a version to ours in one transaction (IDN-07)."""
    await connection.execute("BEGIN IMMEDIATE")
    for step in STEPS[version:]:
        for statement in step.split(";\n"):
            await connection.execute(statement)
    crash_point("store.migrate.mid")
    await connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    await connection.execute("COMMIT")


async def _closed(connection: aiosqlite.Connection) -> None:
    """Close a connection and join its thread; a process that forks next needs it gone."""
    await connection.close()
    # close() returns when the thread has nothing left to do but end. Older aiosqlite connections
    # are threads, newer ones hold one.
    thread = getattr(connection, "_thread", connection)
    if isinstance(thread, threading.Thread):
        thread.join()
