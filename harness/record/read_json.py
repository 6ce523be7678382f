"""JSON files that are read: they are JSON, and of the version that is known."""

from __future__ import annotations

import json
import math
import reprlib
from typing import TYPE_CHECKING, TypeVar

from harness.model.errors import UsageError
from harness.record.typed_dicts import as_declared

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


def read_json(file: Path, what: str) -> object:
    """Read a JSON file.

    Args:
        file: The file.
        what: What it should be, for the message.

    Raises:
        UsageError: It cannot be read, or is not JSON.
    """
    try:
        text = file.read_text(encoding="utf-8")
        # Not `msgspec.json`: it refuses lone surrogates, which records have from names of files.
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise UsageError(f"no {what} at {file}: {error.strerror}") from error
    except RecursionError as error:
        raise UsageError(f"{file} is not JSON that can be read: nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from error


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
        raise UsageError(f"{file} is not a {what}: it is not a JSON object")
    found = data.get("schema")
    if found != schema:
        raise UsageError(
            f"{file} has schema {reprlib.repr(found)}, and this version reads {schema!r} alone; "
            "use the version of crash-harness that wrote it, or run the schedule again"
        )
    return as_declared(data, declared, str(file))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number in JSON")
    return number
