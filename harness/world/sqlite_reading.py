"""Reading a service's SQLite database from outside: while it is open, closed, or a copy."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING

from harness.images.digest import opened
from harness.model.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BUSY_S = 5.0


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
