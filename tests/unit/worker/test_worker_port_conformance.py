"""One body for every port but the store: adapter and double."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from network_doubles import FakeControl, FakeRemote, FakeStream
from planned_faults import network_failure
from virtual_clock import VirtualClock, settled
from worker_bench import CountedIds, FakeCapabilities, Observed

from harness.model.workload import Command as Offered
from harness.model.workload import Workload
from harness.world.client import World
from harness.world.coordinator.service import Coordinator
from worker_under_test.adapters.http_control_plane import HttpControlPlane
from worker_under_test.adapters.http_link import HttpLink
from worker_under_test.adapters.ids import RandomIds, SeededIds
from worker_under_test.adapters.log_observation import LogObservation
from worker_under_test.adapters.sse_stream import SseCommandStream
from worker_under_test.adapters.system_clock import SystemClock
from worker_under_test.capabilities.compute import Compute
from worker_under_test.capabilities.registry import CapabilityRegistry
from worker_under_test.domain.attempt import Attempt
from worker_under_test.domain.command import Command, parse_command
from worker_under_test.domain.errors import DeliveryError, retryable_delivery
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.progress import Progress
from worker_under_test.domain.registration import NodeInventory, Registration
from worker_under_test.ports.command_stream import Delivery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from harness.model.canonical_json import JsonObject
    from worker_under_test.ports.capability import CapabilityExecutor
    from worker_under_test.ports.clock import Clock
    from worker_under_test.ports.command_stream import CommandStream
    from worker_under_test.ports.control_plane import ControlPlane
    from worker_under_test.ports.id_generator import IDGenerator
    from worker_under_test.ports.observation import Observation

WHO = Registration("w1", "worker", "node-1", NodeInventory(1000))
BODY: JsonObject = {"capability": "work", "version": 1, "payload": {}}


@dataclass
class Network:
    """Both sides of a network: what the worker has, and what the test does on the other side."""

    control: ControlPlane
    stream: CommandStream
    offer: Callable[[str], None]
    cut: Callable[[], None]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Give a world process."""
    with World.start() as world:
        yield world


@asynccontextmanager
async def faked(_world: World) -> AsyncIterator[Network]:
    """Give the doubles, with the same two commands."""
    control, stream = FakeControl([]), FakeStream([])

    def delivery(command_id: str) -> Delivery:
        return Delivery("1", json.dumps({**BODY, "command_id": command_id}))

    stream.backlogs.append([delivery("c1"), delivery("c2")])
    stream.held = [delivery("c2")]
    yield Network(
        control,
        stream,
        lambda command_id: stream.live.put_nowait(delivery(command_id)),
        lambda: stream.live.put_nowait(network_failure()),
    )


@asynccontextmanager
async def over_http(world: World) -> AsyncIterator[Network]:
    """Give the adapters, on a real coordinator."""
    workload = Workload((Offered("c1", BODY), Offered("c2", BODY)), Offered("fresh", BODY))
    with tempfile.TemporaryDirectory(prefix="p-") as scratch, ExitStack() as stage:
        link = HttpLink(world.open(Path(scratch), (Coordinator,), workload))
        stage.callback(world.close_services)
        stream = SseCommandStream(link)
        control = HttpControlPlane(link)
        try:
            yield Network(
                control, stream, lambda name: world.offer(Offered(name, BODY)), stage.close
            )
        finally:
            await stream.close()
            await control.close()


NETWORKS = pytest.mark.parametrize("network", [faked, over_http])


@pytest.mark.requirement("SES-01", "SES-04", "SES-05", "ATT-05", "INB-06")
@NETWORKS
def test_a_session_takes_acknowledgements_refusals_events_and_heartbeats(
    world: World, network: Callable[[World], AbstractAsyncContextManager[Network]]
) -> None:
    """Each of them may be sent again, with the same outcome."""

    async def run() -> None:
        async with network(world) as here:
            first, second = [await here.control.register(WHO) for _ in range(2)]
            assert first.session_id != second.session_id
            command = Command("c1", "work", 1, {})
            event = Event("e1", "c1", "a1", EventKind.SUCCEEDED, {"é": 1})
            for _ in range(2):
                await here.control.acknowledge(first, "c1")
                await here.control.refuse(first, "c2", "full")
                await here.control.heartbeat(first, Attempt("a1", command), Progress("s", "r", 1))
                await here.control.send_event(second, event)

    asyncio.run(run())


@pytest.mark.requirement("INB-14", "INB-15", "SES-06", "DEL-09")
@NETWORKS
def test_a_stream_gives_the_backlog_then_what_is_offered_then_fails_as_a_delivery(
    world: World, network: Callable[[World], AbstractAsyncContextManager[Network]]
) -> None:
    """Deliveries come in order, and what nobody confirmed is listed beside them."""

    async def run() -> None:
        async with network(world) as here:
            session = await here.control.register(WHO)
            backlog = await here.stream.open(session)
            assert [parse_command(each.data).command_id for each in backlog] == ["c1", "c2"]
            await here.control.acknowledge(session, "c1")
            waiting = await here.stream.waiting(session)
            assert [parse_command(each.data).command_id for each in waiting] == ["c2"]
            await asyncio.to_thread(here.offer, "c3")
            assert parse_command((await here.stream.next()).data).command_id == "c3"
            await asyncio.to_thread(here.cut)
            with pytest.raises(DeliveryError) as failure:
                await here.stream.next()
            assert retryable_delivery(failure.value)
            for _ in range(2):
                await here.stream.close()

    asyncio.run(run())


