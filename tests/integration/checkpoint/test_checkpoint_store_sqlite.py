"""What only the SQLite store has: settings, transactions of a caller, a database that fails."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiosqlite
import pytest

from worker_under_test.checkpoint import (
    Committer,
    ConflictingSnapshotError,
    DamagedRecordError,
    NotFound,
    SeqGate,
    Snapshot,
    StaleSeq,
)
from worker_under_test.checkpoint.stores import sqlite as sqlite_module
from worker_under_test.checkpoint.stores.sqlite import PragmaRefusedError, SqliteStore
from worker_under_test.checkpoint.stores.sqlite_table import (
    create_table,
    read,
    write,
    write_if_newer,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

RUN = "run"


def snapshot(seq: int, *done: str) -> Snapshot:
    """Return a snapshot."""
    return Snapshot(RUN, seq, "running", done, {"key": "value"})


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the path of a database that holds snapshot 5."""
    path = tmp_path / "snapshots.db"

    async def prepare() -> None:
        async with await SqliteStore.open(path) as store:
            await store.save(snapshot(5, "a"))

    asyncio.run(prepare())
    return path


@asynccontextmanager
async def connected(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """Open a connection as a caller might own it."""
    async with aiosqlite.connect(path, timeout=0, isolation_level=None) as connection:
        yield connection


def edit(path: Path, statement: str, *values: object) -> None:
    """Change the database past the store."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(statement, values)
    finally:
        connection.close()


@pytest.mark.requirement("STO-19")
def test_settings_are_in_force(database: Path) -> None:
    """Write-ahead log and full synchronisation, read back from the open connection."""

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            for pragma, value in (("journal_mode", "wal"), ("synchronous", 2)):
                async with store._connection.execute(f"PRAGMA {pragma}") as cursor:
                    assert await cursor.fetchone() == (value,)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-19")
def test_a_refused_setting_is_an_error(monkeypatch: pytest.MonkeyPatch, database: Path) -> None:
    """A database that cannot have a log is not opened; nor is one that will not sync."""

    async def open_without_log() -> None:
        await SqliteStore.open(":memory:")  # type: ignore[arg-type]

    with pytest.raises(PragmaRefusedError, match="journal_mode is 'memory'"):
        asyncio.run(open_without_log())
    monkeypatch.setitem(sqlite_module._REQUIRED_PRAGMAS, "synchronous", 9)
    with pytest.raises(PragmaRefusedError, match="synchronous is 1"):
        asyncio.run(SqliteStore.open(database))


@pytest.mark.requirement("ORC-09", "STO-17")
def test_one_transaction_with_other_rows(database: Path) -> None:
    """Snapshot and the caller's row land together or not at all."""

    async def scenario() -> None:
        async with connected(database) as connection:
            await connection.execute("CREATE TABLE result (step TEXT)")

            async def rows() -> tuple[int, int]:
                async with connection.execute("SELECT count(*) FROM result") as cursor:
                    (count,) = await cursor.fetchone() or (0,)
                return (await read(connection, RUN)).seq, int(count)

            await connection.execute("BEGIN IMMEDIATE")
            await write_if_newer(connection, snapshot(6, "a", "b"))
            await connection.execute("INSERT INTO result VALUES ('b')")
            assert await rows() == (6, 1)
            await connection.rollback()
            assert await rows() == (5, 0)
            await connection.execute("BEGIN IMMEDIATE")
            await write_if_newer(connection, snapshot(6, "a", "b"))
            await connection.execute("INSERT INTO result VALUES ('b')")
            await connection.commit()
            assert await rows() == (6, 1)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-08", "ORC-09")
@pytest.mark.parametrize("seq", [0, 4, 5])
def test_a_refusal_leaves_the_transaction_to_its_owner(database: Path, seq: int) -> None:
    """After StaleSeq the caller's transaction is open, and the caller decides."""

    async def scenario() -> None:
        async with connected(database) as connection:
            await connection.execute("BEGIN IMMEDIATE")
            with pytest.raises(StaleSeq):
                await write_if_newer(connection, snapshot(seq, "x"))
            assert connection.in_transaction
            await connection.commit()
            assert await read(connection, RUN) == snapshot(5, "a")

    asyncio.run(scenario())


@pytest.mark.requirement("STO-02", "STO-03")
def test_plain_write_in_a_transaction(database: Path) -> None:
    """Repetition is nothing, another content a conflict, another number a write."""

    async def scenario() -> None:
        async with connected(database) as connection:
            await connection.execute("BEGIN IMMEDIATE")
            await write(connection, snapshot(5, "a"))
            with pytest.raises(ConflictingSnapshotError):
                await write(connection, snapshot(5, "b"))
            await write(connection, snapshot(4, "b"))
            await connection.commit()
            assert await read(connection, RUN) == snapshot(4, "b")

    asyncio.run(scenario())


@pytest.mark.requirement("ORC-09")
def test_without_a_transaction_nothing_is_written(database: Path) -> None:
    """A caller that forgot to begin would commit half a fact; it gets an error instead."""

    async def scenario() -> None:
        async with connected(database) as connection:
            for function in (write, write_if_newer):
                with pytest.raises(RuntimeError, match="begin a transaction"):
                    await function(connection, snapshot(6))
            assert await read(connection, RUN) == snapshot(5, "a")

    asyncio.run(scenario())


@pytest.mark.requirement("ORC-09")
def test_the_table_of_a_caller(tmp_path: Path) -> None:
    """A caller can keep the table in its own database; creating it twice is harmless."""

    async def scenario() -> None:
        async with connected(tmp_path / "worker.db") as connection:
            await create_table(connection)
            await create_table(connection)
            with pytest.raises(NotFound):
                await read(connection, RUN)

    asyncio.run(scenario())


@pytest.mark.requirement("STO-22", "ERR-05", "COM-22")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("seq", 6),
        ("status", "completed"),
        ("status", b"\xff\xfe"),
        ("done", '["b"]'),
        ("done", '["a"'),
        ("done", "[7]"),
        ("done", '{"a":1}'),
        ("done", ""),
        ("done", b'["\xff"]'),
        ("done", '["\\ud800"]'),
        ("done", "[" * 100_000),
        ("fields", "{}"),
        ("fields", '{"key":7}'),
        ("fields", "null"),
        ("checksum", "0" * 64),
        ("checksum", ""),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_damaged_row(database: Path, column: str, value: object) -> None:
    """A row that was not written is an error of its own, field by field."""
    edit(database, f"UPDATE checkpoint_snapshot SET {column} = ?", value)

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            committer = Committer(SeqGate(), store)
            with pytest.raises(DamagedRecordError, match="'run'"):
                await store.load(RUN)
            with pytest.raises(DamagedRecordError):
                await committer.seed_from_store(RUN)
            assert committer.last(RUN) == 0

    asyncio.run(scenario())


@pytest.mark.requirement("STO-22", "ERR-05")
@pytest.mark.parametrize("damage", ["page", "header"])
def test_a_damaged_database(database: Path, damage: str) -> None:
    """A database that SQLite cannot read is damaged, and not empty."""
    edit(database, "PRAGMA wal_checkpoint(TRUNCATE)")

    def overwrite() -> None:
        content = bytearray(database.read_bytes())
        start, end = (4096, len(content)) if damage == "page" else (0, 100)
        content[start:end] = b"\xa5" * (end - start)
        database.write_bytes(content)

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            overwrite()
            await store._connection.execute("PRAGMA shrink_memory")
            with pytest.raises(DamagedRecordError):
                await store.load(RUN)

    asyncio.run(scenario())


@pytest.mark.requirement("COM-11", "COM-15", "STO-06")
def test_busy_elsewhere(database: Path) -> None:
    """Another process's transaction is an error in time, and no write."""

    async def scenario() -> None:
        async with (
            await SqliteStore.open(database, busy_timeout_s=0.01) as store,
            connected(database) as other,
        ):
            committer = Committer(SeqGate(), store)
            await committer.seed_from_store(RUN)
            await other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                await committer.commit(snapshot(6, "a", "b"))
            assert committer.last(RUN) == 5
            await other.rollback()
            await committer.commit(snapshot(6, "a", "b"))
            assert await store.load(RUN) == snapshot(6, "a", "b")

    asyncio.run(scenario())


@pytest.mark.requirement("COM-11", "COM-15", "STO-17", "GAT-10", "GAT-11")
@pytest.mark.parametrize(
    ("fault", "heal", "message"),
    [
        ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "readonly"),
        ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 100000", "full"),
        ("ALTER TABLE checkpoint_snapshot RENAME TO gone",
         "ALTER TABLE gone RENAME TO checkpoint_snapshot", "no such table"),
    ],
)  # fmt: skip
def test_a_database_that_fails(database: Path, fault: str, heal: str, message: str) -> None:
    """The database's error comes out, and once it is healed the same 6 lands."""

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            committer = Committer(SeqGate(), store)
            await committer.seed_from_store(RUN)
            big = Snapshot(RUN, 6, "running", ["a", "b"], {"big": "x" * 100_000})
            await store._connection.execute(fault)
            for _ in range(2):
                with pytest.raises(sqlite3.OperationalError, match=message):
                    await committer.commit(big)
                assert committer.last(RUN) == 5
            await store._connection.execute(heal)
            assert (await store.load(RUN)).seq == 5
            await committer.commit(big)
            assert await store.load(RUN) == big

    asyncio.run(scenario())


