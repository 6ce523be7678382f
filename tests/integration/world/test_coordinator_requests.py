"""What a worker tells the coordinator: accepted, repeated, refused, and replies that are lost."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING

import aiohttp
import pytest
from worker_side import Reply, WorkerSide, event, registration

from harness.model.workload import Command, ReplyLost, Workload
from harness.world.coordinator.facts import read_facts
from harness.world.http_fields import MAX_BODY_BYTES
from harness.world.ledger import Effect, EffectLedger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from worker_side import FactsNow, OpenWorld

    from harness.model.canonical_json import JsonObject
    from harness.model.workload import Exchange
    from harness.world.client import World
    from harness.world.messages import Transport

COMMANDS = (Command("c1", {"n": 1}), Command("c2", {"n": 2}))
FRESH = Command("fresh")


def test_every_fact_is_there_in_its_order(
    world: World, open_world: OpenWorld, world_dir: Path, facts_now: FactsNow
) -> None:
    """Facts are committed before the reply, and can be read while the coordinator is open."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            assert facts_now().sessions[0].session_id == session
            for _ in range(2):
                assert (await worker.ack(session, "c1")).status == 204
            assert (await worker.heartbeat(session, "c1")).status == 204
            assert (await worker.event(session, "e1", "c1", "started")).status == 201
            assert (await worker.event(session, "e2", "c1", body={"wert": "ä"})).status == 201
            listed = await worker.get("/commands")
            assert listed.value == {
                "commands": [
                    {"command_id": "c1", "acknowledged": True, "ended": True},
                    {"command_id": "c2", "acknowledged": False, "ended": False},
                ]
            }

    endpoint = open_world(Workload(COMMANDS, FRESH))
    asyncio.run(run())
    live = facts_now()
    world.close_services()
    assert read_facts(world_dir) == live
    assert [c.command_id for c in live.commands] == ["c1", "c2"]
    assert [(s.instance_id, s.inventory) for s in live.sessions] == [("worker-a", {"compute": 1})]
    assert [(a.command_id, a.repeated) for a in live.acks] == [("c1", False), ("c1", True)]
    assert [(h.attempt_id, h.progress) for h in live.heartbeats] == [("c1-1", {"done": 1})]
    assert [(e.event_id, e.kind, e.body) for e in live.events] == [
        ("e1", "started", {}),
        ("e2", "succeeded", {"wert": "ä"}),
    ]
    positions = [
        fact.position
        for kind in (live.commands, live.sessions, live.acks, live.heartbeats, live.events)
        for fact in kind
    ]
    assert positions == list(range(1, 9))
    assert EffectLedger(world_dir).effects() == (Effect("command_end", "c1", "e2"),)


def test_an_event_is_accepted_once(
    open_world: OpenWorld, world_dir: Path, facts_now: FactsNow
) -> None:
    """A repeat from any session is 200, other content under the id is 409; one effect is left."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            first, second = await worker.register(), await worker.register()
            assert (await worker.event(first, "e1", "c1", "failed")).status == 201
            assert (await worker.event(second, "e1", "c1", "failed")).status == 200
            reply = await worker.event(second, "e1", "c1", "succeeded")
            assert (reply.status, reply.error_kind) == (409, "conflict")

    endpoint = open_world()
    asyncio.run(run())
    facts = facts_now()
    assert [(e.event_id, e.kind, e.session_id) for e in facts.events] == [
        ("e1", "failed", "session-1")
    ]
    assert [r.outcome for r in facts.receipts] == ["accepted", "repeated", "conflicting"]
    assert EffectLedger(world_dir).effects() == (Effect("command_end", "c1", "e1"),)


def test_two_ends_of_one_command_are_two_effects(open_world: OpenWorld, world_dir: Path) -> None:
    """Each accepted event that ends a command is in the ledger, so a second end is seen."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            for number, kind in enumerate(("succeeded", "failed", "cancelled", "unknown")):
                await worker.event(session, f"e{number}", "c1", kind)

    endpoint = open_world()
    asyncio.run(run())
    effects = EffectLedger(world_dir).effects()
    assert effects == tuple(Effect("command_end", "c1", f"e{n}") for n in range(4))


