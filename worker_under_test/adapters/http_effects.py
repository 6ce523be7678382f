"""Effects over HTTP: ``POST /effects``, idempotent by key."""

from __future__ import annotations

import aiohttp

from worker_under_test.adapters.http_errors import remote_call, require_status
from worker_under_test.adapters.http_link import HttpLink

REQUEST_TIMEOUT_S = 30.0
"""How long a request may take as a whole, in seconds."""


class HttpEffects:
    """`Effects` over HTTP.

    Each effect has a connection of its own: they are few, and nothing is left to be closed.

    Args:
        address: ``unix:PATH`` of a socket, or ``http://HOST:PORT``.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    async def apply(self, kind: str, key: str, token: str) -> None:
        """Ask for an effect; 200 says that it had happened already."""
        link = HttpLink(self._address)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        body = {"kind": kind, "key": key, "token": token}
        try:
            with remote_call("POST /effects"):
                async with link.session.post(
                    link.url("/effects"), json=body, timeout=timeout
                ) as response:
                    await require_status(response, 200, 201)
        finally:
            await link.close()
