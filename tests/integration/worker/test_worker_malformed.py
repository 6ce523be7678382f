"""More than a hundred malformed inputs: none crashes the worker, loses anything, or goes unseen."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from worker_under_test.adapters.http_control_plane import HttpControlPlane
from worker_under_test.adapters.http_link import HttpLink
from worker_under_test.adapters.sqlite_store import SqliteStore
from worker_under_test.adapters.sse_stream import SseCommandStream
from worker_under_test.domain.command import MAX_BODY_CHARS, Command, parse_command
from worker_under_test.domain.errors import (
    DeliveryError,
    DomainError,
    Kind,
    kind_of,
    retryable_delivery,
)
from worker_under_test.domain.event import Event, EventKind
from worker_under_test.domain.order import order_of
from worker_under_test.domain.registration import NodeInventory, Registration, Session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GOOD = {"command_id": "good", "capability": "compute", "version": 1, "payload": {}}


def changed(**fields: object) -> str:
    """Return the text of a good command with some fields changed."""
    return json.dumps({**GOOD, **fields})


def without(name: str) -> str:
    """Return the text of a good command without a field."""
    return json.dumps({key: value for key, value in GOOD.items() if key != name})


BAD_IDS: list[object] = ["", " ", "\t", 7, None, [], {}, "x" * 201, "a\nb"]
BAD_VERSIONS: list[object] = [0, -1, True, "1", 1.0, None, 1 << 31]
BAD_PAYLOADS: list[object] = [None, [], "text", 3]

COMMANDS = [
    "",
    " ",
    "{",
    "}",
    "[]",
    "[1, 2]",
    "null",
    "true",
    "3",
    '"text"',
    "{'command_id': 'c'}",
    "\0",
    "\ufeff{}",
    "[" * 100_000,
    '{"a":' * 50_000,
    " " * (MAX_BODY_CHARS + 1),
    changed(payload={"text": "x" * (10 << 20)}),
    *(without(name) for name in GOOD),
    *(changed(command_id=value) for value in BAD_IDS),
    *(changed(capability=value) for value in ("", "  ", 7, None, "x" * 201, "a\0b")),
    *(changed(version=value) for value in BAD_VERSIONS),
    *(changed(payload=value) for value in BAD_PAYLOADS),
    changed().replace("{}", '{"n": NaN}'),
    changed().replace("{}", '{"n": 1e999}'),
    changed().replace("{}", r'{"n": "\ud800"}'),
    changed().replace("good", r"\ud800"),
    changed(capability="control.explode"),
    changed(capability="control."),
    changed(capability="control.drain", version=2),
    changed(capability="control.cancel"),
    changed(capability="control.cancel", payload={"command_id": 3}),
    changed(capability="control.capacity", payload={"attempts": -1}),
    changed(capability="control.capacity", payload={"attempts": "many"}),
    changed(capability="control.withdraw", payload={"capability": "x"}),
]

FRAMES = [
    b"",
    b"\n\n\n\n",
    b": a comment\n\n",
    b"event: command\n\n",
    b"event: command\ndata:\n\n",
    b"event: command\ndata: {\n\n",
    b"event: command\ndata: \xff\xfe\xfd\n\n",
    b"event: command\nid: not a number\ndata: {}\n\n",
    b"event: command\nid: 99999999999999999999999999\ndata: []\n\n",
    b"event: command\nid: \xd9\xa3\ndata: []\n\n",
    b"event: \xff\ndata: {}\n\n",
    b"data: no name\n\n",
    b"no colon at all\n\n",
    b"\0\0\0\0\n\n",
    b"event: command\r\ndata: null\r\n\r\n",
    b"event: something else\ndata: {}\n\n",
    b"event: caught-up\ndata: {}\n\n",
    b"event: command\ndata: " + b"x" * (5 << 20) + b"\n\n",
    b"retry: soon\n\n",
    b"id: 1\nid: 2\nevent: command\nevent: command\ndata: 1\ndata: 2\n\n",
]

REPLIES = [
    b"",
    b"\0",
    b"not http\r\n\r\n",
    b"HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 banana OK\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{}",
    b"HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n{}",
    b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n[]",
    b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
    b'HTTP/1.1 201 Created\r\nContent-Length: 18\r\n\r\n{"session_id": ""}',
    b'HTTP/1.1 201 Created\r\nContent-Length: 17\r\n\r\n{"session_id": 3}',
    b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\n\xff\xfe\xfd\xfc",
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 302 Found\r\nLocation: nowhere\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\n\xff\xff\xff",
    b"HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 201 Created\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
]

DATABASES = [
    *(f"cut at {size}" for size in (0, 1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 10_000, 20_000)),
    *(f"page {number} of zeros" for number in range(1, 9)),
    *(f"page {number} of noise" for number in range(1, 9)),
    "a directory",
    "a text",
    "the version of another program",
    "no tables",
]

INPUTS = (*COMMANDS, *FRAMES, *REPLIES, *DATABASES)


def test_there_are_more_than_a_hundred() -> None:
    """The cases are counted, so that none is lost from the list."""
    assert len(INPUTS) > 100


@pytest.mark.requirement("INB-13")
@pytest.mark.parametrize("text", COMMANDS, ids=range(len(COMMANDS)))
def test_a_malformed_command_is_one_kind_of_error(text: str) -> None:
    """A malformed command is invalid, with a reason; the reading never fails otherwise."""
    with pytest.raises(DomainError, match="malformed") as refusal:
        order_of(parse_command(text))
    assert refusal.value.kind is Kind.INVALID


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[HttpLink]:
    """Give a link to a server that answers every request with some bytes and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                await reader.readexactly(int(line.split(b":")[1]))
        writer.write(reply)
        writer.close()
        await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="m-") as scratch:
        path = str(Path(scratch, "s"))
        server = await asyncio.start_unix_server(answer, path)
        link = HttpLink(f"unix:{path}")
        try:
            yield link
        finally:
            await link.close()
            server.close()
            await server.wait_closed()


