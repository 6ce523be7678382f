"""A service's SQLite database: written by the service, read at any time by anybody else."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Final

from harness.images.digest import opened
from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import aiosqlite

_BUSY_S = 5.0

_SCRIPT: Final = """
-- The world is not subject to power loss: its facts have to outlive processes only, and a page that
-- was written outlives those without fsync.
PRAGMA synchronous = OFF;
PRAGMA journal_mode = WAL;
-- The main file does not change while the service is open, so a copy of it and then of its log is
-- consistent at any moment, whoever makes it.
PRAGMA wal_autocheckpoint = 0;
"""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Read a database at one moment.

    It may be open in another process, closed, or a copy with or without its log. What belongs to a
    copy is not changed by reading it.

    Args:
        path: The database's main file.

    Yields:
        A connection inside a transaction, so that all its queries see the same moment.

    Raises:
        HarnessError: The database cannot be read.
    """
    try:
        with _connection(path) as db:
            db.execute("BEGIN")
            yield db
    except sqlite3.Error as error:
        raise HarnessError(f"cannot read {path}: {error}") from error


def _connection(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    # As long as a database is open, its log and the memory shared about it lie beside it.
    if all(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-shm")):
        uri = f"{path.absolute().as_uri()}?mode=ro"
        return closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S))
    return opened(path)


async def open_for_writing(path: Path, tables: str) -> aiosqlite.Connection:
    """Open a database, and create it and its tables where there are none.

    Args:
        path: The database's main file.
        tables: Statements that create the tables that are missing.

    Returns:
        A connection in autocommit mode; it must be closed, and then SQLite moves the log into the
        main file.
    """
    import aiosqlite  # noqa: PLC0415 - oracles only read, and forks would copy it

    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        await connection.executescript(f"{_SCRIPT} BEGIN; {tables} COMMIT;")
    except BaseException:
        await connection.close()
        raise
    return connection