async def _register(worker: WorkerSide, _session: str) -> Reply:
    return await worker.post("/sessions", registration("worker-b"))


async def _ack(worker: WorkerSide, session: str) -> Reply:
    return await worker.ack(session, "c1")


async def _event(worker: WorkerSide, session: str) -> Reply:
    return await worker.event(session, "e1", "c1")


async def _heartbeat(worker: WorkerSide, session: str) -> Reply:
    return await worker.heartbeat(session, "c1")


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize(
    ("exchange", "key", "send", "repeat_status"),
    [
        ("register", "worker-b", _register, 201),
        ("ack", "c1", _ack, 204),
        ("event", "c1", _event, 200),
        ("heartbeat", "c1", _heartbeat, 204),
    ],
)
def test_a_lost_reply_is_a_fact_and_a_disconnect(
    *,
    world: World,
    open_world: OpenWorld,
    facts_now: FactsNow,
    exchange: Exchange,
    key: str,
    send: Callable[[WorkerSide, str], Awaitable[Reply]],
    repeat_status: int,
    transport: Transport,
) -> None:
    """The request is committed, the client sees its connection end, and the repeat is answered."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            with pytest.raises(aiohttp.ClientConnectionError):
                await send(worker, session)
            facts = facts_now()
            done = {
                "register": [s.instance_id for s in facts.sessions[1:]],
                "ack": [a.command_id for a in facts.acks],
                "event": [e.command_id for e in facts.events],
                "heartbeat": [h.command_id for h in facts.heartbeats],
            }
            assert done.pop(exchange) == [key]
            assert not any(done.values())
            assert (await send(worker, session)).status == repeat_status

    endpoint = open_world(Workload(COMMANDS, FRESH, lost=(ReplyLost(exchange, key),)), transport)
    asyncio.run(run())
    world.close_services()


def test_the_nth_reply_is_lost_over_the_whole_experiment(
    world: World, open_world: OpenWorld
) -> None:
    """Requests are counted from the beginning, also when a directory is opened again."""
    workload = Workload(COMMANDS, FRESH, lost=(ReplyLost("ack", "c1", nth=3),))

    async def acks(count: int) -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            for _ in range(count):
                assert (await worker.ack(session, "c1")).status == 204

    endpoint = open_world(workload)
    asyncio.run(acks(2))
    world.close_services()
    endpoint = open_world(workload)
    with pytest.raises(aiohttp.ClientConnectionError):
        asyncio.run(acks(1))
    asyncio.run(acks(1))


def _without(body: JsonObject, field: str) -> bytes:
    return json.dumps({name: value for name, value in body.items() if name != field}).encode()


def _with(original: JsonObject, /, **fields: object) -> bytes:
    return json.dumps({**original, **fields}).encode()


EVENT = event("session-1", "e1", "c1")
HEARTBEAT: JsonObject = {"session_id": "session-1", "command_id": "c1", "progress": {}}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/sessions", b"", "not JSON"),
        ("/sessions", b"{", "not JSON"),
        ("/sessions", b"\xff\xfe", "UTF-8"),
        ("/sessions", b'{"name": NaN}', "NaN"),
        ("/sessions", b'{"name": 1e999}', "JSON"),
        ("/sessions", b'{"name": "\\ud800"}', "UTF-8"),
        ("/sessions", b"[" * 100_000, "nested too deeply"),
        ("/sessions", b"[]", "not a JSON object"),
        ("/sessions", b'"text"', "not a JSON object"),
        ("/sessions", b" " * (MAX_BODY_BYTES + 1), "larger than"),
        *[
            ("/sessions", _without(registration(), field), f"'{field}' is missing")
            for field in registration()
        ],
        ("/sessions", _with(registration(), name=7), "'name' is not a non-empty string"),
        ("/sessions", _with(registration(), node_id=""), "'node_id' is not a non-empty string"),
        ("/sessions", _with(registration(), name="a\0b"), "'name' holds a NUL"),
        ("/sessions", _with(registration(), inventory=[]), "'inventory' is not an object"),
        ("/commands/c1/ack", b"{}", "'session_id' is missing"),
        ("/commands/c1/ack", b'{"session_id": null}', "'session_id'"),
        *[("/events", _without(EVENT, field), f"'{field}' is missing") for field in EVENT],
        ("/events", _with(EVENT, body="text"), "'body' is not an object"),
        ("/events", _with(EVENT, kind=None), "'kind' is not a non-empty string"),
        *[
            ("/attempts/a/heartbeat", _without(HEARTBEAT, field), f"'{field}' is missing")
            for field in HEARTBEAT
        ],
        ("/attempts/a%00b/heartbeat", _with(HEARTBEAT), "'attempt_id' of the path holds a NUL"),
        ("/attempts/a/heartbeat", _with(HEARTBEAT, progress=1), "'progress' is not an object"),
    ],
)
def test_a_malformed_request_is_invalid(
    *,
    world: World,
    open_world: OpenWorld,
    world_dir: Path,
    path: str,
    body: bytes,
    said: str,
) -> None:
    """What is not well formed is 400 with the field's name, leaves no fact, and is no bug."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            await worker.register()
            reply = await worker.post(path, body)
            assert (reply.status, reply.error_kind) == (400, "invalid")
            assert said in reply.error_message
            assert "Traceback" not in reply.error_message

    endpoint = open_world()
    asyncio.run(run())
    world.close_services()
    facts = read_facts(world_dir)
    assert len(facts.sessions) == 1
    assert (facts.acks, facts.receipts, facts.heartbeats) == ((), (), ())


