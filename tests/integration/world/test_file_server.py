"""Files that are had in parts, change between requests, and come over connections that are cut."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
import pytest
from worker_side import WorkerSide

from harness.model.errors import HarnessError, UsageError
from harness.world.ledger import EffectLedger
from harness.world.services.file_server import (
    FileRequest,
    FileServer,
    SourceFile,
    read_file_requests,
)
from harness.world.wire_faults import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from worker_side import OpenServices

    from harness.world.client import World

OLD = b"0123456789"
NEW = b"abcdefgh"


@pytest.mark.requirement("REC-04")
def test_the_whole_and_every_part_at_the_edges(
    open_services: OpenServices, world_dir: Path
) -> None:
    """A transfer can go on from any offset inside; what was sent is counted outside."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            whole = await worker.download("a")
            assert (whole.status, whole.body, whole.whole) == (200, OLD, True)
            assert whole.headers["ETag"] == '"1"'
            assert whole.headers["Accept-Ranges"] == "bytes"
            assert whole.headers["Content-Length"] == "10"
            assert "Content-Range" not in whole.headers
            for asked, body, said in (
                ("bytes=0-", OLD, "bytes 0-9/10"),
                ("bytes=9-", b"9", "bytes 9-9/10"),
                ("bytes=3-3", b"3", "bytes 3-3/10"),
                ("bytes=2-4", b"234", "bytes 2-4/10"),
                ("bytes=8-99", b"89", "bytes 8-9/10"),
            ):
                part = await worker.download("a", {"Range": asked})
                assert (part.status, part.body) == (206, body)
                assert part.headers["Content-Range"] == said
                assert part.headers["Content-Length"] == str(len(body))
                assert part.headers["ETag"] == '"1"'

    endpoint = open_services(partial(FileServer, {"a": SourceFile((OLD,))}))
    asyncio.run(run())
    served = read_file_requests(world_dir)
    assert served[0] == FileRequest(1, "a", 1, "", 200, 1, 0, 10)
    assert served[4] == FileRequest(5, "a", 5, "", 206, 1, 2, 3)
    assert [request.sent for request in served] == [10, 10, 1, 1, 3, 2]
    assert EffectLedger(world_dir).effects() == ()


@pytest.mark.requirement("REC-05")
def test_a_part_after_the_end_is_refused(open_services: OpenServices, world_dir: Path) -> None:
    """An offset at the size or beyond is 416, with the size; in an empty file every one is."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            for name, first, size in (("a", 10, 10), ("a", 11, 10), ("empty", 0, 0)):
                reply = await worker.get(f"/files/{name}", {"Range": f"bytes={first}-"})
                assert (reply.status, reply.error_kind) == (416, "unsatisfiable")
                raw = await worker.download(name, {"Range": f"bytes={first}-"})
                assert raw.headers["Content-Range"] == f"bytes */{size}"
            empty = await worker.download("empty")
            assert (empty.status, empty.body) == (200, b"")

    files = {"a": SourceFile((OLD,)), "empty": SourceFile((b"",))}
    endpoint = open_services(partial(FileServer, files))
    asyncio.run(run())
    assert [(r.status, r.sent) for r in read_file_requests(world_dir)] == [(416, 0)] * 6 + [
        (200, 0)
    ]


@pytest.mark.requirement("REC-08")
def test_if_range_keeps_versions_apart(open_services: OpenServices, world_dir: Path) -> None:
    """The version that is there gives a part; any other one gives the whole new content."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            asked = {"Range": "bytes=9-", "If-Range": '"1"'}
            same = await worker.download("a", asked)
            assert (same.status, same.body) == (206, b"9")
            other = await worker.download("a", asked)
            assert (other.status, other.body, other.headers["ETag"]) == (200, NEW, '"2"')
            for unequal in ('W/"2"', '"1", "2"', "Mon, 01 Jan 2024 00:00:00 GMT", "2"):
                reply = await worker.download("a", {"Range": "bytes=1-", "If-Range": unequal})
                assert (reply.status, reply.body) == (200, NEW)
            part = await worker.download("a", {"Range": "bytes=1-", "If-Range": '"2"'})
            assert (part.status, part.body) == (206, NEW[1:])
            # Without a range the condition is about nothing.
            assert (await worker.download("a", {"If-Range": '"7"'})).status == 200

    endpoint = open_services(partial(FileServer, {"a": SourceFile((OLD, NEW), change_after=1)}))
    asyncio.run(run())
    assert [r.version for r in read_file_requests(world_dir)] == [1] + [2] * 7


