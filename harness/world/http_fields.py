"""The fields of a request to the world, in its body, path or query, each checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Never, cast

from aiohttp import web

from harness.model.canonical_json import canonical
from harness.world.http_errors import ConnectionCut, Refused

if TYPE_CHECKING:
    from harness.model.canonical_json import Json, JsonObject

MAX_BODY_BYTES = 1 << 20
"""Largest body of a request, in bytes."""


class Fields:
    """The fields of a JSON object; each access checks one.

    Args:
        values: The object.
    """

    def __init__(self, values: JsonObject) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """Return a field that must be a non-empty string.

        Args:
            name: Name of the field.

        Returns:
            The string.

        Raises:
            Refused: The field is missing, is not a non-empty string, or holds a NUL.
        """
        value = self._value(name)
        if not isinstance(value, str) or not value:
            raise Refused("invalid", f"field {name!r} is not a non-empty string")
        _refuse_nul(value, f"field {name!r}")
        return value

    def object(self, name: str) -> JsonObject:
        """Return a field that must be a JSON object.

        Args:
            name: Name of the field.

        Returns:
            The object.

        Raises:
            Refused: The field is missing, or is not an object.
        """
        value = self._value(name)
        if not isinstance(value, Mapping):
            raise Refused("invalid", f"field {name!r} is not an object")
        return value

    def _value(self, name: str) -> Json:
        if name not in self._values:
            raise Refused("invalid", f"field {name!r} is missing")
        return self._values[name]


def path_text(request: web.Request, name: str) -> str:
    """Return a variable part of a request's path.

    Args:
        request: The request.
        name: Name of the part in the route.

    Raises:
        Refused: It holds a NUL.
    """
    value = request.match_info[name]
    _refuse_nul(value, f"part {name!r} of the path")
    return value


def query_text(request: web.Request, name: str) -> str:
    """Return a parameter of a request's query.

    Args:
        request: The request.
        name: Name of the parameter.

    Raises:
        Refused: It is missing, is there more than once, is empty, or is not text without a NUL.
    """
    values = request.query.getall(name, [])
    if len(values) != 1 or not values[0]:
        raise Refused("invalid", f"parameter {name!r} must be given once and not be empty")
    _refuse_nul(values[0], f"parameter {name!r}")
    return values[0]


async def read_fields(request: web.Request) -> Fields:
    """Read the body of a request as a JSON object.

    Args:
        request: The request; its size is bounded by the application's ``client_max_size``.

    Returns:
        The fields of the object.

    Raises:
        Refused: The body is too large, or is not the UTF-8 text of a JSON object.
        ConnectionCut: The client went away before the whole body was there.
    """
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Refused("invalid", f"the body is larger than {MAX_BODY_BYTES} bytes") from None
    except ConnectionError:
        raise ConnectionCut from None
    except web.RequestPayloadError:
        raise Refused("invalid", "the body is not framed as HTTP requires") from None
    try:
        value = cast("Json", json.loads(raw.decode(), parse_constant=_refuse_constant))
        # The canonical text must exist in UTF-8: it is what is compared and stored. A lone
        # surrogate or a number beyond the range of a double parses, and fails here.
        canonical(value).encode()
    except (ValueError, RecursionError) as error:
        raise Refused("invalid", f"the body is not JSON text in UTF-8: {_reason(error)}") from None
    if not isinstance(value, Mapping):
        raise Refused("invalid", "the body is not a JSON object")
    return Fields(value)


def _refuse_nul(value: str, what: str) -> None:
    # PostgreSQL stores no text with a NUL, and what is refused must not depend on the database.
    if "\0" in value:
        raise Refused("invalid", f"{what} holds a NUL")


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
