"""The one connection pool to the coordinator, shared by requests and stream."""

from __future__ import annotations

import aiohttp

_UNIX = "unix:"

CONNECT_TIMEOUT_S = 10.0
"""How long a connection may take to be made, in seconds."""

REQUEST_TIMEOUT_S = 30.0
"""How long a request may take as a whole, in seconds; then it is a failed delivery (DEL-09)."""


class HttpLink:
    """Makes its client session when it is first needed, inside the running loop.

    Args:
        address: ``unix:PATH`` of a socket, or ``http://HOST:PORT``.
    """

    def __init__(self, address: str) -> None:
        self._socket_path = address.removeprefix(_UNIX) if address.startswith(_UNIX) else None
        # Over a Unix socket the host in the URL only fills the Host header.
        self._base = "http://coordinator" if self._socket_path else address.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The client session of this link."""
        if self._session is None:
            connector = (
                aiohttp.UnixConnector(self._socket_path)
                if self._socket_path
                else aiohttp.TCPConnector()
            )
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def url(self, path: str) -> str:
        """Return the URL of a path.

        Args:
            path: Path of a request, starting with a slash, quoted.
        """
        return self._base + path

    async def close(self) -> None:
        """Close the pool; does nothing if it was never used."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
