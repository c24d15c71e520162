"""One-time certificates: the plugin's own, and what the host's allows.

Owns making the plugin's key, which never leaves the process, and reading the host's certificate. What is done with them
is `transport.py`.
"""

from __future__ import annotations

import datetime
import os
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The name by which go-plugin's two sides know each other.
NAME = "localhost"

# As go-plugin's own: begun a little earlier, for clocks that differ, and outliving any process.
_BACKDATED = datetime.timedelta(seconds=30)
_VALID = datetime.timedelta(days=30 * 365)


@dataclass(frozen=True)
class Identity:
    """The plugin's key and self-signed certificate, made anew at every start."""

    key_pem: bytes = field(repr=False)
    certificate_pem: bytes
    certificate_der: bytes

    @staticmethod
    def generate() -> Identity:
        """P-256: every host's TLS verifies it. A certificate authority, since the peer takes it for its only root."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
        now = datetime.datetime.now(datetime.timezone.utc)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            key_agreement=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        both_ways = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
            .sign(key, hashes.SHA256())
        )
        return Identity(
            key_pem=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
            certificate_der=certificate.public_bytes(serialization.Encoding.DER),
        )

    def load_into(self, context: ssl.SSLContext) -> None:
        """Makes this the side's own certificate. `ssl` reads files only, so the key passes through memory that has a
        path but is on no disk.
        """
        with _in_memory(self.key_pem) as key, _in_memory(self.certificate_pem) as certificate:
            context.load_cert_chain(certificate, key)


@dataclass(frozen=True)
class HostCertificate:
    """The host's certificate of this start, from `PLUGIN_CLIENT_CERT`."""

    pem: bytes
    der: bytes
    grpc_verifies: bool
    """Whether gRPC's own TLS can verify signatures of its key. It cannot for P-521, which go-plugin's own hosts use."""

    @staticmethod
    def read(text: str) -> HostCertificate:
        """Takes the PEM; `ValueError` when it is none."""
        certificate = x509.load_pem_x509_certificate(text.encode())
        key = certificate.public_key()
        verifies = isinstance(key, rsa.RSAPublicKey) or (
            isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1)
        )
        return HostCertificate(
            pem=certificate.public_bytes(serialization.Encoding.PEM),
            der=certificate.public_bytes(serialization.Encoding.DER),
            grpc_verifies=verifies,
        )


@contextmanager
def _in_memory(content: bytes) -> Generator[str, None, None]:
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