@pytest.mark.requirement("STO-17", "STO-21", "COM-17", "HAR-05")
@pytest.mark.parametrize("applied", [False, True])
def test_a_commit_that_reports_failure(
    monkeypatch: pytest.MonkeyPatch, database: Path, *, applied: bool
) -> None:
    """After a failed COMMIT it is 5, after an ambiguous one 6, whole."""

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            committer = Committer(SeqGate(), store)
            await committer.seed_from_store(RUN)
            real_commit = store._connection.commit

            async def failing_commit() -> None:
                if applied:
                    await real_commit()
                raise sqlite3.OperationalError("disk I/O error")

            monkeypatch.setattr(store._connection, "commit", failing_commit)
            with pytest.raises(sqlite3.OperationalError, match="disk I/O"):
                await committer.commit(snapshot(6, "a", "b"))
            monkeypatch.undo()
            expected = snapshot(6, "a", "b") if applied else snapshot(5, "a")
            assert await store.load(RUN) == expected
            assert committer.last(RUN) == 5
            if applied:
                with pytest.raises(StaleSeq):
                    await committer.commit(snapshot(6, "a", "b"))
            else:
                await committer.commit(snapshot(6, "a", "b"))
            assert await store.load(RUN) == snapshot(6, "a", "b")

    asyncio.run(scenario())