@pytest.mark.requirement("INB-14", "INB-15")
@pytest.mark.parametrize("frame", FRAMES, ids=range(len(FRAMES)))
def test_a_malformed_frame_hides_no_command(frame: bytes) -> None:
    """What comes after the frame is read, or the stream fails as a delivery."""
    good = f"id: 7\nevent: command\ndata: {json.dumps(GOOD)}\n\nevent: caught-up\ndata: {{}}\n\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

    async def run() -> None:
        async with answering(head + frame + good.encode()) as link:
            stream = SseCommandStream(link)
            got = await stream.open(Session("s"))
            if not any("good" in each.data for each in got):
                got.append(await stream.next())
            with pytest.raises(DeliveryError):
                await stream.next()
            await stream.close()
            assert parse_command(got[-1].data).command_id == "good"
            for each in got[:-1]:
                with pytest.raises(DomainError, match="malformed"):
                    parse_command(each.data)

    asyncio.run(run())


@pytest.mark.requirement("DEL-01", "DEL-06", "DEL-07", "SES-01")
@pytest.mark.parametrize("reply", REPLIES, ids=range(len(REPLIES)))
def test_a_malformed_reply_is_a_failed_delivery(reply: bytes) -> None:
    """The failure is marked, tried again later, and never taken for a success."""

    async def run() -> None:
        async with answering(reply) as link:
            control = HttpControlPlane(link)
            with pytest.raises(DeliveryError) as failure:
                await control.register(Registration("i", "n", "d", NodeInventory(1)))
            assert retryable_delivery(failure.value)
            assert str(failure.value).startswith("POST /sessions: ")

    asyncio.run(run())


@pytest.mark.requirement("DEL-04", "DEL-06")
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Kind.INVALID), (401, Kind.UNAUTHENTICATED), (403, Kind.FORBIDDEN), (409, Kind.CONFLICT)],
)
def test_a_refusal_keeps_its_kind(status: int, kind: Kind) -> None:
    """A refusal keeps its kind, whatever its text is."""
    reply = f"HTTP/1.1 {status} No\r\nContent-Length: 3\r\n\r\n".encode() + b"\xff{\0"

    async def run() -> None:
        async with answering(reply) as link:
            with pytest.raises(DeliveryError) as failure:
                await HttpControlPlane(link).send_event(
                    Session("s"), Event("e", "c", "a", EventKind.FAILED, {})
                )
            assert kind_of(failure.value) is kind
            assert retryable_delivery(failure.value) is (kind in (Kind.INVALID, Kind.CONFLICT))

    asyncio.run(run())


async def seeded(path: Path) -> None:
    """Make a database that holds a command."""
    store = SqliteStore(path, init=True)
    await store.open()
    await store.begin_incarnation("w1")
    await store.accept(Command("c1", "compute", 1, {}), "a1")
    await store.close()


def damage(path: Path, how: str) -> None:
    """Damage a database in one of the ways of `DATABASES`."""
    whole = path.read_bytes()
    size = 4096
    match how.split():
        case ["cut", "at", at]:
            path.write_bytes(whole[: int(at)])
        case ["page", number, "of", what]:
            start = (int(number) - 1) * size
            filling = b"\0" if what == "zeros" else b"\xa5"
            path.write_bytes(whole[:start] + filling * size + whole[start + size :])
        case ["a", "directory"]:
            path.unlink()
            path.mkdir()
        case ["a", "text"]:
            path.write_text("hello\n" * 1000, encoding="utf-8")
        case ["the", "version", *_]:
            with closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA user_version = 77")
        case _:
            path.unlink()
            with closing(sqlite3.connect(path)) as database:
                database.execute("CREATE TABLE nothing_of_ours (a)")


@pytest.mark.requirement("IDN-03")
@pytest.mark.parametrize("how", DATABASES)
def test_a_malformed_database_stops_the_worker_and_stays(tmp_path: Path, how: str) -> None:
    """The error names the file, and nothing is made in its place."""
    path = tmp_path / "worker.db"

    async def run() -> None:
        await seeded(path)
        damage(path, how)
        store = SqliteStore(path, init=True)
        with pytest.raises(DomainError, match=r"damaged|schema version 77") as failure:
            await store.open()
        await store.close()
        assert failure.value.kind is Kind.INVALID
        assert path.exists()

    asyncio.run(run())
