"""HTTP errors of the world: refusals, cut connections, and bugs that its owner must hear of."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from harness.model.canonical_json import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.typedefs import Handler, Middleware

    from harness.model.canonical_json import Json

ErrorKind = Literal[
    "invalid",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "unsatisfiable",
    "internal",
    "unsupported",
    "unavailable",
]
"""Why a request was not served."""

STATUS: Mapping[ErrorKind, int] = MappingProxyType(
    {
        "invalid": 400,
        "unauthenticated": 401,
        "forbidden": 403,
        "not_found": 404,
        "conflict": 409,
        "unsatisfiable": 416,
        "internal": 500,
        "unsupported": 501,
        "unavailable": 503,
    }
)
"""HTTP status of each kind."""

_PASSES = 16
"""Rounds of the event loop in which a connection that waits is accepted, its request is read and
its handler begins; several times as many as asyncio and aiohttp take."""

_CATCH_UP_S = 0.05
"""Longest wait for requests that have arrived, in seconds."""


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of the world
    """The request is answered with an error.

    Args:
        kind: Why, as one of `STATUS`.
        message: What was wrong, for the reader of the reply.
    """

    def __init__(self, kind: ErrorKind, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(f"{kind}: {message}")


class ConnectionCut(Exception):  # noqa: N818 - a fault that was asked for, not an error
    """The connection is cut without a reply."""


def error_reply(kind: ErrorKind, message: str) -> web.Response:
    """Return the error reply that docs/coordinator.md describes.

    Args:
        kind: Why, as one of `STATUS`.
        message: What was wrong.

    Returns:
        A JSON response with the kind's status.
    """
    return json_reply({"error": {"kind": kind, "message": message}}, STATUS[kind])


def json_reply(value: Json, status: int = 200) -> web.Response:
    """Return a reply with a JSON value as its body.

    Args:
        value: The value.
        status: The HTTP status.
    """
    return web.json_response(text=canonical(value), status=status)


class ErrorMiddleware:
    """The outermost layer of the HTTP application of one experiment's services.

    An exception that no service meant is answered with ``internal`` and remembered, so that the
    owner of the world hears of it: a bug of the world must not look like a fault of the worker.
    """

    def __init__(self) -> None:
        self._bugs: list[str] = []
        self._closing = False
        self._unanswered: set[int] = set()
        self._idle = asyncio.Event()

    async def catch_up(self) -> None:
        """Serve what has already arrived, as far as that takes no more than a moment.

        A worker that is stopped or dead sends nothing more, but what it sent before may still lie
        in the sockets. Whether that is served before or after what the owner does next must not
        depend on which of them the event loop sees first.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_S):
                await self._pass()
                while self._unanswered:
                    self._idle.clear()
                    await self._idle.wait()
                    await self._pass()
        except TimeoutError:
            pass  # A request of which the rest never comes, or a worker that does not pause.

    async def answered(self, request: web.Request, _response: web.StreamResponse) -> None:
        """Note that a request has its reply, or its stream has begun.

        Args:
            request: Which; an application calls this by its ``on_response_prepare``.
        """
        self._answered(request)

    def close(self) -> None:
        """Cut every request that arrives from now on."""
        self._closing = True

    def remember(self, where: str, error: BaseException) -> None:
        """Remember a bug of the world.

        Args:
            where: What was being done.
            error: What came out of it.
        """
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        self._bugs.append(f"{where}: {type(error).__name__}: {error}{place}")

    def bugs(self) -> tuple[str, ...]:
        """Return every bug so far, one line each, in the order of their appearance."""
        return tuple(self._bugs)

    def middleware(self) -> Middleware:
        """Return the middleware that an application is made with."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._closing:
                return _cut(request)
            self._unanswered.add(id(request))
            try:
                return await handler(request)
            except Refused as refusal:
                return error_reply(refusal.kind, refusal.message)
            except ConnectionCut:
                return _cut(request)
            except web.HTTPException:
                # Only the router raises these here: no route has this path with this method.
                return error_reply("not_found", f"no request {request.method} {request.path}")
            except Exception as error:  # noqa: BLE001 - whatever it is, the owner must hear of it
                self.remember(f"{request.method} {request.path}", error)
                return error_reply("internal", "the world failed; its owner is told")
            finally:
                self._answered(request)

        return guarded

    def _answered(self, request: web.Request) -> None:
        self._unanswered.discard(id(request))
        if not self._unanswered:
            self._idle.set()

    async def _pass(self) -> None:
        for _ in range(_PASSES):
            await asyncio.sleep(0)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    # aiohttp asks for a response; on an aborted transport it writes none.
    return web.Response()
