"""Certificates for a server of a test: an authority, and a node that it signed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from locus_memory._internal.providers.drivers import require

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

__all__ = ["write_certificates"]

_LIFETIME: Final = timedelta(days=30)


def write_certificates(folder: Path, host: str) -> None:
    """Create a folder with `ca.pem`, `node.pem` and `node.key`.

    Args:
        folder: The folder; it must not exist.
        host: The IP address that the node's certificate is for.

    Raises:
        MissingDriverError: `cryptography` is not installed.
    """
    require("cryptography.x509", "encryption", needed_by="write_certificates")
    from cryptography import x509  # noqa: PLC0415 - optional
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - optional

    authority, node = _new_key(), _new_key()
    for_authority = _builder("test authority", "test authority", authority).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    for_node = _builder("node", "test authority", node).add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ip_address(host)), x509.DNSName("localhost")]),
        critical=False,
    )
    folder.mkdir()
    for name, builder in (("ca", for_authority), ("node", for_node)):
        (folder / f"{name}.pem").write_bytes(_signed(builder, authority))
    (folder / "node.key").write_bytes(
        node.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def _new_key() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - optional

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _builder(subject: str, issuer: str, key: RSAPrivateKey) -> x509.CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415 - optional

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )


def _name(common: str) -> x509.Name:
    from cryptography import x509  # noqa: PLC0415 - optional
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 - optional

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _signed(builder: x509.CertificateBuilder, key: RSAPrivateKey) -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - optional

    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
