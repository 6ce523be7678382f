"""One open stream of commands, as server-sent events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from harness.model.canonical_json import canonical

if TYPE_CHECKING:
    from harness.world.coordinator.facts import Delivery, OfferedCommand

CAUGHT_UP: Final = "event: caught-up\ndata: {}\n\n"
"""Sent after the backlog."""


class CommandStream:
    """A stream to one client: texts go in at one end and are sent at the other.

    Args:
        request: The request that asked for the stream.
        session_id: Whose stream it is.
    """

    def __init__(self, request: web.Request, session_id: str) -> None:
        self.session_id = session_id
        self._request = request
        self._texts: asyncio.Queue[str | None] = asyncio.Queue()

    @property
    def connected(self) -> bool:
        """Whether the client is still there, as far as this side knows."""
        transport = self._request.transport
        return transport is not None and not transport.is_closing()

    def put(self, text: str) -> None:
        """Send a text after those before it; does not wait.

        Args:
            text: Whole messages of the event stream.
        """
        self._texts.put_nowait(text)

    def end(self) -> None:
        """End the stream after what was put before."""
        self._texts.put_nowait(None)

    async def run(self) -> web.StreamResponse:
        """Send what is put, until the end is put or the client is gone.

        Returns:
            The response, finished or broken off.
        """
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        try:
            await response.prepare(self._request)
            while (text := await self._texts.get()) is not None:
                await response.write(text.encode())
        except ConnectionError:
            pass  # The client was killed or went away, as it is meant to.
        return response


def message(delivery: Delivery, command: OfferedCommand) -> str:
    """Return a delivery as a message of the event stream.

    Args:
        delivery: What is sent.
        command: The command that it delivers.

    Returns:
        The message with its empty line.
    """
    data = canonical({**command.body, "command_id": command.command_id})
    return f"id: {delivery.number}\nevent: command\ndata: {data}\n\n"
