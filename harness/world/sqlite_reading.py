"""Reading a service's SQLite database from outside: while it is open, closed, or a copy."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        with _readable(path) as uri, closing(_connect(uri)) as db:
            db.execute("BEGIN")
            yield db
    except sqlite3.Error as error:
        raise HarnessError(f"cannot read {path}: {error}") from error


@contextmanager
def _readable(path: Path) -> Iterator[str]:
    log, shared = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    if not log.exists():
        # A log lies beside a database for as long as it is open. Without one nobody writes, and
        # SQLite must not create one for the sake of reading.
        yield f"{path.absolute().as_uri()}?immutable=1"
    elif shared.exists():
        yield f"{path.absolute().as_uri()}?mode=ro"
    else:
        # A copy of database and log. SQLite would have to build the shared memory file next to
        # them, so it gets a copy of its own.
        with tempfile.TemporaryDirectory(prefix="facts-") as scratch:
            shutil.copy(path, scratch)
            shutil.copy(log, scratch)
            yield (Path(scratch) / path.name).as_uri()


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_S)
