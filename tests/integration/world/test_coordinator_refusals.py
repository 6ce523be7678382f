"""A command that a worker refuses: a fact, and the command stays open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest
from worker_side import WorkerSide

from harness.model.workload import Command, ReplyLost, Workload
from harness.world.coordinator.facts import read_facts

if TYPE_CHECKING:
    from pathlib import Path

    from worker_side import FactsNow, OpenWorld

    from harness.world.client import World

COMMANDS = (Command("c1", {"n": 1}), Command("c2", {"n": 2}))


@pytest.mark.requirement("AMB-20", "SES-06")
def test_a_refused_command_stays_open_and_is_listed(
    world: World, open_world: OpenWorld, world_dir: Path, facts_now: FactsNow
) -> None:
    """Each refusal is kept as a fact; what is acknowledged is listed no more."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            body = {"session_id": session, "reason": "full"}
            for _ in range(2):
                assert (await worker.post("/commands/c1/refusal", body)).status == 204
            listed = await worker.get(f"/sessions/{session}/waiting")
            assert listed.value == {
                "commands": [{"command_id": "c1", "n": 1}, {"command_id": "c2", "n": 2}]
            }
            await worker.ack(session, "c1")
            listed = await worker.get(f"/sessions/{session}/waiting")
            assert listed.value == {"commands": [{"command_id": "c2", "n": 2}]}
            assert [m.command_id for m in await (await worker.stream(session)).backlog()] == ["c2"]

    endpoint = open_world(Workload(COMMANDS, Command("fresh")))
    asyncio.run(run())
    live = facts_now()
    world.close_services()
    assert read_facts(world_dir) == live
    assert [(r.command_id, r.reason) for r in live.refusals] == [("c1", "full")] * 2
    assert len(live.deliveries) == 1


@pytest.mark.requirement("SES-04")
def test_what_is_not_known_or_has_no_reason_is_refused_in_turn(
    open_world: OpenWorld,
) -> None:
    """It is refused by kind, and leaves no fact."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            for path, body, kind in (
                ("/commands/c1/refusal", {"session_id": session}, "invalid"),
                ("/commands/c1/refusal", {"session_id": "s", "reason": "r"}, "not_found"),
                ("/commands/c9/refusal", {"session_id": session, "reason": "r"}, "not_found"),
            ):
                assert (await worker.post(path, body)).error_kind == kind
            assert (await worker.get("/sessions/nobody/waiting")).error_kind == "not_found"

    endpoint = open_world(Workload(COMMANDS, Command("fresh")))
    asyncio.run(run())


def test_the_reply_to_a_refusal_can_be_lost(open_world: OpenWorld, facts_now: FactsNow) -> None:
    """The fact is there, the connection is cut."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            session = await worker.register()
            body = {"session_id": session, "reason": "full"}
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await worker.post("/commands/c1/refusal", body)

    lost = (ReplyLost("refusal", "c1"),)
    endpoint = open_world(Workload(COMMANDS, Command("fresh"), lost=lost))
    asyncio.run(run())
    assert len(facts_now().refusals) == 1


@pytest.mark.requirement("IDN-02")
def test_how_often_a_worker_has_registered_can_be_asked(open_world: OpenWorld) -> None:
    """Whether a worker is new is known outside of it."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            for count in (0, 1, 2):
                answer = await worker.get("/instances/worker-a")
                assert answer.value == {"sessions": count}
                await worker.register()
            assert (await worker.get("/instances/stranger")).value == {"sessions": 0}

    endpoint = open_world(Workload(commands=COMMANDS, fresh=Command("f")))
    asyncio.run(run())