def test_unknown_names_are_not_found(world: World, open_world: OpenWorld, world_dir: Path) -> None:
    """A session, a command or a request that does not exist is 404 and leaves no fact."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            replies = [
                await worker.get("/sessions/session-9/commands"),
                await worker.ack("session-9", "c1"),
                await worker.ack(session, "c9"),
                await worker.event("session-9", "e1", "c1"),
                await worker.event(session, "e1", "c9"),
                await worker.heartbeat("session-9", "c1"),
                await worker.heartbeat(session, "c9"),
                await worker.get("/nothing"),
                await worker.get("/events"),
            ]
            assert {(r.status, r.error_kind) for r in replies} == {(404, "not_found")}

    endpoint = open_world()
    asyncio.run(run())
    world.close_services()
    facts = read_facts(world_dir)
    assert (facts.acks, facts.receipts, facts.heartbeats) == ((), (), ())


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 19])
def test_a_last_event_id_that_is_no_number_is_invalid(open_world: OpenWorld, last: str) -> None:
    """Last-Event-ID is the number of a delivery or the request is refused."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            reply = await worker.get(f"/sessions/{session}/commands", {"Last-Event-ID": last})
            assert (reply.status, reply.error_kind) == (400, "invalid")
            assert "Last-Event-ID" in reply.error_message

    endpoint = open_world()
    asyncio.run(run())


@pytest.mark.parametrize("gone", [True, False])
def test_half_a_request_is_no_bug_and_holds_nothing_up(
    world: World, open_world: OpenWorld, world_dir: Path, gone: bool
) -> None:
    """A worker killed or stopped inside a request leaves no fact, and the services close."""
    endpoint = open_world()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(5.0)
        client.connect(endpoint.removeprefix("unix:"))
        client.sendall(b'POST /sessions HTTP/1.1\r\nHost: w\r\nContent-Length: 90\r\n\r\n{"name"')
        if gone:
            client.close()
        world.snapshot(world_dir.with_name("copy"))
        world.close_services()
    assert read_facts(world_dir).sessions == ()
