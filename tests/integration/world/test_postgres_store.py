"""The coordinator's facts in PostgreSQL: what is particular to it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from worker_side import WorkerSide, registration

import harness
from harness.model.errors import HarnessError
from harness.model.workload import Command, Workload
from harness.world.client import World
from harness.world.coordinator.facts import read_facts
from harness.world.coordinator.marker_file import elsewhere
from harness.world.coordinator.schema import FILE_NAME
from harness.world.coordinator.service import Coordinator

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_side import OpenWorld

COMMANDS = (Command("c1", {"n": 1}), Command("c2", {"wert": "ä"}))
WORKLOAD = Workload(COMMANDS, Command("fresh"))


def _query(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        rows: list[tuple[object, ...]] = connection.execute(query).fetchall()
    return rows


def _schemas(url: str) -> set[str]:
    query = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'crash\\_harness\\_%'"
    return {str(name) for (name,) in _query(url, query)}


@pytest.fixture
def other_world(postgres_url: str) -> Iterator[World]:
    """Give a world of one's own."""
    with World.start() as world:
        yield world


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_fact_is_committed_when_its_reply_is_there(
    open_world: OpenWorld, world_dir: Path, postgres_url: str
) -> None:
    """Another connection sees the commands and a registration in the seed's tables."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await worker.register()
            rows = _query(postgres_url, f"SELECT command_id, body FROM {schema}.worker_commands")
            assert rows == [("c1", '{"capability":"compute","n":1}'), ("c2", '{"n":2}')]
            assert _query(postgres_url, f"SELECT session_id FROM {schema}.sessions") == [
                ("session-1",)
            ]

    endpoint = open_world()
    schema = elsewhere(world_dir / FILE_NAME).split("schema '")[1].split("'")[0]
    asyncio.run(run())


@pytest.mark.parametrize("first", ["sqlite", "postgresql"])
def test_facts_move_between_databases(
    world: World, world_dir: Path, postgres_url: str, first: str
) -> None:
    """A directory, and a copy of an open one, go on with the other database as with the same."""
    urls = ("", postgres_url) if first == "sqlite" else (postgres_url, "")
    copy = world_dir.with_name("copy")

    async def before(endpoint: str) -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            await (await worker.stream(session)).backlog()
            await worker.ack(session, "c1")
            await worker.heartbeat(session, "c1")
            await worker.event(session, "e1", "c1", body={"wert": "ä\0"})

    async def after(endpoint: str) -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            assert session == "session-2"
            stream = await worker.stream(session)
            assert [(m.number, m.command_id) for m in await stream.backlog()] == [(3, "c2")]
            assert (await worker.event(session, "e1", "c1", body={"wert": "ä\0"})).status == 200

    asyncio.run(before(world.open(world_dir, (partial(Coordinator, urls[0]),), WORKLOAD)))
    world.snapshot(copy)
    world.close_services()
    known = read_facts(world_dir)
    assert read_facts(copy) == known
    for directory in (world_dir, copy):
        asyncio.run(after(world.open(directory, (partial(Coordinator, urls[1]),), WORKLOAD)))
        world.close_services()
        facts = read_facts(directory)
        assert facts.commands == known.commands
        assert facts.receipts[:1] == known.receipts
        assert facts.heartbeats == known.heartbeats
        assert len(facts.sessions) == len(facts.receipts) == 2
        assert "coordinator.db-wal" not in {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_an_open_directory_says_where_its_facts_are(open_world: OpenWorld, world_dir: Path) -> None:
    """While they are on the server, reading the directory is a clear error and no empty history."""
    open_world()
    with pytest.raises(HarnessError, match=r"are in schema 'crash_harness_\d+' of PostgreSQL"):
        read_facts(world_dir)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_two_worlds_do_not_meet(
    open_world: OpenWorld, other_world: World, world_dir: Path, postgres_url: str
) -> None:
    """Each world has a schema of its own, which it empties for a new experiment and drops at last.

    Lanes that run at once share a server.
    """

    async def register(endpoint: str, count: int) -> None:
        async with WorkerSide(endpoint) as worker:
            for number in range(count):
                assert await worker.register() == f"session-{number + 1}"

    make = partial(Coordinator, postgres_url)
    asyncio.run(register(open_world(), 1))
    ours = _schemas(postgres_url)
    theirs: set[str] = set()
    for number in (1, 2):
        directory = world_dir.with_name(f"other-{number}")
        asyncio.run(register(other_world.open(directory, (make,), WORKLOAD), 2))
        theirs = _schemas(postgres_url) - ours
        assert len(theirs) == 1
        other_world.close_services()
        assert len(read_facts(directory).sessions) == 2
    other_world.stop()
    # Worlds of earlier tests may be dropping theirs as well.
    assert not theirs & _schemas(postgres_url)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_what_a_killed_world_left_is_dropped_by_the_next(
    open_world: OpenWorld, other_world: World, world_dir: Path, postgres_url: str
) -> None:
    """Its schema goes and that of a living world stays; its directory does not look like new."""
    open_world()
    living = _schemas(postgres_url)
    directory = world_dir.with_name("other")
    make = partial(Coordinator, postgres_url)
    killed = World.start()
    killed.open(directory, (make,), WORKLOAD)
    (left,) = _schemas(postgres_url) - living
    os.kill(killed.pid, signal.SIGKILL)
    with pytest.raises(HarnessError, match="killed by SIGKILL"):
        killed.close_services()
    other_world.open(world_dir.with_name("next"), (make,), WORKLOAD)
    try:
        assert living < _schemas(postgres_url)
        assert left not in _schemas(postgres_url)
    finally:
        other_world.close_services()
    with pytest.raises(HarnessError, match="are in schema"):
        other_world.open(directory, (make,), WORKLOAD)


def test_a_lost_connection_is_a_fault_of_the_world_and_made_anew(
    other_world: World, world_dir: Path, postgres_url: str
) -> None:
    """The worker gets internal, the owner the reason, and the next experiment connects again."""
    make = partial(Coordinator, postgres_url)
    endpoint = other_world.open(world_dir, (make,), WORKLOAD)

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            reply = await worker.post("/sessions", registration())
            assert (reply.status, reply.error_kind) == (500, "internal")

    _query(
        postgres_url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'crash-harness' ORDER BY backend_start DESC LIMIT 1",
    )
    asyncio.run(run())
    with pytest.raises(HarnessError, match="PostgreSQL database 'postgres' at"):
        other_world.close_services()
    other_world.open(world_dir.with_name("next"), (make,), WORKLOAD)
    other_world.close_services()


def test_the_default_needs_no_psycopg() -> None:
    """Importing the coordinator and opening SQLite loads no psycopg."""
    script = (
        "import sys, harness.world.coordinator.service, harness.world.host;"
        "sys.exit('psycopg' in sys.modules)"
    )
    root = Path(harness.__file__).parents[1]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, timeout=60)
