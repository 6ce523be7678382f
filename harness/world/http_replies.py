"""How a request to the world ends other than well: refused with a kind, or cut off."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from harness.model.canonical_json import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

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
