"""The stream as docs/coordinator.md shows it, byte by byte."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from worker_side import DEADLINE_S, WorkerSide

from harness import Command

if TYPE_CHECKING:
    from worker_side import OpenServices

    from harness.world.client import World

DOCUMENT = Path(__file__).parents[3] / "docs" / "coordinator.md"


def test_stream_is_written_as_the_document_shows(world: World, open_services: OpenServices) -> None:
    """The example of the stream is what a worker reads that has one command waiting."""
    shown = DOCUMENT.read_bytes().split(b"```sse\n")[1].split(b"```")[0]
    messages = shown.count(b"\n\n")
    endpoint = open_services()
    world.offer(Command("c1", {"capability": "compute", "version": 1, "payload": {}}))

    async def read() -> bytes:
        async with WorkerSide(endpoint) as worker, asyncio.timeout(DEADLINE_S):
            stream = await worker.stream(await worker.register())
            content = stream.response.content
            return b"".join([await content.readuntil(b"\n\n") for _ in range(messages)])

    assert asyncio.run(read()) == shown
