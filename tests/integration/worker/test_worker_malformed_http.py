"""Malformed HTTP from the services outside, byte by byte, to the capabilities that ask them."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_worker_malformed import REPLIES

from worker_under_test.adapters.http_remote import HttpRemote
from worker_under_test.adapters.local_file_space import LocalFileSpace
from worker_under_test.capabilities.notify import Notify
from worker_under_test.capabilities.render import Render
from worker_under_test.capabilities.transfer import Transfer
from worker_under_test.domain.command import Command
from worker_under_test.domain.errors import DomainError
from worker_under_test.domain.event import EventKind
from worker_under_test.domain.progress import Checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker_under_test.domain.event import AttemptEvent
    from worker_under_test.domain.json_value import JsonObject
    from worker_under_test.domain.progress import Progress

CASES = range(len(REPLIES))


class Saving:
    """A `ProgressReporter` that keeps the last checkpoint."""

    attempt_id = "attempt-1"
    cancelled = False

    def __init__(self, evidence: JsonObject | None = None) -> None:
        self.checkpoint = None if evidence is None else Checkpoint(1, {}, evidence)

    async def __call__(self, progress: Progress, evidence: JsonObject | None = None) -> None:
        """Keep a report."""
        seq = self.checkpoint.seq if self.checkpoint else 0
        self.checkpoint = Checkpoint(seq + 1, progress.to_json(), evidence or {})


class NoTime:
    """A `Clock` on which waits take none."""

    async def sleep(self, delay_s: float) -> None:
        """Wait for nothing."""
        await asyncio.sleep(0)

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Wait for the event."""
        await event.wait()


def good(body: bytes, headers: str = "") -> bytes:
    """Return a well-formed reply."""
    head = f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Service:
    """Answers requests with bytes, by method and path; the last one is given for ever."""

    def __init__(self, **replies: list[bytes]) -> None:
        self.replies = replies
        self.asked: Counter[str] = Counter()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and hang up."""
        head = await reader.readuntil(b"\r\n\r\n")
        method = head.split(b" ")[0].decode()
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                await reader.readexactly(int(line.split(b":")[1]))
        self.asked[method] += 1
        planned = self.replies[method]
        writer.write(planned.pop(0) if len(planned) > 1 else planned[0])
        writer.close()
        await writer.wait_closed()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[HttpRemote]:
        """Give a way to it."""
        with tempfile.TemporaryDirectory(prefix="m-") as scratch:
            path = str(Path(scratch, "s"))
            server = await asyncio.start_unix_server(self.answer, path)
            try:
                async with asyncio.timeout(30):
                    yield HttpRemote(f"unix:{path}")
            finally:
                server.close()
                await server.wait_closed()


@pytest.mark.requirement("REC-12", "UNK-03")
@pytest.mark.parametrize("case", CASES)
def test_a_receiver_that_answers_badly_is_sent_it_once(case: int) -> None:
    """Without keys the outcome is unknown, and nobody sends the notification again."""
    service = Service(GET=[good(b'{"honours_keys": false}')], POST=[REPLIES[case]])

    async def run() -> AttemptEvent | None:
        async with service.listening() as remote:
            command = Command("n1", "notify", 1, {"channel": "n1", "text": "x"})
            return await Notify(remote, NoTime()).execute(command, Saving())

    event = asyncio.run(run())
    assert event is not None
    assert event.kind is EventKind.UNKNOWN
    assert event.body["reason"]
    assert service.asked["POST"] == 1


RENDER = Command("r1", "render", 1, {"spec": {"id": "r1"}})


@pytest.mark.requirement("REC-10", "UNK-03", "UNK-05")
@pytest.mark.parametrize("case", CASES)
def test_a_render_service_that_answers_badly_is_sent_it_once(case: int) -> None:
    """There may be a job, and no second one is made."""
    can = good(b'{"idempotent_create": false, "lookup": false}')
    service = Service(GET=[can], POST=[REPLIES[case]])

    async def run() -> AttemptEvent | None:
        async with service.listening() as remote:
            return await Render(remote, NoTime()).execute(RENDER, Saving())

    event = asyncio.run(run())
    assert event is not None
    assert event.kind is EventKind.UNKNOWN
    assert event.body["request_id"] == "render-attempt-1"
    assert service.asked["POST"] == 1


@pytest.mark.requirement("REC-09..REC-11")
@pytest.mark.parametrize("case", CASES)
def test_a_job_is_not_lost_by_a_bad_answer(case: int) -> None:
    """The job is asked about again, or unknown with its id, and never submitted again."""
    done = good(b'{"state": "succeeded", "result": {}}')
    service = Service(GET=[REPLIES[case], done], POST=[b""])
    saved: JsonObject = {
        "request_id": "r",
        "idempotent": False,
        "lookup": True,
        "job_id": "job-1",
    }

    async def run() -> AttemptEvent | None:
        async with service.listening() as remote:
            return await Render(remote, NoTime()).execute(RENDER, Saving(saved))

    event = asyncio.run(run())
    assert event is not None
    assert event.kind in (EventKind.UNKNOWN, EventKind.SUCCEEDED)
    assert event.body["job_id"] == "job-1"
    assert service.asked["POST"] == 0


@pytest.mark.requirement("REC-04", "REC-08", "INV-11")
@pytest.mark.parametrize("case", CASES)
def test_a_file_server_that_answers_badly_spoils_no_file(tmp_path: Path, case: int) -> None:
    """It is asked again, or the work fails; the file is whole or not there."""
    whole = good(b"content", 'ETag: "1"\r\n')
    service = Service(GET=[REPLIES[case], whole])

    async def run() -> AttemptEvent | None:
        async with service.listening() as remote:
            work = Transfer(LocalFileSpace(tmp_path), remote, NoTime())
            return await work.execute(Command("t1", "transfer", 1, {"name": "f"}), Saving())

    try:
        event = asyncio.run(run())
    except DomainError as failure:
        assert "file server" in failure.message  # noqa: PT017 - either outcome is right
        assert not any(path.is_file() for path in tmp_path.rglob("*"))
    else:
        assert event is not None
        assert event.kind is EventKind.SUCCEEDED
        (published,) = (path for path in tmp_path.rglob("*") if path.is_file())
        assert published.read_bytes() == b"content"


@pytest.mark.requirement("INV-3", "INV-12")
def test_a_redirect_is_not_followed() -> None:
    """What is sent goes to the place that was named, once."""
    elsewhere = Service(GET=[good(b"{}")], POST=[good(b"{}")])

    async def run() -> tuple[AttemptEvent | None, Service]:
        server = await asyncio.start_server(elsewhere.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        to = f"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n"
        service = Service(GET=[good(b'{"honours_keys": false}')], POST=[to.encode()])
        there = await asyncio.start_server(service.answer, "127.0.0.1", 0)
        async with server, there, asyncio.timeout(30):
            remote = HttpRemote(f"http://127.0.0.1:{there.sockets[0].getsockname()[1]}")
            command = Command("n1", "notify", 1, {"channel": "n1", "text": "x"})
            return await Notify(remote, NoTime()).execute(command, Saving()), service

    event, service = asyncio.run(run())
    assert event is not None
    assert event.kind is EventKind.UNKNOWN
    assert service.asked["POST"] == 1
    assert not elsewhere.asked
