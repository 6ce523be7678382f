"""A whole worker on doubles, alive for as long as a test wants."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from virtual_clock import settled

from worker_under_test.application.runtime import Runtime
from worker_under_test.domain.registration import NodeInventory, Registration
from worker_under_test.ports.command_stream import Delivery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker_bench import Bench

GOOD = Registration("i", "n", "d", NodeInventory(1))
P = TypeVar("P")
PORTS = ("control", "commands", "store", "capabilities", "ids", "observation")


def runtime(bench: Bench, registration: Registration = GOOD, missing: str = "") -> Runtime:
    """Return a runtime on a bench, perhaps without one of its ports."""

    def given(name: str, port: P) -> P | None:
        return None if name in missing.split() else port

    return Runtime(
        registration,
        control=given("control", bench.control),
        commands=given("commands", bench.stream),
        store=given("store", bench.store),
        capabilities=given("capabilities", bench.capabilities),
        ids=given("ids", bench.ids),
        observation=given("observation", bench.observed),
        clock=bench.clock,
        resource_inventory=lambda: bench.room,
    )


def delivery(command_id: str, capability: str = "work", /, **payload: object) -> Delivery:
    """Return a delivery of a command."""
    body = {"command_id": command_id, "capability": capability, "version": 1, "payload": payload}
    return Delivery("1", json.dumps(body))


@asynccontextmanager
async def alive(bench: Bench) -> AsyncIterator[asyncio.Task[None]]:
    """Keep a worker alive inside, and stop it gracefully at the end."""
    stop = asyncio.Event()
    life = asyncio.create_task(runtime(bench).run(stop))
    await settled()
    yield life
    stop.set()
    await settled()
    assert life.done()
    assert bench.log[-3:] == ["close_stream", "close_control", "close"]
    life.result()
