"""Listeners: where the REST API listens. Read from text, and bound before anything else of a worker is started."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from headgate.rest.certificates import Certificate
from headgate.rest.handshake import Handshake

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<v6>[0-9a-f:.%\w]+)\]|(?P<host>[^\s:/\[\]]*)):(?P<port>[0-9]{1,5})/?", re.IGNORECASE
)
WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104 - to know them in a worker file


class ListenerError(Exception):
    """The REST API cannot listen; the message says where, why, and which key to change."""


@dataclass(frozen=True, slots=True)
class Listener:
    scheme: str
    host: str
    """Empty: all interfaces."""
    port: int
    """0: a free one."""

    @classmethod
    def parse(cls, text: str, key: str = "listeners") -> Listener:
        found = _URL.fullmatch(text.strip())
        if found is None or int(found["port"]) > 65535:
            raise ListenerError(f'"{text}" in {key} is no listener: write http://host:port or https://host:port')
        return cls(found["scheme"].lower(), found["v6"] or found["host"] or "", int(found["port"]))

    def __str__(self) -> str:
        return f"{self.scheme}://{authority(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files of an https listener."""

    certificate: str
    """Certificate chain, and the private key too unless `key` has it."""
    key: str | None = None
    password: str | None = None
    ca: str | None = None
    """Who signs the clients' certificates."""
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    handshake: Handshake = field(default_factory=Handshake)

    @property
    def files(self) -> list[str]:
        return [file for file in (self.certificate, self.key, self.ca) if file is not None]

    def context(self) -> ssl.SSLContext:
        """Raises ListenerError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            self.handshake.apply(context)
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self.certificate, self.key, self.password or "")
            if self.ca is not None:
                context.load_verify_locations(self.ca)
        except OSError as error:
            raise ListenerError(f"Cannot use the PEM files of https ({', '.join(self.files)}): {error}") from error
        context.verify_mode = self.client_auth
        return context


@dataclass(frozen=True, slots=True)
class Bound:
    """A listener with its open socket, at the port it got."""

    listener: Listener
    socket: socket.socket
    certificate: Certificate | None
    """Of https."""

    @property
    def url(self) -> str:
        return str(self.listener)

    @property
    def is_open(self) -> bool:
        """Whether people who are not on this machine get in, and need no certificate for that."""
        address = ip_address(self.socket.getsockname()[0].removeprefix("::ffff:"))
        certificate = self.certificate
        asks = certificate is not None and certificate.context().verify_mode is ssl.CERT_REQUIRED
        return not (address.is_loopback or asks)


def authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_all(listeners: Sequence[Listener], tls: Tls | None, key: str = "listeners") -> list[Bound]:
    """All of them or none. Raises ListenerError."""
    secure = next((each for each in listeners if each.scheme == "https"), None)
    certificate = None if secure is None else _certificate(secure, tls, key)
    bound: list[Bound] = []
    try:
        for listener in listeners:
            bound.append(_bind(listener, certificate if listener.scheme == "https" else None, key))
    except ListenerError:
        for each in bound:
            each.socket.close()
        raise
    return bound


def _certificate(listener: Listener, tls: Tls | None, key: str) -> Certificate:
    if tls is None:
        raise ListenerError(
            f"{listener} in {key} needs a certificate: set ssl.keystore.type=PEM and ssl.keystore.location to a PEM"
            " file with the certificate chain and the private key"
        )
    return Certificate(key, tls.certificate, tls.files, tls.context)


def _bind(listener: Listener, certificate: Certificate | None, key: str) -> Bound:
    try:
        opened = _open(listener)
    except OSError as error:
        where = authority(listener.host, listener.port) if listener.host else f"port {listener.port}"
        raise ListenerError(
            f"Cannot listen on {where}: {_reason(error)} Change {key} in the worker's configuration (now {listener})."
        ) from error
    # Head and body of an answer are sent one after the other. By Nagle's algorithm the body would wait until the client
    # acknowledges the head, 40 ms each time. asyncio sees to it only for sockets that know their protocol's number.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Bound(Listener(listener.scheme, listener.host, opened.getsockname()[1]), opened, certificate)


def _open(listener: Listener) -> socket.socket:
    # create_server sets SO_REUSEADDR, so that a worker can be started again at once, and begins to listen: with that
    # option two sockets may be bound to one port, and only listening tells that it is taken.
    if listener.host == "":
        if socket.has_dualstack_ipv6():
            try:
                return socket.create_server(("", listener.port), family=socket.AF_INET6, dualstack_ipv6=True)
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
        return socket.create_server(("", listener.port))
    found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name with addresses of both kinds, as localhost has, is taken as the one more clients will use.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server(address[:2], family=family)


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "no such host is known."
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is in use, perhaps by another worker."
        case errno.EACCES | errno.EPERM:
            return "this user may not open that port."
        case errno.EADDRNOTAVAIL:
            return "that is no address of this machine."
    return f"{error.strerror or error}."
