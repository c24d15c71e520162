"""Calling the host: waiting for it to be found, and the deadline of each call."""

from __future__ import annotations

from typing import TypeVar

import grpc
from google.protobuf.message import Message

from kandev_plugin.errors import Code, Error, from_rpc
from kandev_plugin.proto import plugin_pb2 as pb
from kandev_plugin.search import Search
from kandev_plugin.settings import Settings

_SERVICE = pb.DESCRIPTOR.services_by_name["Host"].full_name

A = TypeVar("A", bound=Message)


class Caller:
    """What every part of the host's handle stands on."""

    def __init__(self, search: Search, settings: Settings) -> None:
        self._search = search
        self._settings = settings

    def _call(
        self,
        rpc: str,
        request: Message,
        answer: type[A],
        *,
        timeout_s: float | None = None,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> A:
        """Makes one call; `Error` when it fails."""
        limit = self._settings.call_timeout_s if timeout_s is None else timeout_s
        channel = self._search.channel(self._settings.host_wait_s)
        method = channel.unary_unary(
            f"/{_SERVICE}/{rpc}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return method(request, timeout=limit, metadata=metadata)
        except grpc.RpcError as error:
            failed = from_rpc(error)
            if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                failed = Error(Code.DEADLINE_EXCEEDED, f"the host did not answer within {limit:g} s", from_host=True)
            raise failed from error
