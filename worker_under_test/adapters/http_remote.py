"""Requests to services outside, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from worker_under_test.adapters.http_errors import remote_call
from worker_under_test.adapters.http_link import REQUEST_TIMEOUT_S, HttpLink
from worker_under_test.ports.remote import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_under_test.domain.json_value import JsonObject

MAX_REPLY_BYTES = 16 << 20
"""Most bytes of a body that are read; a longer one counts as cut there."""


class HttpRemote:
    """A `Remote` over HTTP; each request has a connection of its own, so nothing stays open.

    Args:
        address: ``unix:PATH`` of a socket, or ``http://HOST:PORT``.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: JsonObject | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Make a request; a body that is cut is kept as far as it came."""
        link = HttpLink(self._address)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        with remote_call(f"{method} {path}"):
            try:
                async with link.session.request(
                    method,
                    link.url(path),
                    json=None if body is None else dict(body),
                    headers=headers,
                    timeout=timeout,
                    # An answer like any other: nothing is asked of a place that nobody named.
                    allow_redirects=False,
                    # Ranges count the bytes as they are stored.
                    skip_auto_headers=("Accept-Encoding",),
                ) as response:
                    data, whole = await _read(response)
                    named = {name.lower(): value for name, value in response.headers.items()}
                    return Reply(response.status, data, named, whole)
            finally:
                await link.close()


async def _read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    data = bytearray()
    try:
        async for part in response.content.iter_any():
            data += part
            if len(data) > MAX_REPLY_BYTES:
                return bytes(data[:MAX_REPLY_BYTES]), False
    except (aiohttp.ClientPayloadError, ConnectionError):
        return bytes(data), False
    return bytes(data), True
