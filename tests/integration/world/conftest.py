"""One world process for all tests here, and a stage of it for each."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError
from harness.workload import Command, Workload
from harness.world.client import World
from harness.world.coordinator import Coordinator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_side import OpenStage

    from harness.world.control import Transport

FRESH = Command("fresh", {"capability": "compute"})


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
def open_stage(world: World, world_dir: Path) -> Iterator[OpenStage]:
    """Give a function that opens a coordinator; it is closed after the test, if still open."""

    def opened(workload: Workload | None = None, transport: Transport = "unix") -> str:
        commands = (Command("c1", {"capability": "compute", "n": 1}), Command("c2", {"n": 2}))
        return world.open(
            world_dir, (Coordinator,), workload or Workload(commands, FRESH), transport
        )

    yield opened
    with suppress(HarnessError):
        world.close_stage()
