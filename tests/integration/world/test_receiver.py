"""The receiver of notifications: with and without idempotency, its faults, and its memory."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import pytest
from worker_side import Reply, WorkerSide

from harness.model.canonical_json import digest
from harness.model.errors import HarnessError
from harness.world.ledger import Effect, EffectLedger
from harness.world.services.receiver import FILE_NAME, Notification, Receiver, read_notifications
from harness.world.services.request_log import read_requests
from harness.world.wire_faults import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from worker_side import OpenServices

    from harness.model.canonical_json import JsonObject
    from harness.world.client import World

HONOURS = partial(Receiver, honours_keys=True)
IGNORES = partial(Receiver, honours_keys=False)
HELLO = digest({"channel": "ops", "text": "hello"})


async def _notify(
    worker: WorkerSide, key: str = "", text: str = "hello", channel: str = "ops"
) -> Reply:
    headers = {"Idempotency-Key": key} if key else None
    return await worker.post("/notifications", {"channel": channel, "text": text}, headers)


@pytest.mark.requirement("REC-12")
def test_a_known_key_has_one_effect(open_services: OpenServices, world_dir: Path) -> None:
    """With keys a repeat is accepted again, and another body under the key is 409."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            assert (await worker.get("/notifications/capabilities")).value == {"honours_keys": True}
            for _ in range(2):
                reply = await _notify(worker, "k1")
                assert (reply.status, reply.value) == (202, {})
            for changed in (_notify(worker, "k1", "other"), _notify(worker, "k1", channel="dev")):
                reply = await changed
                assert (reply.status, reply.error_kind) == (409, "conflict")
            assert (await _notify(worker, "k2")).status == 202
            for _ in range(2):
                assert (await _notify(worker)).status == 202

    endpoint = open_services(HONOURS)
    asyncio.run(run())
    keys = ["k1", "k2", HELLO, HELLO]
    assert EffectLedger(world_dir).effects() == tuple(
        Effect("notification", key, str(number)) for number, key in enumerate(keys, 1)
    )
    notifications = read_notifications(world_dir)
    assert [n.effect_key for n in notifications] == keys
    assert notifications[0] == Notification(1, 1, "ops", "hello", "k1")
    outcomes = [request.outcome for request in read_requests(world_dir / FILE_NAME)]
    assert outcomes[:4] == ["accepted", "repeated", "conflicting", "conflicting"]


@pytest.mark.requirement("REC-12", "UNK-03")
def test_without_keys_each_request_is_an_effect(
    open_services: OpenServices, world_dir: Path
) -> None:
    """The key is in the ledger nevertheless, so the duplicate is seen."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            said = await worker.get("/notifications/capabilities")
            assert said.value == {"honours_keys": False}
            for text in ("hello", "hello", "other"):
                assert (await _notify(worker, "k1", text)).status == 202

    endpoint = open_services(IGNORES)
    asyncio.run(run())
    assert EffectLedger(world_dir).effects() == tuple(
        Effect("notification", "k1", number) for number in ("1", "2", "3")
    )


@pytest.mark.requirement("REC-12", "HAR-05")
def test_faults_before_and_after_it_acted(open_services: OpenServices, world_dir: Path) -> None:
    """Refused, there is no effect; lost, there is one. Faults are counted per channel."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            assert (await _notify(worker, "k0", channel="dev")).status == 202
            refused = await _notify(worker, "k1")
            assert (refused.status, refused.error_kind) == (503, "unavailable")
            assert len(read_notifications(world_dir)) == 1
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await _notify(worker, "k1")
            assert len(read_notifications(world_dir)) == 2
            assert (await _notify(worker, "k1")).status == 202
            # A repeat's reply can be lost as well.
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await _notify(worker, "k1")

    faults = (
        Fault("refused", "notify", "ops"),
        Fault("reply_lost", "notify", "ops", 2),
        Fault("reply_lost", "notify", "ops", 4),
    )
    endpoint = open_services(partial(HONOURS, faults=faults))
    asyncio.run(run())
    assert [(e.key, e.token) for e in EffectLedger(world_dir).effects()] == [
        ("k0", "1"),
        ("k1", "2"),
    ]
    logged = [(r.fault, r.outcome) for r in read_requests(world_dir / FILE_NAME)[1:]]
    assert logged == [
        ("refused", "refused"),
        ("reply_lost", "accepted"),
        ("", "repeated"),
        ("reply_lost", "repeated"),
    ]


def test_malformed_requests_leave_nothing(open_services: OpenServices, world_dir: Path) -> None:
    """A malformed request is refused with what is wrong, without effect or log entry."""
    good: JsonObject = {"channel": "ops", "text": "hello"}

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            bodies: list[JsonObject | bytes] = [
                b"\xff",
                b"null",
                {"channel": "ops"},
                {"text": "hello"},
                {"channel": "", "text": "hello"},
                {"channel": "ops", "text": ""},
                {"channel": "ops", "text": 7},
                {"channel": "o\0", "text": "hello"},
                b'{"channel": "ops", "text": "\\ud800"}',
            ]
            for body in bodies:
                reply = await worker.post("/notifications", body)
                assert (reply.status, reply.error_kind) == (400, "invalid"), body
            name = "Idempotency-Key"
            for headers in ([(name, "")], [(name, "a"), (name, "b")], [(name, "ä")]):
                reply = await worker.post("/notifications", good, headers)
                assert (reply.status, reply.error_kind) == (400, "invalid"), headers
                assert name in reply.error_message
            assert (await worker.get("/notifications")).error_kind == "not_found"

    endpoint = open_services(HONOURS)
    asyncio.run(run())
    assert read_requests(world_dir / FILE_NAME) == ()
    assert EffectLedger(world_dir).effects() == ()


@pytest.mark.requirement("REC-12")
def test_keys_are_known_in_a_copy(
    world: World, open_services: OpenServices, world_dir: Path
) -> None:
    """Keys, numbers and counts of faults outlive the opening, in a snapshot too."""
    service = partial(HONOURS, faults=(Fault("refused", "notify", "ops", 2),))

    async def before() -> None:
        async with WorkerSide(endpoint) as worker:
            assert (await _notify(worker, "k1")).status == 202

    async def after() -> None:
        async with WorkerSide(endpoint) as worker:
            assert [(await _notify(worker, "k1")).status for _ in range(2)] == [503, 202]
            assert (await _notify(worker, "k1", "other")).status == 409
            assert (await _notify(worker, "k2")).status == 202

    endpoint = open_services(service)
    asyncio.run(before())
    copy = world_dir.with_name("copy")
    world.snapshot(copy)
    world.close_services()
    assert read_notifications(copy) == read_notifications(world_dir)
    for directory in (copy, world_dir):
        endpoint = open_services(service, at=directory)
        asyncio.run(after())
        world.close_services()
        effects = [(e.key, e.token) for e in EffectLedger(directory).effects()]
        assert effects == [("k1", "1"), ("k2", "2")]


def test_without_a_receiver_there_is_no_log(world_dir: Path) -> None:
    """An oracle that reads what is not there is told so."""
    with pytest.raises(HarnessError, match=r"notifications\.db"):
        read_notifications(world_dir)
