"""One world process for all tests here, with services opened for each, on each database.

A test that asks for ``database``, or for a fixture that does, runs once on SQLite and once on
PostgreSQL; ``parametrize("database", ["sqlite"], indirect=True)`` keeps it to one.
"""

from __future__ import annotations

import select
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harness
from harness.model.errors import HarnessError, UsageError
from harness.model.workload import Command, Workload
from harness.world.client import World
from harness.world.coordinator.facts import read_facts
from harness.world.coordinator.postgres_server import find_binaries
from harness.world.coordinator.service import Coordinator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from worker_side import FactsNow, OpenServices, OpenWorld

    from harness.world.coordinator.facts import CoordinatorFacts
    from harness.world.messages import Transport
    from harness.world.service import Service

FRESH = Command("fresh", {"capability": "compute"})
SERVER_S = 60.0


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Give the URL of a PostgreSQL server that dies with this process, or skip the test."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        find_binaries()
    except UsageError as error:
        pytest.skip(str(error))
    with subprocess.Popen(
        [sys.executable, "-m", "harness.world.coordinator.postgres_server"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=Path(harness.__file__).parents[1],
    ) as server:
        assert server.stdout is not None
        try:
            assert select.select([server.stdout], [], [], SERVER_S)[0], "the server says nothing"
            url = server.stdout.readline().decode().strip()
            assert url, f"the server ended with {server.wait(SERVER_S)}"
            yield url
        finally:
            server.terminate()
            server.wait(SERVER_S)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Give the URL of the database that the coordinator is opened with."""
    if request.param == "sqlite":
        return ""
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def coordinator(database: str) -> Callable[[], Coordinator]:
    """Give the maker of coordinators on that database."""
    return partial(Coordinator, database)


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """Give the world process that all tests share."""
    with World.start() as world:
        yield world


@pytest.fixture
def world_dir() -> Iterator[Path]:
    """Give a world directory with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="w-") as scratch:
        yield Path(scratch) / "world"


@pytest.fixture
def open_world(
    world: World, world_dir: Path, coordinator: Callable[[], Coordinator]
) -> Iterator[OpenWorld]:
    """Give a function that opens a coordinator; it is closed after the test, if still open."""

    def opened(workload: Workload | None = None, transport: Transport = "unix") -> str:
        commands = (Command("c1", {"capability": "compute", "n": 1}), Command("c2", {"n": 2}))
        return world.open(
            world_dir, (coordinator,), workload or Workload(commands, FRESH), transport
        )

    yield opened
    with suppress(HarnessError):
        world.close_services()


@pytest.fixture
def open_services(world: World, world_dir: Path) -> Iterator[OpenServices]:
    """Give a function that opens services beside a coordinator; closed after the test."""

    def opened(*services: Callable[[], Service], at: Path | None = None) -> str:
        return world.open(at or world_dir, (Coordinator, *services), Workload((), FRESH))

    yield opened
    with suppress(HarnessError):
        world.close_services()


@pytest.fixture
def facts_now(world: World, world_dir: Path, database: str) -> FactsNow:
    """Give a function that reads the facts while the coordinator is open.

    In SQLite they are there to be read; from PostgreSQL they come with a snapshot.
    """

    def read() -> CoordinatorFacts:
        if not database:
            return read_facts(world_dir)
        with tempfile.TemporaryDirectory(prefix="facts-") as scratch:
            copy = Path(scratch) / "world"
            world.snapshot(copy)
            return read_facts(copy)

    return read