@pytest.mark.requirement("REC-08")
def test_a_source_changes_after_so_many_requests(open_services: OpenServices) -> None:
    """Each version serves as many requests, the last one all others."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            bodies = [(await worker.download("a")).body for _ in range(6)]
            assert bodies == [OLD, OLD, NEW, NEW, b"", b""]

    source = SourceFile((OLD, NEW, b""), change_after=2)
    endpoint = open_services(partial(FileServer, {"a": source}))
    asyncio.run(run())


@pytest.mark.requirement("REC-06")
def test_a_connection_is_cut_at_the_byte(open_services: OpenServices, world_dir: Path) -> None:
    """Just so many bytes of the body arrive, be it none or many."""
    large = bytes(range(256)) * 8192

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            for asked, body, whole in (
                ({}, b"", False),
                ({}, OLD[:1], False),
                ({"Range": "bytes=4-"}, OLD[4:9], False),
                ({}, OLD, True),
                ({}, OLD, True),
            ):
                got = await worker.download("a", asked)
                assert (got.body, got.whole) == (body, whole)
            assert (await worker.download("b")).body == large[:2_000_001]

    files = {"a": SourceFile((OLD,)), "b": SourceFile((large,))}
    cut = {"a": (0, 1, 5, 10), "b": (2_000_001,)}
    endpoint = open_services(partial(FileServer, files, cut=cut))
    asyncio.run(run())
    assert [(r.start, r.sent, r.cut) for r in read_file_requests(world_dir)] == [
        (0, 0, True),
        (0, 1, True),
        (4, 5, True),
        (0, 10, False),
        (0, 10, False),
        (0, 2_000_001, True),
    ]


def test_a_request_is_refused_or_its_reply_lost(
    open_services: OpenServices, world_dir: Path
) -> None:
    """It is 503 before anything, or no reply at all; the next request is served."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            reply = await worker.get("/files/a")
            assert (reply.status, reply.error_kind) == (503, "unavailable")
            # aiohttp's client repeats a GET once by itself.
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await worker.download("a")
            assert (await worker.download("a")).body == OLD

    lost = (Fault("reply_lost", "get", "a", nth) for nth in (2, 3))
    faults = (Fault("refused", "get", "a"), *lost)
    endpoint = open_services(partial(FileServer, {"a": SourceFile((OLD,))}, faults=faults))
    asyncio.run(run())
    assert read_file_requests(world_dir) == (
        FileRequest(1, "a", 1, "refused"),
        FileRequest(2, "a", 2, "reply_lost", 200, 1),
        FileRequest(3, "a", 3, "reply_lost", 200, 1),
        FileRequest(4, "a", 4, "", 200, 1, 0, 10),
    )


