"""JSON objects to and from what the wire has. The wire knows JSON objects and nothing else at the top
(`google.protobuf.Struct`), and its numbers are doubles: an integer beyond 2^53 loses precision.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import struct_pb2

from kandev_plugin.errors import Code, Error

Object: TypeAlias = dict[str, Any]
"""A JSON object."""

# Up to here a double holds every integer.
_MAX_EXACT = 2**53


def to_struct(what: str, value: Mapping[str, Any] | None) -> struct_pb2.Struct | None:
    """The object for the wire; `INVALID_ARGUMENT` when it holds what JSON cannot."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Error(Code.INVALID_ARGUMENT, f"{what} must be a JSON object, not {type(value).__name__}")
    struct = struct_pb2.Struct()
    _fill(struct, what, value)
    return struct


def to_object(struct: struct_pb2.Struct) -> Object:
    """The JSON of an object."""
    return {name: _from_value(value) for name, value in struct.fields.items()}


def parse_body(what: str, body: bytes) -> Any:
    """The body as JSON; `INVALID_ARGUMENT` when it is none."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise Error(Code.INVALID_ARGUMENT, f"{what}: {error}") from None
    except RecursionError:
        raise Error(Code.INVALID_ARGUMENT, f"{what}: it is nested too deeply") from None


def to_body(value: Any) -> bytes:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _fill(struct: struct_pb2.Struct, what: str, value: Mapping[str, Any]) -> None:
    for name, item in value.items():
        if not isinstance(name, str):
            raise Error(Code.INVALID_ARGUMENT, f"{what} has a name that is no text: {name!r}")
        _set(struct.fields[name], what, item)


def _set(wire: struct_pb2.Value, what: str, value: Any) -> None:
    if value is None:
        wire.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        wire.bool_value = value
    elif isinstance(value, int | float):
        wire.number_value = _number(what, value)
    elif isinstance(value, str):
        wire.string_value = value
    elif isinstance(value, Mapping):
        wire.struct_value.SetInParent()
        _fill(wire.struct_value, what, value)
    elif isinstance(value, list | tuple):
        wire.list_value.SetInParent()
        for item in value:
            _set(wire.list_value.values.add(), what, item)
    else:
        raise Error(Code.INVALID_ARGUMENT, f"{what} cannot be written as JSON: it holds a {type(value).__name__}")


def _number(what: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Error(Code.INVALID_ARGUMENT, f"{what} holds a number that JSON cannot: {value}")
    return number


def _from_value(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "bool_value":
            return value.bool_value
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) <= _MAX_EXACT else number
        case "string_value":
            return value.string_value
        case "struct_value":
            return to_object(value.struct_value)
        case "list_value":
            return [_from_value(item) for item in value.list_value.values]
        case _:
            return None
