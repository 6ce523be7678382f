"""Snapshots as rows of one SQLite table, written within a transaction of the caller.

A worker that keeps snapshot, step result and event in one database makes them one fact by writing
them in one transaction (ORC-09)::

    await connection.execute("BEGIN IMMEDIATE")
    await write_if_newer(connection, snapshot)
    ...  # the other rows
    await connection.commit()

Nothing here begins, commits or rolls back. Begin with ``BEGIN IMMEDIATE``: a transaction that has
read before it first writes can be refused as busy by SQLite whatever the timeout.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from harness.points import crash_point
from worker_under_test.checkpoint.errors import DamagedRecordError, NotFound, StaleSeq
from worker_under_test.checkpoint.stores.record import checksum, parse, restore, to_json
from worker_under_test.checkpoint.stores.rules import is_repetition, require_writable

if TYPE_CHECKING:
    import aiosqlite

    from worker_under_test.checkpoint.snapshot import Snapshot

CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS checkpoint_snapshot (
    run_id   TEXT    NOT NULL PRIMARY KEY,
    seq      INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq > 0),
    status   TEXT    NOT NULL,
    done     TEXT    NOT NULL,
    fields   TEXT    NOT NULL,
    checksum TEXT    NOT NULL
)
"""
"""For a host that creates its tables itself."""

_UPSERT = """
INSERT INTO checkpoint_snapshot (run_id, seq, status, done, fields, checksum)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET
    seq = excluded.seq, status = excluded.status, done = excluded.done,
    fields = excluded.fields, checksum = excluded.checksum
"""

_UPSERT_IF_NEWER = _UPSERT + "WHERE seq < excluded.seq"

_UPSERT_IF_OTHER = _UPSERT + "WHERE seq <> excluded.seq"

# Read as bytes, since a damaged text need not be UTF-8 and the driver would stumble over it.
_SELECT = """
SELECT seq, CAST(status AS BLOB), CAST(done AS BLOB), CAST(fields AS BLOB),
       CAST(checksum AS BLOB)
FROM checkpoint_snapshot WHERE run_id = ?
"""


async def create_table(connection: aiosqlite.Connection) -> None:
    """Create the table ``checkpoint_snapshot`` if it is not there.

    Args:
        connection: An open connection.
    """
    await connection.execute(CREATE_TABLE)


async def write_if_newer(connection: aiosqlite.Connection, snapshot: Snapshot) -> None:
    """Write a snapshot if the stored number is smaller, in one statement, without committing.

    Comparison and write are one conditional upsert, so no other writer fits in between (STO-13).
    The crash point ``snapshot.save.mid`` stands after it, and so before whoever's COMMIT (CP-E2).

    Args:
        connection: A connection with a transaction open.
        snapshot: The snapshot.

    Raises:
        StaleSeq: An equal or higher number is stored, or the number is 0; nothing was written, and
            the transaction is still open.
        InvalidSnapshotError: It cannot be stored.
        RuntimeError: No transaction is open, so that the write would commit by itself.
    """
    if not await _upsert(connection, _UPSERT_IF_NEWER, snapshot):
        raise StaleSeq(
            f"run {snapshot.run_id!r}: {snapshot.seq} offered, an equal or higher one is stored"
        )
    crash_point("snapshot.save.mid", run=snapshot.run_id, seq=snapshot.seq)


async def write(connection: aiosqlite.Connection, snapshot: Snapshot) -> None:
    """Write a snapshot whatever number is stored, without committing (see `Store.save`).

    Args:
        connection: A connection with a transaction open.
        snapshot: The snapshot.

    Raises:
        StaleSeq: Its number is 0.
        ConflictingSnapshotError: Other content is stored under this number.
        InvalidSnapshotError: It cannot be stored.
        RuntimeError: No transaction is open, so that the write would commit by itself.
    """
    if not await _upsert(connection, _UPSERT_IF_OTHER, snapshot):
        is_repetition(await read(connection, snapshot.run_id), snapshot)


async def read(connection: aiosqlite.Connection, run_id: str) -> Snapshot:
    """Read a snapshot; inside a transaction, with what that has written.

    Args:
        connection: An open connection.
        run_id: The run.

    Raises:
        NotFound: There is none.
        DamagedRecordError: The row, or the database, is not what was written (STO-22).
    """
    try:
        async with connection.execute(_SELECT, (run_id,)) as cursor:
            row = await cursor.fetchone()
    except UnicodeEncodeError as error:
        raise NotFound(f"run {run_id!r}, which no store can hold") from error
    except sqlite3.DatabaseError as error:
        # The low byte is the primary result code; the driver's own errors have none.
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise DamagedRecordError(f"database of run {run_id!r}: {error}") from error
        raise
    if row is None:
        raise NotFound(f"run {run_id!r}")
    seq, *texts = row
    status, done, fields, digest = (bytes(text) for text in texts)
    return restore(
        run_id,
        seq=seq,
        status=status.decode(errors="replace"),
        done=parse(run_id, done),
        fields=parse(run_id, fields),
        digest=digest.decode(errors="replace"),
    )


async def _upsert(connection: aiosqlite.Connection, statement: str, snapshot: Snapshot) -> bool:
    """Execute one of the upserts; return whether it wrote."""
    require_writable(snapshot)
    if not connection.in_transaction:
        raise RuntimeError("begin a transaction first: this write must not commit by itself")
    row = (
        snapshot.run_id,
        snapshot.seq,
        snapshot.status,
        to_json(list(snapshot.done)),
        to_json(dict(snapshot.fields)),
        checksum(snapshot),
    )
    async with connection.execute(statement, row) as cursor:
        return cursor.rowcount == 1
