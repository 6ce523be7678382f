"""JSON as values: one type, one canonical text, one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TypeAlias

JsonValue: TypeAlias = str | int | float | bool | list["JsonValue"] | dict[str, "JsonValue"] | None
"""Any value that JSON can write."""

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object that is only read."""


def canonical(value: JsonObject) -> str:
    """Write an object as the one text that stands for it.

    Args:
        value: The object.

    Returns:
        JSON with sorted keys and no spaces: equal objects give equal texts.

    Raises:
        ValueError: It cannot be written: a number is not finite, a text is not Unicode (it holds
            half of a surrogate pair), or it is nested too deeply.
    """
    try:
        text = json.dumps(
            dict(value), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
        )
    except RecursionError as error:
        raise ValueError("the value is nested too deeply for JSON") from error
    # Refused here rather than by the store or the coordinator, when it is too late.
    text.encode()
    return text


def digest(value: JsonObject) -> str:
    """Name an object by its content.

    Args:
        value: The object.

    Returns:
        SHA-256 of its canonical text, in hexadecimal.

    Raises:
        ValueError: See `canonical`.
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def parse_object(text: str) -> dict[str, JsonValue]:
    """Read the text of a JSON object.

    Args:
        text: JSON from outside or from the store.

    Returns:
        The object.

    Raises:
        ValueError: The text is not JSON, not an object, or nested too deeply to be read.
    """
    try:
        value: JsonValue = json.loads(text)
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("JSON is not an object")  # noqa: TRY004 - wrong content, not wrong use
    return value
