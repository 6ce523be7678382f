"""Shapes: what a JSON value read from a file must look like, said once by a `TypedDict`.

The same declaration checks a record that is read and gives the JSON Schema that is published.
"""

from __future__ import annotations

import types
from functools import cache
from typing import (
    TYPE_CHECKING,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.jsontext import JsonObject

T = TypeVar("T")

_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_SCHEMAS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def check(value: object, shape: type[T], where: str) -> T:
    """Return a value as what it is said to be.

    Keys that the shape does not name are let pass: a later version may have added them.

    Args:
        value: What was read.
        shape: A `TypedDict`.
        where: Name of the value, for the message.

    Raises:
        UsageError: It is something else; the message names the place.
    """
    _check(value, shape, where)
    return cast("T", value)


def _check(value: object, shape: object, where: str) -> None:
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        _check_object(value, _fields(shape), where)
    elif origin in (list, dict):
        _check_all(value, cast("type", origin), arguments[-1], where)
    elif origin is Literal:
        if value not in arguments:
            raise UsageError(f"{where} is {value!r}, none of {', '.join(map(repr, arguments))}")
    elif origin in (Union, types.UnionType):
        if value is not None:
            _check(value, _without_none(arguments), where)
    else:
        _check_plain(value, cast("type", shape), where)


def _check_object(value: object, fields: dict[str, object], where: str) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{where} is no object")
    for key, inner in fields.items():
        if key not in value:
            raise UsageError(f"{where}: {key!r} is missing")
        _check(value[key], inner, f"{where}.{key}")


def _check_all(value: object, kind: type, inner: object, where: str) -> None:
    if not isinstance(value, kind):
        raise UsageError(f"{where} is no {'list' if kind is list else 'object'}")
    items = value.items() if isinstance(value, dict) else enumerate(cast("list[object]", value))
    for key, item in items:
        _check(item, inner, f"{where}[{key!r}]")


def _check_plain(value: object, kind: type, where: str) -> None:
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{where} is not {_NAMES[kind]}")


def _without_none(arguments: tuple[object, ...]) -> object:
    (inner,) = (argument for argument in arguments if argument is not types.NoneType)
    return inner


def json_schema(shape: object) -> JsonObject:
    """Return the JSON Schema of a shape; it allows no key that the shape does not name."""
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        fields = _fields(shape)
        return {
            "type": "object",
            "properties": {key: json_schema(inner) for key, inner in fields.items()},
            "required": list(fields),
            "additionalProperties": False,
        }
    if origin is list:
        return {"type": "array", "items": json_schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": json_schema(arguments[1])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [json_schema(_without_none(arguments)), {"type": "null"}]}
    return {"type": _SCHEMAS[cast("type", shape)]}


@cache
def _fields(shape: object) -> dict[str, object]:
    return get_type_hints(shape)
