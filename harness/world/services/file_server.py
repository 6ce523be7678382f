"""A file server with ranges, versions that change, and connections that are cut."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp import web

from harness.model.errors import UsageError
from harness.world.http_errors import STATUS, Refused, error_reply
from harness.world.http_fields import path_text
from harness.world.services.file_versions import SourceFile, part_of, wanted_range
from harness.world.services.logged_service import LoggedService
from harness.world.services.request_log import RequestLog, read_requests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.world.services.request_log import Turn
    from harness.world.wire_faults import Fault

__all__ = ["FILE_NAME", "FileRequest", "FileServer", "SourceFile", "read_file_requests"]

FILE_NAME: Final = "files.db"
"""Name of the log in the world's directory."""


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A request of a file, as the server served it.

    Attributes:
        position: Place in the server's log, from 1.
        name: Which file.
        nth: Which request of this file, from 1.
        fault: What happened to it on purpose, one of `harness.world.wire_faults.FaultKind`, or
            nothing.
        status: Status of the reply, also of one that was lost.
        version: Number of the version that it saw, from 1; 0 if it was refused before that.
        start: First byte that was sent, counted from 0.
        sent: How many bytes of the file the server set out to send. A client that goes away may
            have got fewer, never more.
        cut: Whether the connection was cut after them, on purpose.
    """

    position: int
    name: str
    nth: int
    fault: str = ""
    status: int = STATUS["unavailable"]
    version: int = 0
    start: int = 0
    sent: int = 0
    cut: bool = False


def read_file_requests(world_dir: Path) -> tuple[FileRequest, ...]:
    """Read which requests a file server served, in their order.

    Args:
        world_dir: A workspace's ``world/``, or a copy of it.

    Raises:
        HarnessError: There was no file server, or its log cannot be read.
    """
    return tuple(
        FileRequest(
            logged.position, logged.key, logged.nth, logged.fault, **cast("Any", logged.body)
        )
        for logged in read_requests(world_dir / FILE_NAME)
    )


class FileServer(LoggedService):
    """The service ``/files/`` that `docs/world.md` describes; one instance serves one experiment.

    Args:
        files: The files by name.
        cut: For the nth request of a file, after how many bytes of the body the connection is cut;
            a number that the body does not exceed cuts nothing.
        faults: Other faults; the request is ``get``, its key the file's name.

    Raises:
        UsageError: Cuts or faults name unknown files, or contradict themselves.
    """

    def __init__(
        self,
        files: Mapping[str, SourceFile],
        *,
        cut: Mapping[str, tuple[int, ...]] | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> None:
        self._files = dict(files)
        self._cut = dict(cut or {})
        for name in (*self._cut, *(fault.key for fault in faults)):
            if name not in self._files:
                raise UsageError(f"a fault of the file server is at {name!r}, an unknown file")
        if any(after < 0 for cuts in self._cut.values() for after in cuts):
            raise UsageError("a connection is cut after 0 bytes or more")
        super().__init__(RequestLog(FILE_NAME, ("get",), faults, lambda _logged: None))

    def add_routes(self, routes: web.UrlDispatcher) -> None:
        """Add the routes.

        Args:
            routes: Where they go.
        """
        routes.add_get("/files/{name}", self._get, allow_head=False)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        name = path_text(request, "name")
        wanted_range(request.headers)  # A malformed request does not count.
        file = self._files.get(name)
        if file is None:
            raise Refused("not_found", f"there is no file {name!r}")
        async with self.log.turn("get", name) as turn:
            part = part_of(file, turn.nth, request.headers)
            body = part.body[: self._sends(name, turn)]
            await turn.keep(
                "served",
                {
                    "status": part.status,
                    "version": part.version,
                    "start": part.start,
                    "sent": len(body),
                    "cut": len(body) < len(part.body) and not turn.fault,
                },
            )
        if part.status == STATUS["unsatisfiable"]:
            reply = error_reply("unsatisfiable", f"file {name!r} ends before byte {part.start}")
            reply.headers.update(part.headers)
            return reply
        response = web.StreamResponse(status=part.status, headers=part.headers)
        response.content_type = "application/octet-stream"
        response.content_length = len(part.body)
        with suppress(ConnectionError):  # The client was killed, as it is meant to be.
            await response.prepare(request)
            await response.write(body)
            if len(body) < len(part.body) and request.transport is not None:
                # Not aborted: the bytes before the cut have to arrive.
                request.transport.close()
        return response

    def _sends(self, name: str, turn: Turn) -> int | None:
        """Return how many bytes are sent at most, if there is such a bound."""
        if turn.fault:
            return 0
        cuts = self._cut.get(name, ())
        return cuts[turn.nth - 1] if turn.nth <= len(cuts) else None
