"""The stream of commands: what is delivered, when, and under which number."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from worker_side import DEADLINE_S, Message, WorkerSide

from harness.model.workload import Command, Workload
from harness.world.coordinator.facts import read_facts

if TYPE_CHECKING:
    from pathlib import Path

    from worker_side import OpenWorld

    from harness.world.client import World
    from harness.world.messages import Transport

FRESH = Command("fresh", {"capability": "compute"})


def _numbered(messages: list[Message]) -> list[tuple[int, object]]:
    return [(message.number, message.command_id) for message in messages]


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_backlog_then_caught_up_then_live(
    world: World, open_world: OpenWorld, world_dir: Path, transport: Transport
) -> None:
    """A stream begins with the unacknowledged commands and caught-up; an offer follows live."""
    endpoint = open_world(transport=transport)

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            assert session == "session-1"
            stream = await worker.stream(session)
            backlog = await stream.backlog()
            assert _numbered(backlog) == [(1, "c1"), (2, "c2")]
            assert backlog[0].data == {"command_id": "c1", "capability": "compute", "n": 1}
            world.offer(FRESH)
            message = await stream.next()
            assert message is not None
            assert (message.number, message.command_id) == (3, "fresh")

    asyncio.run(run())
    world.close_services()
    deliveries = read_facts(world_dir).deliveries
    assert [(d.number, d.command_id, d.session_id) for d in deliveries] == [
        (1, "c1", "session-1"),
        (2, "c2", "session-1"),
        (3, "fresh", "session-1"),
    ]


def test_only_unacknowledged_commands_come_again(open_world: OpenWorld) -> None:
    """After a reconnect the backlog holds what is not acknowledged, under new numbers."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            await (await worker.stream(session)).backlog()
            assert (await worker.ack(session, "c1")).status == 204
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            assert session == "session-2"
            stream = await worker.stream(session)
            assert _numbered(await stream.backlog()) == [(3, "c2")]

    endpoint = open_world()
    asyncio.run(run())


def test_last_event_id_brings_back_what_was_acknowledged_after_it(
    open_world: OpenWorld,
) -> None:
    """With Last-Event-ID n the backlog also holds acknowledged commands delivered after n."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            await (await worker.stream(session)).backlog()
            await worker.ack(session, "c1")
            await worker.ack(session, "c2")
            after_1 = await (await worker.stream(session, last=1)).backlog()
            assert _numbered(after_1) == [(3, "c2")]
            after_3 = await (await worker.stream(session, last=3)).backlog()
            assert _numbered(after_3) == []
            after_0 = await (await worker.stream(session, last=0)).backlog()
            assert _numbered(after_0) == [(4, "c1"), (5, "c2")]

    endpoint = open_world()
    asyncio.run(run())


def test_twice_is_two_deliveries_in_a_row(world: World, open_world: OpenWorld) -> None:
    """A command of `twice` is sent twice in a row on each delivery, each with its own id."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            stream = await worker.stream(session)
            assert _numbered(await stream.backlog()) == [(1, "c1"), (2, "c1"), (3, "c2")]
            world.offer(FRESH)
            live = [await stream.next(), await stream.next()]
            assert _numbered([m for m in live if m]) == [(4, "fresh"), (5, "fresh")]

    endpoint = open_world(
        Workload((Command("c1"), Command("c2")), FRESH, twice=frozenset({"c1", "fresh"}))
    )
    asyncio.run(run())


def test_an_offer_reaches_every_open_stream(world: World, open_world: OpenWorld) -> None:
    """A command is sent on each stream that is open, in the order in which they were opened."""

    async def run() -> None:
        async with WorkerSide(endpoint) as first, WorkerSide(endpoint) as second:
            streams = []
            for worker in (first, second):
                streams.append(await worker.stream(await worker.register()))
                await streams[-1].backlog()
            world.offer(FRESH)
            received = [await stream.next() for stream in streams]
            assert _numbered([m for m in received if m]) == [(1, "fresh"), (2, "fresh")]

    endpoint = open_world(Workload((), FRESH))
    asyncio.run(run())


def test_a_known_command_is_not_offered_again(world: World, open_world: OpenWorld) -> None:
    """Offering a known command changes nothing, so recovery from a copy may offer it again."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            stream = await worker.stream(await worker.register())
            await stream.backlog()
            world.offer(Command("c2", {"n": 2}))
            world.offer(FRESH)
            message = await stream.next()
            assert message is not None
            assert message.command_id == "fresh"

    endpoint = open_world()
    asyncio.run(run())


def test_closing_ends_open_streams_at_once(world: World, open_world: OpenWorld) -> None:
    """An open stream does not hold up the closing, and ends without an error."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            stream = await worker.stream(await worker.register())
            await stream.backlog()
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.to_thread(world.close_services)
            assert await stream.next() is None

    endpoint = open_world()
    asyncio.run(run())
