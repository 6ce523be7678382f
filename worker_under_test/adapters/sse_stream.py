"""The command stream over server-sent events."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp

from worker_under_test.adapters.http_errors import remote_call, require_status
from worker_under_test.adapters.http_link import CONNECT_TIMEOUT_S
from worker_under_test.adapters.sse_parser import ServerSentEvent, SseParser
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.ports.command_stream import Delivery

if TYPE_CHECKING:
    from worker_under_test.adapters.http_link import HttpLink
    from worker_under_test.domain.registration import Session

# The stream is silent for as long as there is no command: only connecting is bounded.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=None)


class SseCommandStream:
    """A `CommandStream` over server-sent events.

    It sends no ``Last-Event-ID``. The coordinator's backlog holds every command that was not
    acknowledged, and what was acknowledged is in the inbox: the worker catches up from facts and
    not from a position in a stream (INB-15).

    Args:
        link: The connection pool, owned by the control plane.
    """

    def __init__(self, link: HttpLink) -> None:
        self._link = link
        self._response: aiohttp.ClientResponse | None = None
        self._parser = SseParser()
        self._events: deque[ServerSentEvent] = deque()

    async def open(self, session: Session) -> list[Delivery]:
        """Connect and read the backlog up to ``caught-up``."""
        await self.close()
        path = f"/sessions/{quote(session.session_id, safe='')}/commands"
        with remote_call(f"GET {path}"):
            self._response = await self._link.session.get(self._link.url(path), timeout=_TIMEOUT)
            await require_status(self._response, 200)
            backlog: list[Delivery] = []
            while (event := await self._event()).name != "caught-up":
                if event.name == "command":
                    backlog.append(Delivery(event.number, event.data))
            return backlog

    async def next(self) -> Delivery:
        """Wait for the next command."""
        with remote_call("the command stream"):
            while (event := await self._event()).name != "command":
                pass
            return Delivery(event.number, event.data)

    async def close(self) -> None:
        """Leave the stream."""
        response, self._response = self._response, None
        self._parser = SseParser()
        self._events.clear()
        if response is not None:
            response.close()

    async def _event(self) -> ServerSentEvent:
        if self._response is None:
            raise DomainError(Kind.INTERNAL, "the command stream is not open")
        while not self._events:
            piece = await self._response.content.readany()
            if not piece:
                raise DomainError(Kind.INTERNAL, "the coordinator ended the command stream")
            self._events.extend(self._parser.feed(piece))
        return self._events.popleft()
