"""The worker as a program: how it starts, and how it says that it will not."""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING

import pytest

from worker_under_test.adapters.http_link import HttpLink
from worker_under_test.adapters.sse_stream import SseCommandStream
from worker_under_test.domain.errors import DeliveryError
from worker_under_test.domain.registration import Session
from worker_under_test.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def arguments(root: Path, *more: str) -> list[str]:
    """Return a command line without a coordinator to be found."""
    where = f"unix:{root}/nobody"
    return ["--root", str(root), "--coordinator", where, "--instance-id", "w1", *more]


def lose(path: Path) -> None:
    """Delete the database."""
    for each in path.parent.glob("worker.db*"):
        each.unlink(missing_ok=True)


def empty(path: Path) -> None:
    """Leave nothing in the database."""
    path.write_bytes(b"")


def protect(path: Path) -> None:
    """Make the database read-only."""
    path.write_bytes(b"SQLite format 3\0")
    path.chmod(0o400)


@pytest.mark.requirement("IDN-01", "IDN-02", "IDN-03")
@pytest.mark.parametrize(
    ("harm", "said"),
    [(lose, "there is no database"), (empty, "is damaged"), (protect, "is read-only")],
)
def test_a_worker_without_its_database_stops_with_one_line(
    tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    """It stops before it registers, and makes no new database."""
    path = tmp_path / "worker.db"
    harm(path)
    with pytest.raises(SystemExit) as end:
        main(arguments(tmp_path))
    text = str(end.value)
    assert text.startswith("worker: ")
    assert said in text
    assert "\n" not in text
    if harm is lose:
        assert not path.exists()


@pytest.mark.requirement("SES-06", "INB-14", "INB-15")
def test_a_stream_that_is_opened_again_names_the_last_delivery_it_saw() -> None:
    """It names the last whole delivery, also when it broke off in the middle of an event."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            b"id: 4\nevent: command\ndata: {}\n\nevent: caught-up\ndata: {}\n\n"
            b"id: 5\nevent: command\ndata: {}\n\n"
            b"id: 6\nevent: command\nda"
        )
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        with tempfile.TemporaryDirectory(prefix="s-") as scratch:
            server = await asyncio.start_unix_server(answer, f"{scratch}/s")
            link = HttpLink(f"unix:{scratch}/s")
            stream = SseCommandStream(link)
            try:
                for _ in range(2):
                    assert [each.number for each in await stream.open(Session("s"))] == ["4"]
                    assert (await stream.next()).number == "5"
                    with pytest.raises(DeliveryError):
                        await stream.next()
            finally:
                await stream.close()
                await link.close()
                server.close()
                await server.wait_closed()
        first, second = (head.decode().lower() for head in heads)
        assert "last-event-id" not in first
        assert "last-event-id: 5" in second

    asyncio.run(run())
