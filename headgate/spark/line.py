"""A line between the driver and a resident: frames of bytes over a socket, on which each side has proved itself.

Both know a secret that never travels on the line. Where Spark encrypts its network, the line is TLS, with a certificate
that is made for this one process and that residents pin.
"""

from __future__ import annotations

import datetime as dt
import errno
import hmac
import os
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

_GREETING_S: Final = 10.0
_NONCE: Final = 16
_PROOF: Final = 32
_LENGTH: Final = struct.Struct(">Q")
_NUMBER: Final = struct.Struct(">Q")
_ONE_WRITE: Final = 64 * 1024
"""What is not larger goes out with its length in one packet."""
_MOST: Final = 2**31 - 1
"""A frame that says it is larger is no frame: whoever sends it has lost count."""
_RECORDS: Final = 256 * 1024
"""So much is encrypted, or decrypted, at once."""
_SILENT_S: Final = 60
"""A machine that says nothing for so long, although it was asked, is gone. A process says itself that it ends."""


class NotOurs(Exception):
    """Whoever is at the other end does not know the secret."""


class Line:
    """One thread sends, one receives. Both raise OSError when the other end is gone."""

    def __init__(self, connection: socket.socket, tls: ssl.SSLContext | None = None, server: bool = False) -> None:
        """With `tls`, raises OSError when the other end will not have it."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_S // 4)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SILENT_S // 4)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_S * 1000)
        self._connection = connection
        self._stream: socket.socket | _Encrypted = connection if tls is None else _Encrypted(connection, tls, server)

    def send(self, data: bytes) -> None:
        head = _LENGTH.pack(len(data))
        if len(data) <= _ONE_WRITE:
            self._stream.sendall(head + data)
        else:
            self._stream.sendall(head)
            self._stream.sendall(data)

    def receive(self) -> bytearray | None:
        """None when the other end has closed the line."""
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        size: int = _LENGTH.unpack(head)[0]
        if size > _MOST:
            raise OSError(errno.EMSGSIZE, f"A frame of {size} bytes is announced")
        return self._exactly(size)

    def settimeout(self, seconds: float | None) -> None:
        """How long to wait for the other end before TimeoutError; None: for ever."""
        self._connection.settimeout(seconds)

    def close(self) -> None:
        """Whoever waits in `receive`, at either end, gets None or an OSError."""
        with suppress(OSError):  # it is closed already
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _exactly(self, size: int) -> bytearray | None:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            count = self._stream.recv_into(view[at:])
            if not count:
                return None
            at += count
        return data


class _Encrypted:
    """TLS on a socket, for two threads. An SSLSocket is not made for one that sends while another receives: Python 3.11
    leaves OpenSSL's state unguarded, 3.13.6 has the sender wait for the receiver. Here, nobody waits with the lock."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, server: bool) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._shake_hands()

    def _shake_hands(self) -> None:
        done = False
        while not done:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            finally:  # also what is wrong with the other end
                self._connection.sendall(self._outgoing.read())
            if not done and not self._fill():
                raise ConnectionResetError("The other end has closed the line while it was being encrypted")

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(data), _RECORDS):
            with self._lock:
                self._tls.write(view[start : start + _RECORDS])
                encrypted = self._outgoing.read()
            self._connection.sendall(encrypted)

    def recv_into(self, buffer: memoryview) -> int:
        while True:
            with self._lock, suppress(ssl.SSLWantReadError):
                try:
                    count: Any = self._tls.read(len(buffer), buffer)
                    return int(count)
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return 0
            if not self._fill():
                return 0

    def _fill(self) -> bool:
        """Waits for more; whether there is more to come."""
        encrypted = self._connection.recv(_RECORDS)
        if encrypted:
            with self._lock:
                self._incoming.write(encrypted)
        return bool(encrypted)


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a resident needs to be let in. Plain: it travels in the closure of a Spark task."""

    host: str
    port: int
    number: int
    """Which resident it is."""
    secret: bytes = field(repr=False)
    certificate: str | None = None
    """PEM; None: the line is not encrypted."""

    def accept(self) -> Line:
        """At the resident's end. Raises OSError, NotOurs."""
        context = None
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False  # it is pinned: there is no other of this name
            context.load_verify_locations(cadata=self.certificate)
        connection = socket.create_connection((self.host, self.port), _GREETING_S)
        with _closed_on_error(connection):
            line = Line(connection, context)
            theirs = _received(line, _NONCE)
            ours, number = os.urandom(_NONCE), _NUMBER.pack(self.number)
            line.send(ours + number + _proof(self.secret, b"resident", theirs, ours, number))
            if not hmac.compare_digest(_received(line, _PROOF), _proof(self.secret, b"driver", ours, theirs)):
                raise NotOurs("The driver does not know the secret of its residents")
            line.settimeout(None)
        return line


def greeted(connection: socket.socket, secret: bytes, tls: ssl.SSLContext | None) -> tuple[int, Line]:
    """At the driver's end: which resident this is. Raises OSError, NotOurs, and has closed the connection then."""
    with _closed_on_error(connection):
        connection.settimeout(_GREETING_S)
        line = Line(connection, tls, server=True)
        ours = os.urandom(_NONCE)
        line.send(ours)
        said = _received(line, _NONCE + _NUMBER.size + _PROOF)
        theirs, number, proof = said[:_NONCE], said[_NONCE:-_PROOF], said[-_PROOF:]
        if not hmac.compare_digest(proof, _proof(secret, b"resident", ours, theirs, number)):
            raise NotOurs("Somebody who is no resident of this worker has called")
        line.send(_proof(secret, b"driver", theirs, ours))
        line.settimeout(None)
    return _NUMBER.unpack(number)[0], line


@contextmanager
def _closed_on_error(connection: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _received(line: Line, size: int) -> bytes:
    """A frame of this size and no other: a stranger cannot make us wait for more."""
    head = line._exactly(_LENGTH.size)
    if head is None or _LENGTH.unpack(head)[0] != size:
        raise NotOurs("The other end does not speak as residents do")
    return bytes(line._exactly(size) or b"")


def _proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"".join(parts), "sha256")


def own_certificate() -> tuple[str, ssl.SSLContext]:
    """A certificate of this process's own, as PEM, and the context of a server that has its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "headgate")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:  # for its owner only, and gone at once: ssl reads keys from files
        file.write(certificate + private)
        file.flush()
        context.load_cert_chain(file.name)
    return certificate.decode(), context
