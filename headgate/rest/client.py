"""HTTP clients for requests to other workers: the same TLS, time-outs and manners for all of them.

No cookies, no proxies, nothing of the environment: one worker talks to another, and to nobody else.
"""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, Generic, TypeVar

import httpx2
import orjson

from headgate.api.errors import ConfigError
from headgate.rest.body import JSON
from headgate.rest.certificates import FromFiles
from headgate.rest.handshake import Handshake

C = TypeVar("C")

_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 100.0
"""Longer than a worker waits for its herder: what it has to say about that is worth having."""
_HOP_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class PeerTls:
    """What https to other workers needs: PEM files."""

    ca: str | None = None
    """Who signs their certificates; None: whom the system trusts."""
    certificate: str | None = None
    """Certificate chain and private key, for workers that ask for one."""
    password: str | None = None
    verify_host: bool = True
    """Whether a certificate must be for the host that is asked."""
    handshake: Handshake = field(default_factory=Handshake)

    @property
    def files(self) -> list[str]:
        return [file for file in (self.ca, self.certificate) if file is not None]

    def context(self) -> ssl.SSLContext:
        """Raises ConfigError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_host
        try:
            self.handshake.apply(context)
            if self.ca is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(self.ca)
            if self.certificate is not None:
                # Without a password OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, None, self.password or "")
        except OSError as error:
            files = ", ".join(self.files)
            raise ConfigError(f"Cannot use the PEM files for https to other workers ({files}): {error}") from error
        return context


class _Clients(Generic[C]):
    """The one for new requests, made anew when its PEM files change, and those before it with requests under way."""

    def __init__(self, tls: PeerTls, make: Callable[..., C]) -> None:
        """Raises ConfigError, when the PEM files cannot be used."""
        self._newest = FromFiles(tls.files, lambda: make(**_options(tls)))
        self._users: Counter[C] = Counter()
        self._lock = threading.Lock()

    def _take(self) -> C:
        with self._lock:
            client = self._newest.get()
            self._users[client] += 1
            return client

    def _give_back(self, client: C) -> list[C]:
        """Those to be closed: nobody needs them any more."""
        with self._lock:
            self._users[client] -= 1
            newest = self._newest.get()
            idle = [each for each, users in self._users.items() if users == 0 and each is not newest]
            for each in idle:
                del self._users[each]
            return idle

    def _all(self) -> list[C]:
        with self._lock:
            return [*{*self._users, self._newest.get()}]


class BlockingClients(_Clients[httpx2.Client]):
    """To be used from any thread."""

    def __init__(self, tls: PeerTls) -> None:
        super().__init__(tls, httpx2.Client)

    @contextmanager
    def lent(self) -> Iterator[httpx2.Client]:
        client = self._take()
        try:
            yield client
        finally:
            for each in self._give_back(client):
                each.close()

    def close(self) -> None:
        for each in self._all():
            each.close()


class AsyncClients(_Clients[httpx2.AsyncClient]):
    def __init__(self, tls: PeerTls) -> None:
        super().__init__(tls, httpx2.AsyncClient)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[httpx2.AsyncClient]:
        client = self._take()
        try:
            yield client
        finally:
            for each in self._give_back(client):
                await each.aclose()

    async def aclose(self) -> None:
        for each in self._all():
            await each.aclose()


def _options(tls: PeerTls) -> dict[str, Any]:
    return {
        "verify": tls.context(),
        "trust_env": False,
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        "headers": {"Accept": JSON, "User-Agent": "kafka-connect"},
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        "timeout": patience(),
    }


def patience(hops: int = 0) -> httpx2.Timeout:
    """`hops`: how often the worker that is asked may pass the request on. It must be the first to lose patience."""
    return httpx2.Timeout(_CONNECT_S, read=_ANSWER_S + _HOP_S * hops)


def reason(error: Exception) -> str:
    """Some errors of the network have no words of their own."""
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What a worker answers when it refuses."""

    error_code: int
    message: str | None

    @classmethod
    def parse(cls, raw: bytes) -> ErrorBody:
        """Raises ValueError."""
        found = orjson.loads(raw)
        if not isinstance(found, dict) or not isinstance(found.get("error_code"), int):
            raise ValueError("no error_code in it")
        message = found.get("message")
        return cls(found["error_code"], None if message is None else str(message))
