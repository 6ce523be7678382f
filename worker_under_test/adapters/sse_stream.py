"""The command stream over server-sent events."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import quote

import aiohttp

from worker_under_test.adapters.http_errors import remote_call, require_status
from worker_under_test.adapters.http_link import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S
from worker_under_test.adapters.sse_parser import ServerSentEvent, SseParser
from worker_under_test.domain.errors import DomainError, Kind
from worker_under_test.domain.json_value import parse_object
from worker_under_test.ports.command_stream import Delivery

if TYPE_CHECKING:
    from worker_under_test.adapters.http_link import HttpLink
    from worker_under_test.domain.registration import Session

# The stream is silent for as long as there is no command: only connecting is bounded.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=None)


class SseCommandStream:
    """A `CommandStream` over server-sent events.

    A stream that is opened again names the last delivery that was seen (``Last-Event-ID``). What
    the coordinator sends then is more than what came after it: every command that was not
    acknowledged, too. The worker catches up from facts, and the position only adds those that
    were delivered and confirmed by somebody in between (INB-15, SES-06).

    Args:
        link: The connection pool, owned by the control plane.
    """

    def __init__(self, link: HttpLink) -> None:
        self._link = link
        self._response: aiohttp.ClientResponse | None = None
        self._parser = SseParser()
        self._events: deque[ServerSentEvent] = deque()
        self._last = ""

    async def open(self, session: Session) -> list[Delivery]:
        """Connect and read the backlog up to ``caught-up``."""
        await self.close()
        path = f"/sessions/{quote(session.session_id, safe='')}/commands"
        with remote_call(f"GET {path}"):
            self._response = await self._link.session.get(
                self._link.url(path),
                timeout=_TIMEOUT,
                headers={"Last-Event-ID": self._last} if self._last else None,
            )
            await require_status(self._response, 200)
            backlog: list[Delivery] = []
            while (event := await self._event()).name != "caught-up":
                if event.name == "command":
                    backlog.append(self._delivery(event))
            return backlog

    async def next(self) -> Delivery:
        """Wait for the next command."""
        with remote_call("the command stream"):
            while (event := await self._event()).name != "command":
                pass
            return self._delivery(event)

    async def waiting(self, session: Session) -> list[Delivery]:
        """Ask for what nobody has confirmed; a request of its own, beside the stream."""
        path = f"/sessions/{quote(session.session_id, safe='')}/waiting"
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        with remote_call(f"GET {path}"):
            async with self._link.session.get(self._link.url(path), timeout=timeout) as response:
                await require_status(response, 200)
                return _listed(await response.text(errors="replace"))

    def _delivery(self, event: ServerSentEvent) -> Delivery:
        # The header must be a number that was given; anything else would be refused for ever.
        if event.number.isascii() and event.number.isdigit():
            self._last = event.number
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


def _listed(text: str) -> list[Delivery]:
    try:
        commands = parse_object(text).get("commands")
    except ValueError as error:
        raise DomainError(Kind.INTERNAL, "the reply is not a JSON object") from error
    if not isinstance(commands, list):
        raise DomainError(Kind.INTERNAL, "the reply lists no commands")
    # What is no object stays text, and is refused where every command is checked.
    return [Delivery("", json.dumps(command)) for command in commands]
