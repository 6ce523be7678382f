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

from harness.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from harness.model.canonical_json import JsonObject

    Check: TypeAlias = Callable[[object, str], None]

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
    _checker(cast("object", shape))(value, where)
    return cast("T", value)


@cache
def _checker(shape: object) -> Check:
    """Return what checks values of a shape; made once, as records have many values of few."""
    origin, arguments = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        return _object_checker({key: _checker(inner) for key, inner in _fields(shape).items()})
    if origin is list:
        return _list_checker(_checker(arguments[0]))
    if origin is dict:
        return _dict_checker(_checker(arguments[1]))
    if origin is Literal:
        return _choice_checker(arguments)
    if origin in (Union, types.UnionType):
        return _optional_checker(_checker(_without_none(arguments)))
    return _plain_checker(cast("type", shape))


def _object_checker(fields: dict[str, Check]) -> Check:
    def check_object(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise UsageError(f"{where} is no object")
        for key, check_inner in fields.items():
            if key not in value:
                raise UsageError(f"{where}: {key!r} is missing")
            check_inner(value[key], f"{where}.{key}")

    return check_object


def _list_checker(check_item: Check) -> Check:
    def check_list(value: object, where: str) -> None:
        if not isinstance(value, list):
            raise UsageError(f"{where} is no list")
        for number, item in enumerate(value):
            check_item(item, f"{where}[{number}]")

    return check_list


def _dict_checker(check_item: Check) -> Check:
    def check_dict(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise UsageError(f"{where} is no object")
        for key, item in value.items():
            check_item(item, f"{where}[{key!r}]")

    return check_dict


def _choice_checker(choices: tuple[object, ...]) -> Check:
    def check_choice(value: object, where: str) -> None:
        if value not in choices:
            raise UsageError(f"{where} is {value!r}, none of {', '.join(map(repr, choices))}")

    return check_choice


def _optional_checker(check_inner: Check) -> Check:
    def check_optional(value: object, where: str) -> None:
        if value is not None:
            check_inner(value, where)

    return check_optional


def _plain_checker(kind: type) -> Check:
    allowed = (int, float) if kind is float else (kind,)

    def check_plain(value: object, where: str) -> None:
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise UsageError(f"{where} is not {_NAMES[kind]}")

    return check_plain


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
