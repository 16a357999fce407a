"""Certificates for tests, signed by an authority of their own."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Authority:
    """Signs certificates. `ca` is the file of its own."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._builder(self._name, self._key.public_key(), 90).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def issue(self, name: str, days: float = 90) -> Path:
        """A file with a certificate for 127.0.0.1, and its key before it."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        made = self._builder(subject, key.public_key(), days).add_extension(host, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(private + _pem(made.sign(self._key, hashes.SHA256())) + self.ca.read_bytes())
        return file

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: float) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=100))
            .not_valid_after(now + dt.timedelta(days=days))
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
