"""The bridge, between a peer with a P-521 certificate and a plain server, both ways."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from kandev_plugin.goplugin.bridge import Bridge
from kandev_plugin.goplugin.identity import HostCertificate, Identity
from kandev_plugin.goplugin.transport import Transport


def certificate(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> Identity:
    """As go-plugin's own hosts make theirs."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    algorithm = hashes.SHA512() if isinstance(key, ec.EllipticCurvePrivateKey) else None
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(seconds=30))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, algorithm)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem, der = (made.public_bytes(kind) for kind in (serialization.Encoding.PEM, serialization.Encoding.DER))
    return Identity(private, pem, der)


def context(own: Identity, peer: Identity, protocol: int) -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.check_hostname, made.verify_mode = False, ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=peer.certificate_pem.decode())
    made.set_alpn_protocols(["h2"])
    own.load_into(made)
    return made


PLUGIN, HOST = Identity.generate(), certificate(ec.generate_private_key(ec.SECP521R1()))
STRANGER = certificate(ec.generate_private_key(ec.SECP521R1()))


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[str]:
    """A plain server that sends back what it gets, and closes when the other side does."""
    path = str(tmp_path / "echo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def one(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield path
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def talk(path: str, own: Identity, data: bytes) -> bytes:
    """Sends over TLS as a host does, and reads as much back at the same time; nothing when the connection breaks."""

    async def talked() -> bytes:
        tls = context(own, PLUGIN, ssl.PROTOCOL_TLS_CLIENT)
        reader, writer = await asyncio.open_unix_connection(path, ssl=tls, server_hostname="localhost")
        writer.write(data)
        try:
            return await reader.readexactly(len(data))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    # A peer that is refused finds its connection closed.
    with suppress(OSError, asyncio.IncompleteReadError):
        return asyncio.run(asyncio.wait_for(talked(), 20))
    return b""


@pytest.mark.parametrize(
    ("key", "verifies"),
    [
        (ec.generate_private_key(ec.SECP256R1()), True),
        (ec.generate_private_key(ec.SECP384R1()), True),
        (ec.generate_private_key(ec.SECP521R1()), False),
        (ed25519.Ed25519PrivateKey.generate(), False),
    ],
)
def test_it_is_told_from_the_hosts_certificate_whether_grpc_can_verify_it(
    key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, verifies: bool
) -> None:
    made = certificate(key)
    read = HostCertificate.read(made.certificate_pem.decode())
    assert (read.der, read.grpc_verifies) == (made.certificate_der, verifies)


def test_bytes_of_the_host_arrive_whole_and_the_answer_too(tmp_path: Path, echo: str) -> None:
    path = str(tmp_path / "b")
    Bridge(HOST.certificate_der).carry(path, echo, accept=context(PLUGIN, HOST, ssl.PROTOCOL_TLS_SERVER))
    data = bytes(range(256)) * 20_000
    assert talk(path, HOST, data) == data


def test_a_stranger_is_not_carried(tmp_path: Path, echo: str) -> None:
    path = str(tmp_path / "b")
    Bridge(HOST.certificate_der).carry(path, echo, accept=context(PLUGIN, HOST, ssl.PROTOCOL_TLS_SERVER))
    assert talk(path, STRANGER, b"x") == b""


def test_a_peer_that_is_trusted_but_not_the_host_is_not_carried(tmp_path: Path, echo: str) -> None:
    path = str(tmp_path / "b")
    # The bytes of the certificate count, whatever a chain would say.
    Bridge(HOST.certificate_der).carry(path, echo, accept=context(PLUGIN, STRANGER, ssl.PROTOCOL_TLS_SERVER))
    assert talk(path, STRANGER, b"x") == b""


def test_the_hosts_service_is_reached_through_it(tmp_path: Path) -> None:
    path, inner = str(tmp_path / "host"), str(tmp_path / "inner")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def serve() -> None:
        accepted, _ = server.accept()
        with context(HOST, PLUGIN, ssl.PROTOCOL_TLS_SERVER).wrap_socket(accepted, server_side=True) as secured:
            secured.sendall(secured.recv(100).upper())

    threading.Thread(target=serve, daemon=True).start()
    Bridge(HOST.certificate_der).carry(inner, path, connect=context(PLUGIN, HOST, ssl.PROTOCOL_TLS_CLIENT))
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(20)
        plain.connect(inner)
        plain.sendall(b"hello")
        assert plain.recv(100) == b"HELLO"
        assert plain.recv(100) == b""
    server.close()


def test_a_target_that_is_gone_ends_the_connection(tmp_path: Path) -> None:
    inner = str(tmp_path / "inner")
    Bridge(HOST.certificate_der).carry(inner, str(tmp_path / "nowhere"))
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(20)
        plain.connect(inner)
        assert plain.recv(100) == b""


def test_the_sockets_of_a_bridged_plugin_are_in_a_folder_of_its_own_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGIN_UNIX_SOCKET_DIR", str(tmp_path))
    transport = Transport(PLUGIN, HostCertificate.read(HOST.certificate_pem.decode()))
    transport.channel(str(tmp_path / "host"), []).close()
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "s").is_socket()
