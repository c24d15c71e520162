"""The plugin's side of the broker: dialling what the host announces.

Owns the announcements that nobody took yet. An announcement is taken once, by one dial, as in go-plugin.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc

from kandev_plugin.goplugin.call import Call
from kandev_plugin.goplugin.stop import Stop
from kandev_plugin.goplugin.transport import Transport
from kandev_plugin.proto import goplugin_pb2 as pb

# How long a dial waits for its announcement, an announcement for its dial, and a connection for its server, in seconds.
PATIENCE_S = 5.0

# Announcements that may wait; at the bound the oldest is dropped.
_MAX_WAITING = 64

# Of what the host says, at most so much is quoted.
_QUOTE_CHARACTERS = 32


class DialError(Exception):
    """Why a service of the host cannot be called."""


class Broker:
    """A plugin's way to its host."""

    def __init__(self, transport: Transport, stop: Stop) -> None:
        self._transport = transport
        self._stop = stop
        self._waiting: list[tuple[float, pb.ConnInfo]] = []
        self._arrived = threading.Condition()

    def dial(self, service_id: int) -> grpc.Channel:
        """Connects to the host's service `service_id`; blocks. Waits up to 5 s for its announcement, which is used up
        by this: a second dial of the same id waits for a second one. The channel connects anew by itself when it must,
        and works on after serving has ended.
        """
        info = self._announced(service_id)
        if info.network != "unix":
            network = info.network[:_QUOTE_CHARACTERS]
            raise DialError(f"the host serves {service_id} on {network!r}, only unix sockets are dialled")
        # A response may be as large as the host makes it.
        channel = self._transport.channel(info.address, [("grpc.max_receive_message_length", -1)])
        try:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE_S)
        except grpc.FutureTimeoutError:
            channel.close()
            raise DialError(f"cannot connect to the host within {PATIENCE_S:.0f} s") from None
        return channel

    def _announced(self, service_id: int) -> pb.ConnInfo:
        with self._arrived:
            info: pb.ConnInfo | None = None

            def found() -> bool:
                nonlocal info
                info = self._take(service_id)
                return info is not None

            self._arrived.wait_for(found, PATIENCE_S)
            if info is None:
                raise DialError(f"the host announced no service {service_id} within {PATIENCE_S:.0f} s")
            return info

    def _take(self, service_id: int) -> pb.ConnInfo | None:
        now = time.monotonic()
        self._waiting = [waiting for waiting in self._waiting if waiting[0] > now]
        for place, (_, info) in enumerate(self._waiting):
            if info.service_id == service_id:
                del self._waiting[place]
                return info
        return None

    def arrive(self, info: pb.ConnInfo) -> None:
        """Takes an announcement."""
        with self._arrived:
            self._waiting = [*self._waiting, (time.monotonic() + PATIENCE_S, info)][-_MAX_WAITING:]
            self._arrived.notify_all()

    def handler(self) -> grpc.GenericRpcHandler:
        """The service by which announcements come."""
        return grpc.method_handlers_generic_handler(
            "plugin.GRPCBroker",
            {
                "StartStream": grpc.stream_stream_rpc_method_handler(
                    self._start_stream,
                    request_deserializer=pb.ConnInfo.FromString,
                    response_serializer=pb.ConnInfo.SerializeToString,
                )
            },
        )

    def _start_stream(
        self, announcements: Iterator[pb.ConnInfo], context: grpc.ServicerContext
    ) -> Iterator[pb.ConnInfo]:
        over = threading.Event()
        Call(context).on_end(over.set)
        self._stop.on_set(over.set)

        def read() -> None:
            try:
                for info in announcements:
                    self.arrive(info)
            except Exception:  # noqa: S110 the stream's end, which gRPC tells so
                pass
            over.set()

        threading.Thread(target=read, name="plugin-broker", daemon=True).start()
        # The stream back lasts as long as this does; nothing is ever announced on it.
        over.wait()
        self._stop.forget(over.set)
        return iter(())