@pytest.mark.requirement("DEL-09")
def test_a_request_that_takes_too_long_is_a_failed_delivery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is retryable while the session lives; a cancel of the session is no failure."""
    monkeypatch.setattr("worker_under_test.adapters.http_control_plane.REQUEST_TIMEOUT_S", 0.05)

    async def run() -> None:
        connected = asyncio.Event()

        async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connected.set()
            await reader.read()
            writer.close()

        with tempfile.TemporaryDirectory(prefix="p-") as scratch:
            server = await asyncio.start_unix_server(never_answer, f"{scratch}/s")
            control = HttpControlPlane(HttpLink(f"unix:{scratch}/s"))
            with pytest.raises(DeliveryError) as failure:
                await control.register(WHO)
            assert retryable_delivery(failure.value)
            connected.clear()
            ending = asyncio.create_task(control.register(WHO))
            await connected.wait()
            ending.cancel()
            await asyncio.wait((ending,))
            assert ending.cancelled()
            await control.close()
            server.close()
            await server.wait_closed()

    asyncio.run(run())


@pytest.mark.requirement("ATT-06", "ATT-12")
@pytest.mark.parametrize("make", [CountedIds, RandomIds, lambda: SeededIds("s")])
def test_identities_are_never_made_again(make: Callable[[], IDGenerator]) -> None:
    """No identity comes again in this incarnation or the next, or for another kind."""
    made = set()
    ids = make()
    for boot in (1, 2):
        ids.begin(boot)
        made |= {ids.new(kind) for kind in ("event", "attempt") for _ in range(100)}
    assert len(made) == 400
    assert {each.split("-")[0] for each in made} == {"event", "attempt"}


@pytest.mark.requirement("ATT-12")
def test_seeded_identities_are_repeatable() -> None:
    """The same seed, boot and order give the same identities."""

    def some() -> list[str]:
        ids = SeededIds("s")
        ids.begin(3)
        return [ids.new("event") for _ in range(3)]

    assert some() == some()


@pytest.mark.requirement("REG-09", "OUT-09")
@pytest.mark.parametrize("make", [Observed, LogObservation])
def test_an_observation_takes_everything(
    make: Callable[[], Observation], caplog: pytest.LogCaptureFixture
) -> None:
    """It takes events with and without an error, never fails, and drops nothing."""
    caplog.set_level(logging.INFO)
    observation = make()
    observation.event("something happened")
    observation.event("event delivery deferred", ValueError("\ud800 bad"), command="c1")
    if isinstance(observation, Observed):
        assert observation.names == ["something happened", "event delivery deferred"]
    else:
        assert [(record.levelno, record.message) for record in caplog.records] == [
            (logging.INFO, "something happened "),
            (logging.WARNING, "event delivery deferred {'command': 'c1'}: \\ud800 bad"),
        ]


class NullReporter:
    """A reporter that keeps nothing."""

    attempt_id = "a1"
    cancelled = False
    checkpoint = None

    async def __call__(self, progress: Progress, evidence: object = None) -> None:
        """Take a report."""


@pytest.mark.requirement("CAP-01", "CAP-02", "CAP-03")
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: FakeCapabilities([]), "work"),
        (lambda: CapabilityRegistry(Compute(FakeRemote(), VirtualClock())), "compute"),
    ],
)
def test_capabilities_are_found_by_name_and_version(
    make: Callable[[], CapabilityExecutor], name: str
) -> None:
    """Name and version find a policy and a result where one is installed."""

    async def run() -> None:
        capabilities = make()
        command = Command("c1", name, 1, {"seed": "s", "rounds": 2})
        assert capabilities.policy_of(command) is not None
        assert capabilities.policy_of(Command("c1", "gone", 1, {})) is None
        event = await capabilities.execute(command, NullReporter())
        assert event is not None
        assert event.kind is EventKind.SUCCEEDED

    asyncio.run(run())


@pytest.mark.requirement("OUT-04", "OUT-13", "OUT-35", "REG-06")
@pytest.mark.parametrize("make", [VirtualClock, SystemClock])
def test_a_clock_waits_for_the_time_or_the_event(make: Callable[[], Clock]) -> None:
    """An idle wait ends by an event, a back-off only by time."""

    async def run() -> None:
        clock = make()
        event = asyncio.Event()
        idle = asyncio.create_task(clock.wait(event, 60))
        await settled()
        assert not idle.done()
        event.set()
        await idle
        assert event.is_set()
        event.clear()
        waits = [
            asyncio.create_task(clock.wait(event, 0.01)),
            asyncio.create_task(clock.sleep(0.01)),
        ]
        await settled()
        if isinstance(clock, VirtualClock):
            await clock.run_until(0.02)
        await asyncio.gather(*waits)

    asyncio.run(run())
