"""Opening a service's SQLite database to write facts into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import aiosqlite

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT: Final = """
-- The world is not subject to power loss: its facts have to outlive processes only, and a page that
-- was written outlives those without fsync.
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
-- The main file does not change while the service is open, so a copy of it and then of its log is
-- consistent at any moment, whoever makes it.
PRAGMA wal_autocheckpoint = 0;
"""


async def open_for_writing(path: Path, tables: str) -> aiosqlite.Connection:
    """Open a database, and create it and its tables where there are none.

    Args:
        path: The database's main file.
        tables: Statements that create the tables that are missing.

    Returns:
        A connection in autocommit mode; it must be closed, and then SQLite moves the log into the
        main file.
    """
    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        await connection.executescript(f"{_SCRIPT} BEGIN; {tables} COMMIT;")
    except BaseException:
        await connection.close()
        raise
    return connection
