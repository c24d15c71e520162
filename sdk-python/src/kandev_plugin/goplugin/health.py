"""The health service: whether the plugin says that it serves."""

from __future__ import annotations

import threading
from collections.abc import Callable

import grpc

from kandev_plugin.goplugin.call import Call, entered
from kandev_plugin.proto import health_pb2 as pb

# The service that go-plugin's hosts ask about; the empty name stands for the whole server.
_NAMES = ("", "plugin")


class Health:
    """What the plugin answers to its host's pings: at first that it serves."""

    def __init__(self) -> None:
        self._serving = threading.Event()
        self._serving.set()
        self._probe: Callable[[], bool] | None = None

    def set_serving(self, serving: bool) -> None:
        """Answers SERVING from now on, or NOT_SERVING. A host treats the latter as a failed ping."""
        if serving:
            self._serving.set()
        else:
            self._serving.clear()

    def set_probe(self, probe: Callable[[], bool]) -> None:
        """Asks `probe` at every ping from now on. A ping takes as long as its probe; the host's deadline cuts both."""
        self._probe = probe

    def handler(self) -> grpc.GenericRpcHandler:
        """The service."""
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.unary_unary_rpc_method_handler(
                    self._check,
                    request_deserializer=pb.HealthCheckRequest.FromString,
                    response_serializer=pb.HealthCheckResponse.SerializeToString,
                )
            },
        )

    def _check(self, request: pb.HealthCheckRequest, context: grpc.ServicerContext) -> pb.HealthCheckResponse:
        if request.service not in _NAMES:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        with entered(Call(context)):
            serving = self._serving.is_set() and (self._probe is None or self._probe())
        status = pb.HealthCheckResponse.ServingStatus
        return pb.HealthCheckResponse(status=status.SERVING if serving else status.NOT_SERVING)
