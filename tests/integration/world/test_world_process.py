"""The world's process and its owner: opening, copying, failing, dying."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from worker_side import WorkerSide, registration

import harness
from harness.model.errors import DeadlineError, HarnessError, ProcessLostError, UsageError
from harness.model.workload import Command, Workload
from harness.world.client import World
from harness.world.coordinator.facts import read_facts
from harness.world.coordinator.service import Coordinator
from harness.world.ledger import Effect, EffectLedger

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web
    from worker_side import FactsNow, OpenWorld

    from harness.world.service import ServiceContext

DEADLINE_S = 10.0
NOTHING = Workload((), Command("fresh"))


class Faulty:
    """A service with a bug in each of its parts."""

    async def open(self, context: ServiceContext, routes: web.UrlDispatcher) -> None:
        """Fail with commands."""
        if context.workload.commands:
            raise ValueError("no commands, please")
        routes.add_get("/", self._fail)

    async def offer(self, command: Command) -> None:
        """Fail."""
        raise ValueError(f"no {command.command_id}, please")

    async def close(self) -> None:
        """Do nothing."""

    async def _fail(self, _request: web.Request) -> web.Response:
        raise ZeroDivisionError("a bug of the world")


def test_a_snapshot_is_the_facts_of_its_moment(
    world: World, open_world: OpenWorld, world_dir: Path, facts_now: FactsNow
) -> None:
    """A copy holds the facts and effects up to it, none after it, no socket and no open log."""
    copy = world_dir.with_name("copy")

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            await worker.event(session, "e1", "c1")
            before = facts_now()
            world.snapshot(copy)
            await worker.event(session, "e2", "c2")
            assert read_facts(copy) == before
            assert len(facts_now().events) == 2

    endpoint = open_world()
    asyncio.run(run())
    assert EffectLedger(copy).effects() == (Effect("command_end", "c1", "e1"),)
    assert {path.name for path in copy.iterdir()} == {"coordinator.db", "effects.ndjson"}


def test_a_snapshot_holds_what_was_sent_before_it(
    world: World, open_world: OpenWorld, world_dir: Path
) -> None:
    """A request that lies in the socket when the copy is asked for is served first, always."""
    body = json.dumps(registration()).encode()
    head = f"POST /sessions HTTP/1.1\r\nHost: w\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    endpoint = open_world()
    for number in range(1, 31):
        copy = world_dir.with_name(f"copy-{number}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(endpoint.removeprefix("unix:"))
            client.sendall(head + body)
            world.snapshot(copy)
        assert len(read_facts(copy).sessions) == number


def test_a_snapshot_can_be_opened_and_goes_on(
    world: World,
    open_world: OpenWorld,
    world_dir: Path,
    coordinator: Callable[[], Coordinator],
) -> None:
    """Sessions, deliveries and acknowledgements continue where the copy was made."""
    copy = world_dir.with_name("copy")

    async def before() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            await (await worker.stream(session)).backlog()
            await worker.ack(session, "c1")
            await worker.event(session, "e1", "c1")

    async def after() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            assert session == "session-2"
            stream = await worker.stream(session)
            assert [(m.number, m.command_id) for m in await stream.backlog()] == [(3, "c2")]
            assert (await worker.event(session, "e1", "c1")).status == 200

    endpoint = open_world()
    asyncio.run(before())
    world.snapshot(copy)
    world.close_services()
    endpoint = world.open(copy, (coordinator,), NOTHING)
    asyncio.run(after())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("suffixes", [("", "-wal"), ("", "-wal", "-shm")])
def test_facts_are_read_from_a_plain_copy_of_an_open_database(
    open_world: OpenWorld, world_dir: Path, suffixes: tuple[str, ...]
) -> None:
    """A copy of database and log holds every fact, and reading it creates no file beside it."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await worker.register()

    endpoint = open_world()
    asyncio.run(run())
    copy = world_dir.with_name("copy")
    copy.mkdir()
    for suffix in suffixes:
        shutil.copy(world_dir / f"coordinator.db{suffix}", copy)
    names = {path.name for path in copy.iterdir()}
    assert read_facts(copy) == read_facts(world_dir)
    assert {path.name for path in copy.iterdir()} == names


def test_without_a_database_there_are_no_facts(tmp_path: Path) -> None:
    """A directory where no coordinator was is an error, not an empty history."""
    with pytest.raises(HarnessError, match=r"no coordinator\.db"):
        read_facts(tmp_path)


