"""JSON files that are read: they are JSON, and of the version that is known."""

from __future__ import annotations

import json
import math
import reprlib
from typing import TYPE_CHECKING, TypeVar

from harness.model.errors import UsageError
from harness.model.regular_file import read_regular_file, shown_path
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

_SHOWN_CHARS = 40


def read_json(file: Path, what: str) -> object:
    """Read a JSON file.

    Args:
        file: The file.
        what: What it should be, for the message.

    Raises:
        UsageError: It cannot be read, or is not JSON.
    """
    data = read_regular_file(file, what)
    try:
        # Not `msgspec.json`: it refuses lone surrogates, which records have from names of files.
        return json.loads(
            data.decode(),
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError as error:
        raise UsageError(
            f"{shown_path(file)} is not JSON that can be read: nested too deeply"
        ) from error
    except ValueError as error:
        raise UsageError(f"{shown_path(file)} is not JSON: {error}") from error


def read_versioned(file: Path, declared: type[T], schema: str, what: str) -> T:
    """Read a JSON file whose ``schema`` must be the one that this version reads.

    Args:
        file: The file.
        declared: The `TypedDict` that says what it must look like.
        schema: Its version.
        what: What it should be, for the message.

    Raises:
        UsageError: It cannot be read, is of another version, or is not as declared.
    """
    data = read_json(file, what)
    if not isinstance(data, dict):
        raise UsageError(f"{shown_path(file)} is not a {what}: it is not a JSON object")
    found = data.get("schema")
    if found != schema:
        raise UsageError(
            f"{shown_path(file)} has schema {reprlib.repr(found)}, and this version reads "
            f"{schema!r} alone; use the version of crash-harness that wrote it, or run the "
            "schedule again"
        )
    return as_declared(data, declared, shown_path(file))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:_SHOWN_CHARS]} is not a number in JSON")
    return number
