"""HTTP clients for requests to other workers: the same TLS, time-outs and manners for all of them.

No cookies, no proxies, nothing of the environment: one worker talks to another, and to nobody else.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx2
import orjson

from headgate.api.errors import ConfigError
from headgate.rest.body import JSON

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

    def context(self) -> ssl.SSLContext:
        """Raises ConfigError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_host
        try:
            if self.ca is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(self.ca)
            if self.certificate is not None:
                # Without a password OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, None, self.password or "")
        except OSError as error:
            files = ", ".join(file for file in (self.ca, self.certificate) if file is not None)
            raise ConfigError(f"Cannot use the PEM files for https to other workers ({files}): {error}") from error
        return context


def async_client(tls: PeerTls) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(**_options(tls))


def blocking_client(tls: PeerTls) -> httpx2.Client:
    """To be used from any thread."""
    return httpx2.Client(**_options(tls))


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
