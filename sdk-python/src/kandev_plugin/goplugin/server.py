"""Serving a plugin: the cookie check, the socket, the handshake line, go-plugin's own services, and the order of the
end.

The plugin's services are the caller's, as gRPC handlers.
"""

from __future__ import annotations

import base64
import os
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass

import grpc

from kandev_plugin.goplugin.broker import Broker
from kandev_plugin.goplugin.health import Health
from kandev_plugin.goplugin.identity import HostCertificate, Identity
from kandev_plugin.goplugin.stdio import Redirected
from kandev_plugin.goplugin.stop import Stop
from kandev_plugin.goplugin.transport import Transport
from kandev_plugin.proto import goplugin_pb2 as pb

# How long calls in flight may go on after Shutdown, in seconds; then they are cut. go-plugin itself cuts them at once,
# and its host waits 2 s for the exit.
SHUTDOWN_GRACE_S = 0.5

# Threads for go-plugin's own services: two streams, and pings that wait for a probe.
_SERVICE_THREADS = 16

# The core protocol of every go-plugin host.
_CORE_PROTOCOL = 1

_BY_HAND = """\
This program is a plugin. It is not meant to be executed directly.
Please execute the program that consumes these plugins, which will
load any plugins automatically
"""


class ServeError(Exception):
    """Why a plugin does not serve."""


class NotStartedByHostError(ServeError):
    """The cookie is missing or wrong: somebody started the program by hand. A text for that person was printed."""


@dataclass(frozen=True)
class ServeConfig:
    """What a plugin and its host must agree on."""

    cookie: tuple[str, str]
    """The magic cookie: name and value of the variable by which the program knows that it was started as a plugin."""
    protocol_version: int
    """The application protocol version that is announced."""
    max_message_bytes: int
    """The largest message that is taken from the host."""
    threads: int
    """Calls of the plugin's services at once, when their handlers bring no threads of their own."""


def serve(
    config: ServeConfig,
    build: Callable[[Broker, Health], list[grpc.GenericRpcHandler]],
    goodbye: Callable[[], None] = lambda: None,
) -> None:
    """Serves until the host calls Shutdown: prints the handshake line and runs the services that `build` makes, with
    go-plugin's own beside them. From before `build` on, what the program prints on stdout goes to the host's log.

    After Shutdown `goodbye` runs beside the calls that are still in flight, and this returns when it is done; give it a
    limit well below the host's patience, which is 2 s with go-plugin's own host. Channels to the host stay open.

    On `NotStartedByHostError` a text was printed on stderr; the program should then exit with code 1. SIGINT is
    ignored, since a terminal sends it to the host's plugins too.
    """
    _check_cookie(config)
    transport = Transport(Identity.generate(), _host_certificate())
    stop = Stop()
    broker, health = Broker(transport, stop), Health()
    _ignore_interrupts()
    stdout = Redirected()
    server = grpc.server(
        futures.ThreadPoolExecutor(config.threads + _SERVICE_THREADS, thread_name_prefix="plugin-service"),
        options=[
            ("grpc.max_receive_message_length", config.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
    )
    own = [broker.handler(), health.handler(), stdout.printed.handler(), _controller(stop)]
    server.add_generic_rpc_handlers([*own, *build(broker, health)])
    path = _socket_path()
    try:
        transport.listen(server, path)
    except OSError as error:
        stdout.end()
        raise ServeError(f"cannot bind the socket {path}: {error}; its folder must exist and take it") from error
    try:
        server.start()
        stdout.write_original(handshake_line(config.protocol_version, path, transport.certificate_der))
        stop.wait()
        _end(server, stdout, goodbye)
    finally:
        with suppress(OSError):
            # The host removes the whole folder anyway.
            os.unlink(path)


def handshake_line(protocol_version: int, path: str, certificate_der: bytes) -> str:
    """The line by which the host learns where and as whom the plugin serves, with its end."""
    certificate = base64.b64encode(certificate_der).decode().rstrip("=")
    return f"{_CORE_PROTOCOL}|{protocol_version}|unix|{path}|grpc|{certificate}\n"


def _end(server: grpc.Server, stdout: Redirected, goodbye: Callable[[], None]) -> None:
    parting = threading.Thread(target=goodbye, name="plugin-goodbye", daemon=True)
    parting.start()
    stdout.end()
    # What was printed before goes out first; a child of the plugin may hold its stdout open.
    stdout.printed.wait_end(SHUTDOWN_GRACE_S)
    server.stop(SHUTDOWN_GRACE_S).wait()
    parting.join()


def _check_cookie(config: ServeConfig) -> None:
    name, value = config.cookie
    if os.environ.get(name) != value:
        sys.stderr.write(_BY_HAND)
        raise NotStartedByHostError("this program is a plugin: it is started by its host, not by hand")


def _host_certificate() -> HostCertificate:
    pem = os.environ.get("PLUGIN_CLIENT_CERT")
    if not pem:
        raise ServeError("the host sent no certificate in PLUGIN_CLIENT_CERT; let it turn automatic mutual tls on")
    try:
        return HostCertificate.read(pem)
    except ValueError as error:
        raise ServeError(f"the host's certificate in PLUGIN_CLIENT_CERT is not PEM: {error}") from error


def _ignore_interrupts() -> None:
    # A handler that does nothing: an ignored signal would stay ignored in the plugin's children.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: None)


def _socket_path() -> str:
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.gettempdir()
    return os.path.join(folder, f"plugin{secrets.randbelow(1 << 32)}")


def _controller(stop: Stop) -> grpc.GenericRpcHandler:
    """Shutdown ends `serve`."""

    def shutdown(_request: pb.Empty, context: grpc.ServicerContext) -> pb.Empty:
        # When this call is over: its answer is then on its way.
        if not context.add_callback(stop.set):
            stop.set()
        return pb.Empty()

    return grpc.method_handlers_generic_handler(
        "plugin.GRPCController",
        {
            "Shutdown": grpc.unary_unary_rpc_method_handler(
                shutdown,
                request_deserializer=pb.Empty.FromString,
                response_serializer=pb.Empty.SerializeToString,
            )
        },
    )