@pytest.mark.requirement("STO-17", "STO-18")
def test_a_load_does_not_see_what_is_not_committed(
    monkeypatch: pytest.MonkeyPatch, database: Path
) -> None:
    """Tasks share the connection; one cannot load what another rolls back."""

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:
            loads: list[asyncio.Task[Snapshot]] = []

            async def struck_before_it_commits() -> None:
                loads.append(asyncio.create_task(store.load(RUN)))
                await asyncio.wait(loads, timeout=0.05)
                raise OSError("struck")

            monkeypatch.setattr(store._connection, "commit", struck_before_it_commits)
            with pytest.raises(OSError, match="struck"):
                await store.save_if_newer(snapshot(6, "a", "b"))
            assert await loads[0] == snapshot(5, "a")

    asyncio.run(scenario())


@pytest.mark.requirement("COM-13", "COM-15")
def test_a_failed_rollback_does_not_hide_the_error(
    monkeypatch: pytest.MonkeyPatch, database: Path
) -> None:
    """The caller sees what went wrong first, and the next save does not pass."""

    async def scenario() -> None:
        async with await SqliteStore.open(database) as store:

            async def broken() -> None:
                raise sqlite3.OperationalError("disk I/O error")

            monkeypatch.setattr(store._connection, "rollback", broken)
            with pytest.raises(StaleSeq):
                await store.save_if_newer(snapshot(5))
            with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
                await store.save_if_newer(snapshot(6))

    asyncio.run(scenario())