def test_malformed_requests_are_refused_and_do_not_count(
    open_services: OpenServices, world_dir: Path
) -> None:
    """Each is refused with a clear error, and leaves no request in the log."""

    async def run() -> None:
        async with WorkerSide(endpoint) as worker:
            for text in (
                "bytes=",
                "bytes=-5",
                "bytes=x-",
                "bytes=5-2",
                "bytes=1-2,4-5",
                "bytes 1-2",
                "bytes=+1-",
                "bytes=1 -",
                f"bytes={'9' * 19}-",
            ):
                reply = await worker.get("/files/a", {"Range": text})
                assert (reply.status, reply.error_kind) == (400, "invalid"), text
                assert "Range" in reply.error_message
            assert (await worker.get("/files/none")).error_kind == "not_found"
            assert (await worker.get("/files/a%00")).error_kind == "invalid"
            assert (await worker.get("/files/")).error_kind == "not_found"
            assert (await worker.post("/files/a", {})).error_kind == "not_found"
            # A unit that is not known is ignored (RFC 9110, 14.2).
            assert (await worker.download("a", {"Range": "lines=1-2"})).body == OLD

    endpoint = open_services(partial(FileServer, {"a": SourceFile((OLD,))}))
    asyncio.run(run())
    assert len(read_file_requests(world_dir)) == 1


@pytest.mark.parametrize("cut", [(), (3_000_000,)])
def test_a_client_that_does_not_read_holds_nothing_up(
    world: World, open_services: OpenServices, world_dir: Path, cut: tuple[int, ...]
) -> None:
    """A worker that is stopped in a download, or dead, is no fault of the world."""
    files = {"a": SourceFile((bytes(4_000_000),))}
    path = open_services(partial(FileServer, files, cut={"a": cut})).removeprefix("unix:")
    with socket.socket(socket.AF_UNIX) as stopped, socket.socket(socket.AF_UNIX) as dead:
        for client in (stopped, dead):
            client.settimeout(5.0)
            client.connect(path)
            client.sendall(b"GET /files/a HTTP/1.1\r\nHost: world\r\n\r\n")
            assert client.recv(5) == b"HTTP/"
        dead.close()
        world.snapshot(world_dir.with_name("copy"))
        world.close_services()
    assert len(read_file_requests(world_dir)) == 2


@pytest.mark.requirement("REC-08")
def test_the_count_goes_on_in_a_copy(
    world: World, open_services: OpenServices, world_dir: Path
) -> None:
    """Versions and cuts are counted over the experiment, in a snapshot as in place."""
    server = partial(
        FileServer,
        {"a": SourceFile((OLD, NEW), change_after=2)},
        cut={"a": (99, 3, 2)},
    )

    async def run(endpoint: str, bodies: list[bytes]) -> None:
        async with WorkerSide(endpoint) as worker:
            assert [(await worker.download("a")).body for _ in bodies] == bodies

    asyncio.run(run(open_services(server), [OLD]))
    copy = world_dir.with_name("copy")
    world.snapshot(copy)
    asyncio.run(run("unix:" + str(world_dir / "w.sock"), [OLD[:3]]))
    world.close_services()
    assert [r.nth for r in read_file_requests(world_dir)] == [1, 2]
    assert [r.nth for r in read_file_requests(copy)] == [1]
    asyncio.run(run(open_services(server), [NEW[:2], NEW]))
    world.close_services()
    asyncio.run(run(open_services(server, at=copy), [OLD[:3], NEW[:2], NEW]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SourceFile(()), "needs a version"),
        (lambda: SourceFile((OLD, NEW)), "after 0 requests"),
        (lambda: SourceFile((OLD,), -1), "after -1 requests"),
        (lambda: FileServer({}, cut={"a": (1,)}), "'a'"),
        (lambda: FileServer({"a": SourceFile((OLD,))}, cut={"a": (-1,)}), "after 0 bytes or more"),
        (lambda: FileServer({}, faults=(Fault("refused", "get", "b"),)), "'b'"),
    ],
)
def test_a_server_that_contradicts_itself_is_a_usage_error(make: object, message: str) -> None:
    """A server that cannot be is refused, and the message says what is wrong."""
    assert callable(make)
    with pytest.raises(UsageError, match=message):
        make()


def test_without_a_server_there_is_no_log(world_dir: Path) -> None:
    """An oracle that reads what is not there is told so."""
    with pytest.raises(HarnessError, match=r"files\.db"):
        read_file_requests(world_dir)