def test_a_bug_of_the_world_is_told_to_its_owner(world: World, world_dir: Path) -> None:
    """The worker gets 500 internal without a traceback; closing raises what happened."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            reply = await worker.get("/")
            assert (reply.status, reply.error_kind) == (500, "internal")
            assert "ZeroDivisionError" not in reply.error_message

    endpoint = world.open(world_dir, (Faulty,), NOTHING)
    asyncio.run(run())
    with pytest.raises(HarnessError, match=r"GET /: ZeroDivisionError: a bug of the world \(test_"):
        world.close_services()
    with pytest.raises(HarnessError, match="no open services"):
        world.close_services()


def test_failing_calls_name_the_failure_and_leave_the_world_usable(
    world: World, world_dir: Path
) -> None:
    """An error in the world is one line for the owner, and the next call is served."""
    with pytest.raises(HarnessError, match="ValueError: no commands, please"):
        world.open(world_dir, (Coordinator, Faulty), Workload((Command("c"),), Command("f")))
    with pytest.raises(HarnessError, match="no open services"):
        world.offer(Command("c"))
    with pytest.raises(HarnessError, match="no open services"):
        world.snapshot(world_dir.with_name("copy"))
    assert world.open(world_dir, (Faulty,), NOTHING).startswith("unix:")
    try:
        with pytest.raises(HarnessError, match="open already"):
            world.open(world_dir, (), NOTHING)
        with pytest.raises(HarnessError, match="ValueError: no c, please"):
            world.offer(Command("c"))
        with pytest.raises(HarnessError, match="FileExistsError"):
            world.snapshot(world_dir)
    finally:
        world.close_services()


def test_contradicting_commands_are_the_callers_fault(
    world: World, world_dir: Path, coordinator: Callable[[], Coordinator]
) -> None:
    """Two commands of one id and different bodies are a usage error, at open and at offer."""
    commands = (Command("c", {"n": 1}), Command("c", {"n": 2}))
    with pytest.raises(UsageError, match="'c' is known with another body"):
        world.open(world_dir, (coordinator,), Workload(commands, Command("f")))
    world.open(world_dir, (coordinator,), Workload(commands[:1], Command("f")))
    try:
        with pytest.raises(UsageError, match="'c' is known with another body"):
            world.offer(commands[1])
    finally:
        world.close_services()


def test_what_cannot_be_handed_over_is_said(world: World, world_dir: Path) -> None:
    """A service that does not pickle is an error of the call, and the world stays usable."""
    generator = (number for number in range(2))

    def make() -> Faulty:
        list(generator)
        return Faulty()

    with pytest.raises(HarnessError, match="cannot be handed to the world"):
        world.open(world_dir, (make,), NOTHING)
    world.open(world_dir, (lambda: Faulty(),), NOTHING)  # noqa: PLW0108 - a closure is the point
    world.close_services()


def test_a_path_too_long_for_a_socket_is_a_usage_error(world: World, tmp_path: Path) -> None:
    """A Unix socket's path has at most 107 bytes; the message says so, and tcp still works."""
    deep = tmp_path / ("d" * 120)
    with pytest.raises(UsageError, match="107"):
        world.open(deep, (Coordinator,), NOTHING)
    assert world.open(deep, (Coordinator,), NOTHING, "tcp").startswith("http://127.0.0.1:")
    world.close_services()


def test_a_world_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    """A call has a deadline; after it the process is gone and every further call says so."""
    world = World.start()
    world._deadline_s = 0.2  # The start may take longer than the test wants to wait.
    watched = os.pidfd_open(world.pid)

    def never() -> Coordinator:
        threading.Event().wait()
        return Coordinator()

    try:
        with pytest.raises(DeadlineError, match="Open"):
            world.open(tmp_path / "world", (never,), NOTHING)
        assert _ended(watched)
        with pytest.raises(HarnessError, match="is stopped"):
            world.close_services()
    finally:
        os.close(watched)
        world.stop()


@pytest.mark.parametrize(
    ("number", "fate"),
    [
        (signal.SIGKILL, "was killed by SIGKILL"),
        (signal.SIGTERM, "was killed by SIGTERM"),
        (signal.SIGSTOP, "was stopped by SIGSTOP"),
    ],
)
def test_a_world_that_is_lost_says_by_which_signal(number: signal.Signals, fate: str) -> None:
    """A call says so at once, and so does every later one; the process is gone then."""
    world = World.start()
    watched = os.pidfd_open(world.pid)
    try:
        os.kill(world.pid, number)
        for ask in (world.close_services, world.check, world.close_services):
            with pytest.raises(ProcessLostError, match=fate):
                ask()
        assert _ended(watched)
    finally:
        os.close(watched)
        world.stop()


OWNER = """
import sys
from harness.world.client import World

if __name__ == "__main__":
    world = World.start()
    print(world.pid, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("end", ["killed", "exits"])
def test_the_world_ends_with_its_owner(tmp_path: Path, end: str) -> None:
    """An owner that is killed, or exits and forgot to stop the world, leaves no process."""
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    root = Path(harness.__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        try:
            assert select.select([owner.stdout], [], [], DEADLINE_S)[0], "the owner says nothing"
            watched = os.pidfd_open(int(owner.stdout.readline()))
            try:
                if end == "killed":
                    owner.kill()
                else:
                    owner.stdin.close()
                assert _ended(watched)
                assert owner.wait(DEADLINE_S) == (-signal.SIGKILL if end == "killed" else 0)
            finally:
                os.close(watched)
        finally:
            owner.kill()


def _ended(watched: int) -> bool:
    return bool(select.select([watched], [], [], DEADLINE_S)[0])
