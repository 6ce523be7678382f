"""What a `TypedDict` declares: values are checked against it, and it gives their JSON Schema."""

from __future__ import annotations

import re
from inspect import cleandoc
from types import UnionType
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

import msgspec

from harness.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.model.canonical_json import Json

T = TypeVar("T")


def as_declared(value: object, declared: type[T], where: str) -> T:
    """Return a value as what it is declared to be, without the keys that are not declared.

    Args:
        value: What was read.
        declared: A `TypedDict` or a dataclass.
        where: Name of the value, for the message.

    Raises:
        UsageError: It is something else; the message says where, and what was expected there.
    """
    try:
        return msgspec.convert(value, declared)
    except UnicodeEncodeError as error:  # a lone surrogate where one of a few words is expected
        raise UsageError(f"{where}: {error.object!r} is not a text of UTF-8") from error
    except msgspec.ValidationError as error:
        reason = str(error)
        if reason.startswith("Invalid enum value"):
            choices = get_args(_declared_at(declared, reason.rpartition(" - at ")[2]))
            reason += f"; expected {' or '.join(map(repr, choices))}"
        raise UsageError(f"{where}: {reason}") from error


def json_schemas(declared: Iterable[type]) -> dict[str, Json]:
    """Return the JSON Schemas of `TypedDict`s and of those in them; they allow no other keys."""
    _, found = msgspec.json.schema_components(declared, ref_template="#/$defs/{name}")
    for schema in found.values():
        schema["additionalProperties"] = False
        schema["description"] = cleandoc(schema["description"])  # which older msgspec leaves to us
    return found


def _declared_at(declared: object, place: str) -> object:
    """Return the type that is declared at a place such as ``$.history[0].lane``."""
    for key in re.findall(r"\.(\w+)|\[", place):
        if isinstance(declared, UnionType):
            declared = get_args(declared)[0]
        declared = get_type_hints(declared)[key] if key else get_args(declared)[-1]
    return declared
