"""A Host service that answers what it is told and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kandev_plugin.proto import plugin_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Host"]

Answer = Message | Callable[[Any, grpc.ServicerContext], Message]


class FakeHost:
    """Answers of RPCs by name; without one the empty answer."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Message]] = []
        self.metadata: list[dict[str, str | bytes]] = []

    def handler(self) -> grpc.GenericRpcHandler:
        """The service."""
        handlers = {}
        for method in SERVICE.methods:
            handlers[method.name] = grpc.unary_unary_rpc_method_handler(
                self._behavior(method.name, GetMessageClass(method.output_type)),
                request_deserializer=GetMessageClass(method.input_type).FromString,
                response_serializer=GetMessageClass(method.output_type).SerializeToString,
            )
        return grpc.method_handlers_generic_handler(SERVICE.full_name, handlers)

    def _behavior(self, name: str, empty: type[Message]) -> Callable[[Message, grpc.ServicerContext], Message]:
        def behavior(request: Message, context: grpc.ServicerContext) -> Message:
            self.asked.append((name, request))
            self.metadata.append(dict(context.invocation_metadata()))
            answer = self.answers.get(name)
            if answer is None:
                return empty()
            return answer if isinstance(answer, Message) else answer(request, context)

        return behavior
