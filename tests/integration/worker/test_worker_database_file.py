"""The database as a file: missing, damaged, read-only, held, and brought up to date."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import harness.points
from worker_under_test.adapters import sqlite_schema
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.order import Directives

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = Command("c1", "compute", 1, {})


class CrashError(Exception):
    """Stands for a crash."""


def start(root: Path, *, init: bool, instance_id: str = "w1") -> tuple[str, int]:
    """Open the store as a start does, and close it."""

    async def run() -> tuple[str, int]:
        store = SqliteStore(root / "worker.db", init=init)
        try:
            await store.open()
            life = await store.begin_incarnation(instance_id)
            return life.instance_id, life.boot
        finally:
            await store.close()

    return asyncio.run(run())


def crash_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Have a crash point raise."""

    def hook(label: str, context: dict[str, object]) -> None:
        if label == place:
            raise CrashError(place)

    monkeypatch.setattr(harness.points, "_hook", hook)


@pytest.mark.requirement("IDN-01", "IDN-02")
def test_a_missing_database_is_not_made_again(tmp_path: Path) -> None:
    """The worker stops and says what is lost; only an explicit first start goes on."""
    with pytest.raises(DomainError, match="identity and unreported work are lost") as refusal:
        start(tmp_path, init=False)
    assert refusal.value.kind is Kind.NOT_FOUND
    assert not (tmp_path / "worker.db").exists()
    assert start(tmp_path, init=True) == ("w1", 1)


@pytest.mark.requirement("IDN-02", "IDN-06")
def test_a_first_start_replaces_nothing(tmp_path: Path) -> None:
    """The saved identity counts, five starts long, whatever is given."""
    for boot in range(1, 6):
        assert start(tmp_path, init=True, instance_id=f"w{boot}") == ("w1", boot)


@pytest.mark.requirement("IDN-03")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty", b""),
        ("text", b"this is not a database, and long enough to have a header of its own" * 20),
        ("header only", b"SQLite format 3\0"),
        ("zeros", b"\0" * 8192),
    ],
)
def test_a_damaged_database_stops_the_worker(tmp_path: Path, name: str, content: bytes) -> None:
    """It is a clear error, even for an explicit first start; the file is left as it is."""
    (tmp_path / "worker.db").write_bytes(content)
    for init in (False, True):
        with pytest.raises(DomainError, match="damaged") as refusal:
            start(tmp_path, init=init)
        assert refusal.value.kind is Kind.INVALID
    assert (tmp_path / "worker.db").read_bytes() == content


@pytest.mark.requirement("IDN-03")
@pytest.mark.parametrize("keep", [100, 4096, 9000, 20000])
def test_a_database_that_was_cut_off_stops_the_worker(tmp_path: Path, keep: int) -> None:
    """Nothing is read from what is left of the database."""
    start(tmp_path, init=True)
    path = tmp_path / "worker.db"
    whole = path.read_bytes()
    assert keep < len(whole)
    path.write_bytes(whole[:keep])
    with pytest.raises(DomainError, match="damaged"):
        start(tmp_path, init=False)


@pytest.mark.requirement("IDN-03")
def test_a_read_only_database_stops_the_worker(tmp_path: Path) -> None:
    """The file's mode counts, also for a user who could write it all the same."""
    start(tmp_path, init=True)
    (tmp_path / "worker.db").chmod(0o444)
    with pytest.raises(DomainError, match="read-only"):
        start(tmp_path, init=False)


@pytest.mark.requirement("IDN-03", "IDN-07")
def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    """A database of a later version is refused and not guessed at."""
    start(tmp_path, init=True)
    with closing(sqlite3.connect(tmp_path / "worker.db")) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(DomainError, match="version 9"):
        start(tmp_path, init=False)


@pytest.mark.requirement("IDN-05")
def test_two_workers_on_one_database_are_refused(tmp_path: Path) -> None:
    """The second worker is refused while the first lives; the lock goes with it."""

    async def run() -> None:
        first = SqliteStore(tmp_path / "worker.db", init=True)
        await first.open()
        second = SqliteStore(tmp_path / "worker.db")
        with pytest.raises(DomainError, match="another worker holds") as refusal:
            await second.open()
        assert refusal.value.kind is Kind.CONFLICT
        await second.close()
        await first.close()
        await second.open()
        await second.close()

    asyncio.run(run())


@pytest.mark.requirement("IDN-05")
def test_a_worker_that_is_stopped_still_holds_its_database(tmp_path: Path) -> None:
    """The second worker is refused while the first is frozen, and not when it is dead."""
    start(tmp_path, init=True)
    child = os.fork()
    if child == 0:
        try:

            async def hold() -> None:
                await SqliteStore(tmp_path / "worker.db").open()
                os.kill(os.getpid(), signal.SIGSTOP)

            asyncio.run(hold())
        finally:
            os._exit(1)
    try:
        _, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with pytest.raises(DomainError, match="another worker holds"):
            start(tmp_path, init=False)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert start(tmp_path, init=False) == ("w1", 2)


@pytest.mark.requirement("IDN-06", "IDN-07", "CP-F1")
@pytest.mark.parametrize(
    "place",
    [
        "store.open.before",
        "store.migrate.mid",
        "store.create.before",
        "store.create.after",
        "store.open.after",
    ],
)
def test_a_crash_in_the_first_start_is_healed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A crash of the first start leaves a whole database in its place or none."""
    crash_at(monkeypatch, place)
    with pytest.raises(CrashError):
        start(tmp_path, init=True)
    monkeypatch.undo()
    there = (tmp_path / "worker.db").exists()
    assert there == (place in ("store.create.after", "store.open.after"))
    if there:
        assert start(tmp_path, init=False) == ("w1", 1)
    assert start(tmp_path, init=True)[0] == "w1"
    assert not (tmp_path / "worker.db.new").exists()


def version_one(root: Path) -> None:
    """Make a database as version 1 of the schema left it, with an attempt that was running."""
    with closing(sqlite3.connect(root / "worker.db", isolation_level=None)) as database:
        database.executescript(sqlite_schema.STEPS[0])
        database.executescript(
            "PRAGMA user_version = 1;"
            "INSERT INTO identity VALUES (1, 'w0', 3);"
            "INSERT INTO inbox (command_id, capability, version, payload, digest, state)"
            f" VALUES ('c1', 'compute', 1, '{{}}', '{COMMAND.digest}', 'received');"
            "INSERT INTO attempts VALUES ('a1', 'c1', 'RUNNING');"
        )


@pytest.mark.requirement("IDN-07", "CP-F1")
@pytest.mark.parametrize("crash", [False, True])
def test_a_database_of_version_one_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    """The change of version loses nothing, also by a crash in the middle."""
    version_one(tmp_path)
    if crash:
        crash_at(monkeypatch, "store.migrate.mid")
        with pytest.raises(CrashError):
            start(tmp_path, init=False)
        monkeypatch.undo()

    async def run() -> None:
        store = SqliteStore(tmp_path / "worker.db")
        try:
            await store.open()
            life = await store.begin_incarnation("other")
            assert (life.instance_id, life.boot) == ("w0", 4)
            (found,) = await store.unfinished()
            assert found.attempt.command == COMMAND
            assert await store.directives() == Directives()
        finally:
            await store.close()

    asyncio.run(run())
