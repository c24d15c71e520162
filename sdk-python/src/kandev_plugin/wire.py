"""Field by field between own types and the generated ones, so that a type is written once (`data.py`, `requests.py`).

A field's name is the wire's unless its metadata has `wire`; what a list holds is in its metadata as `of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct

from kandev_plugin.values import to_object, to_struct

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound="Received")


@dataclass(frozen=True, slots=True)
class Received:
    """Made of a message of the wire."""

    @classmethod
    def from_wire(cls: type[R], message: Message) -> R:
        """What the host sent."""
        values = {}
        for field in fields(cls):
            descriptor = message.DESCRIPTOR.fields_by_name[field.metadata.get("wire", field.name)]
            values[field.name] = _received(message, descriptor, field.metadata.get("of"))
        return cls(**values)


def _received(message: Message, descriptor: FieldDescriptor, of: type[Received] | None) -> Any:
    value = getattr(message, descriptor.name)
    if of is not None:
        return [of.from_wire(item) for item in value]
    if isinstance(value, Struct):
        # Absent is an empty object, except where null is a value of its own.
        nullable = message.DESCRIPTOR.name == "StateEntry"
        return None if nullable and not message.HasField(descriptor.name) else to_object(value)
    if descriptor.has_presence and not message.HasField(descriptor.name):
        return None
    return value


@dataclass(frozen=True, slots=True)
class Sent:
    """Becomes a message of the wire."""

    def to_wire(self, message: M) -> M:
        """Fills `message`, which is empty."""
        for field in fields(self):
            _send(message, field.name, getattr(self, field.name))
        return message


def _send(message: Message, name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, Sent):
        part = getattr(message, name)
        part.SetInParent()
        value.to_wire(part)
    elif isinstance(value, Mapping):
        getattr(message, name).CopyFrom(to_struct(name, value))
    elif isinstance(value, list | tuple):
        parts = getattr(message, name)
        for item in value:
            if isinstance(item, Sent):
                item.to_wire(parts.add())
            else:
                parts.append(item)
    else:
        setattr(message, name, value)
