"""Mutual TLS between the plugin and its host, both ways, over unix sockets.

gRPC speaks TLS itself when it can verify the host's certificate. For one that it cannot (P-521: go-plugin's own hosts)
Python's `ssl` speaks TLS on the real socket, and a `Bridge` carries the clear bytes to and from gRPC over a socket in a
folder that only this user can enter, who could read the process's memory as well.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import threading
from collections.abc import Sequence
from urllib.parse import quote

import grpc

from kandev_plugin.goplugin.bridge import Bridge
from kandev_plugin.goplugin.identity import NAME, HostCertificate, Identity

# The longest path of a unix socket on Linux, in bytes.
MAX_PATH_BYTES = 107


class Transport:
    """How this plugin and its host reach each other."""

    def __init__(self, identity: Identity, host: HostCertificate) -> None:
        self._identity = identity
        self._host = host
        self._bridge: Bridge | None = None
        self._lock = threading.Lock()

    @property
    def certificate_der(self) -> bytes:
        """The plugin's certificate, for the handshake line."""
        return self._identity.certificate_der

    def listen(self, server: grpc.Server, path: str) -> None:
        """Makes the server, which is not started yet, reachable at `path` for the host alone. `OSError` when it cannot
        be bound.
        """
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise OSError(f"its path has more than {MAX_PATH_BYTES} bytes")
        if self._host.grpc_verifies:
            credentials = grpc.ssl_server_credentials(
                [(self._identity.key_pem, self._identity.certificate_pem)], self._host.pem, require_client_auth=True
            )
            try:
                server.add_secure_port(_uri(path), credentials)
            except RuntimeError as error:
                raise OSError(str(error)) from None
            return
        inner = _private_path()
        server.add_insecure_port(_uri(inner))
        self._bridged().carry(path, inner, accept=self._context(ssl.PROTOCOL_TLS_SERVER))

    def channel(self, path: str, options: Sequence[tuple[str, str | int]]) -> grpc.Channel:
        """A channel to the service that the host serves at `path`. It connects when it is used, and again when it
        must."""
        if self._host.grpc_verifies:
            credentials = grpc.ssl_channel_credentials(
                self._host.pem, self._identity.key_pem, self._identity.certificate_pem
            )
            options = [*options, ("grpc.ssl_target_name_override", NAME)]
            return grpc.secure_channel(_uri(path), credentials, options)
        inner = _private_path()
        self._bridged().carry(inner, path, connect=self._context(ssl.PROTOCOL_TLS_CLIENT))
        return grpc.insecure_channel(_uri(inner), [*options, ("grpc.default_authority", NAME)])

    def _bridged(self) -> Bridge:
        with self._lock:
            if self._bridge is None:
                self._bridge = Bridge(self._host.der)
            return self._bridge

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self._host.pem.decode())
        context.set_alpn_protocols(["h2"])
        self._identity.load_into(context)
        return context


def _uri(path: str) -> str:
    return "unix:" + quote(path)


def _private_path() -> str:
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or None
    return os.path.join(tempfile.mkdtemp(prefix="kp", dir=folder), "s")
