"""JSON as the harness writes it: one canonical text for one value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool | None
JsonObject: TypeAlias = Mapping[str, Json]


def canonical(value: Json) -> str:
    """Return the one text of a value: keys sorted, no spaces, non-ASCII kept.

    Args:
        value: A JSON value; NaN and infinities are refused.

    Raises:
        ValueError: The value holds a number that JSON does not know.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical text, in hexadecimal."""
    import hashlib  # noqa: PLC0415 - a library more makes every fork of a worker dearer

    return hashlib.sha256(canonical(value).encode()).hexdigest()


def one_item_a_line(value: Json, width: int = 160) -> str:
    """Return a text to be compared line by line: what fits stands on one line, the rest is split.

    Args:
        value: A JSON value.
        width: How long a line may be that can be split, in characters.
    """
    return "\n".join(_lines(value, "", width)) + "\n"


def _lines(value: Json, before: str, width: int) -> Iterator[str]:
    """Give the lines of a value; `before` stands in front of it, its indentation included."""
    text = before + json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) <= width or not value or not isinstance(value, list | dict):
        yield text
        return
    indent = " " * (len(before) - len(before.lstrip(" ")) + 1)
    if isinstance(value, dict):
        pairs = [(f"{json.dumps(key, ensure_ascii=False)}: ", item) for key, item in value.items()]
        opening, closing = "{", "}"
    else:
        pairs = [("", item) for item in value]
        opening, closing = "[", "]"
    yield before + opening
    for number, (name, item) in enumerate(pairs, start=1):
        *rest, last = _lines(item, indent + name, width)
        yield from rest
        yield last + ("," if number < len(pairs) else "")
    yield indent[:-1] + closing
