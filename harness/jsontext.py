"""JSON as the harness writes it: one canonical text for one value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

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
    return hashlib.sha256(canonical(value).encode()).hexdigest()
