"""go-plugin's host side, as far as a test needs it: starts a plugin's process and talks to it over mutual TLS."""

from __future__ import annotations

import base64
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kandev_plugin.goplugin.identity import Identity
from kandev_plugin.proto import goplugin_pb2, health_pb2
from kandev_plugin.proto import plugin_pb2 as pb

NAME = [("grpc.ssl_target_name_override", "localhost"), ("grpc.max_receive_message_length", -1)]
PLUGIN = pb.DESCRIPTOR.services_by_name["Plugin"]


def environment(folder: Path | str, certificate: bytes | None) -> dict[str, str]:
    """What a host sets for a plugin."""
    variables = {
        "PATH": os.environ["PATH"],
        "KANDEV_PLUGIN": "kandev-plugin-v1",
        "PLUGIN_PROTOCOL_VERSIONS": "1",
        "PLUGIN_UNIX_SOCKET_DIR": str(folder),
        "TMPDIR": str(folder),
    }
    return variables if certificate is None else variables | {"PLUGIN_CLIENT_CERT": certificate.decode()}


def start(script: Path, variables: dict[str, str], folder: Path | str) -> subprocess.Popen[bytes]:
    """Starts a plugin's program."""
    return subprocess.Popen(
        [sys.executable, "-B", str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        cwd=folder,
    )


def bare(call: Any) -> Any:
    """A call of bytes."""
    return call


class GoHost:
    """A running plugin. Everything that it prints is kept."""

    def __init__(self, script: Path, folder: Path | None = None) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="gh") if folder is None else None
        self.folder = Path(self._made.name) if self._made else folder or Path()
        self.identity = Identity.generate()
        self.process = start(script, environment(self.folder, self.identity.certificate_pem), self.folder)
        self.stderr = b""
        self.raw_stdout = b""
        self.printed: queue.Queue[goplugin_pb2.StdioData | None] = queue.Queue()
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().decode()
        self._drains = [self._drain("stderr"), self._drain("raw_stdout")]
        assert self.line, self.stderr_to_its_end()
        self.fields = self.line.rstrip("\n").split("|")
        der = base64.b64decode(self.fields[5] + "=" * (-len(self.fields[5]) % 4), validate=True)
        self.plugin_certificate = x509.load_der_x509_certificate(der)
        self.channel = self.dial(self.identity)
        self._announcements: queue.Queue[goplugin_pb2.ConnInfo | None] = queue.Queue()
        self._servers: list[grpc.Server] = []

    def dial(self, identity: Identity | None) -> grpc.Channel:
        """A channel to the plugin, with the certificate of `identity`."""
        root = self.plugin_certificate.public_bytes(Encoding.PEM)
        own = (identity.key_pem, identity.certificate_pem) if identity else (None, None)
        return grpc.secure_channel(f"unix:{self.fields[3]}", grpc.ssl_channel_credentials(root, *own), NAME)

    def serve_host(self, handler: grpc.GenericRpcHandler) -> None:
        """Serves the Host service and announces it on broker id 1."""
        server = grpc.server(futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers([handler])
        address = str(self.folder / "host")
        pair = [(self.identity.key_pem, self.identity.certificate_pem)]
        root = self.plugin_certificate.public_bytes(Encoding.PEM)
        server.add_secure_port(f"unix:{address}", grpc.ssl_server_credentials(pair, root, require_client_auth=True))
        server.start()
        self._servers.append(server)
        self.announce(goplugin_pb2.ConnInfo(service_id=1, network="unix", address=address))

    def announce(self, info: goplugin_pb2.ConnInfo) -> None:
        """Tells the plugin of a service."""
        stream: Any = self.channel.stream_stream(
            "/plugin.GRPCBroker/StartStream",
            request_serializer=goplugin_pb2.ConnInfo.SerializeToString,
            response_deserializer=goplugin_pb2.ConnInfo.FromString,
        )
        self._announcements.put(info)
        self._read(stream(iter(self._announcements.get, None)), lambda _: None)

    def read_stdio(self) -> None:
        """Reads the stdio stream into `printed`, with none at its end."""
        stream: Any = self.channel.unary_stream(
            "/plugin.GRPCStdio/StreamStdio", response_deserializer=goplugin_pb2.StdioData.FromString
        )
        self._read(stream(b""), self.printed.put)

    def printed_to_its_end(self) -> bytes:
        """All that came on the stdio stream."""
        chunks = b""
        while (data := self.printed.get(timeout=10)) is not None:
            assert data.channel == goplugin_pb2.StdioData.STDOUT
            chunks += data.data
        return chunks

    def ping(self, service: str = "plugin") -> int:
        """The health check's answer."""
        make = self.channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        answer: health_pb2.HealthCheckResponse = make(health_pb2.HealthCheckRequest(service=service), timeout=10)
        return answer.status

    def call(self, rpc: str, request: Message, timeout: float = 10) -> Any:
        """A call of the plugin."""
        return self.start_call(rpc, request, timeout).result()

    def start_call(self, rpc: str, request: Message, timeout: float = 10) -> Any:
        """The same as a future."""
        method = self.channel.unary_unary(
            f"/{PLUGIN.full_name}/{rpc}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=GetMessageClass(PLUGIN.methods_by_name[rpc].output_type).FromString,
        )
        return method.future(request, timeout=timeout)

    def shut_down(self) -> int:
        """Asks the plugin to stop; its exit code."""
        # go-plugin's own plugins cut this very call.
        with suppress(grpc.RpcError):
            bare(self.channel.unary_unary("/plugin.GRPCController/Shutdown"))(b"", timeout=5)
        return self.process.wait(10)

    def stderr_to_its_end(self) -> str:
        """What the process wrote on its raw stderr until its end."""
        self.process.wait(10)
        for drain in self._drains:
            drain.join(10)
        return self.stderr.decode()

    def end(self) -> None:
        """Leaves nothing behind."""
        self.process.kill()
        self.process.wait()
        for drain in self._drains:
            drain.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        self._announcements.put(None)
        self.channel.close()
        for server in self._servers:
            server.stop(None).wait()
        if self._made:
            self._made.cleanup()

    def _read(self, stream: Iterator[Any], take: Callable[[Any], object]) -> None:
        def read() -> None:
            with suppress(grpc.RpcError):
                for item in stream:
                    take(item)
            take(None)

        threading.Thread(target=read, daemon=True).start()

    def _drain(self, name: str) -> threading.Thread:
        pipe = self.process.stderr if name == "stderr" else self.process.stdout
        assert pipe is not None

        def drain() -> None:
            for line in pipe:
                setattr(self, name, getattr(self, name) + line)

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        return thread
