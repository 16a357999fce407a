"""HttpClient: one request, one answer of bounded size in bounded time; connections are kept for the next one."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, Final

import httpx2

from headgate import __version__
from headgate.api import ConfigError, ConnectError, RetriableError
from headgate.api.reach import Reach, ReachKind
from headgate.connectors.http.address import Address
from headgate.connectors.http.answer import HttpAnswer, Outcome
from headgate.connectors.http.client_config import CA, CERTIFICATE, CERTIFICATE_KEY, URL, ClientConfig
from headgate.log import hide, masked

_MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD: Final = frozenset({307, 308})
_SHOWN_BYTES: Final = 8192
"""Of the body of an answer that is told of: more than is shown, so that no secret is cut in two."""
_SHOWN: Final = 1000
_HEADERS: Final = {"Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": f"headgate/{__version__}"}
_NO_MORE: Final = "Nothing is asked any more: the task is to stop"


class HttpClient:
    """Used by one thread, but for `interrupt`. It works a layer below httpx2's own client, which unpacks answers of
    any size, and looks at redirects that are not to be followed. There are no proxies, no cookies, no .netrc."""

    def __init__(self, config: ClientConfig, require: Callable[[Reach], None]) -> None:
        """Opens files, after `require` was asked; raises ConfigError."""
        self._config = config
        # Others know the password and not what is made of it.
        hide(config.headers.hidden)
        require(Reach(ReachKind.HOST, config.address.url, URL))
        named = ((CA, config.ca), (CERTIFICATE, config.certificate), (CERTIFICATE_KEY, config.certificate_key))
        for key, file in named:
            if file is not None:
                require(Reach(ReachKind.READ, file, key))
        timeout = httpx2.Timeout(config.request_timeout_s, connect=config.connect_timeout_s)
        self._extensions = {"timeout": timeout.as_dict(), "trace": self._trace}
        self._known = _transport(config, known=True)
        self._others: httpx2.HTTPTransport | None = None
        self._interrupted = False
        self._streams: deque[Any] = deque(maxlen=4)
        self._lock = threading.Lock()

    def ask(
        self, method: str, address: Address, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> HttpAnswer:
        """`headers`: those that the configuration does not set. `most`: bytes of the body that are wanted of an answer
        that is DONE. Raises RetriableError when no answer came, or not all of one, and ConnectError when none that can
        be used will come."""
        for _ in range(_MOST_REDIRECTS):
            answer = self._ask(method, address, body, headers, most)
            to = self._redirected(method, address, answer)
            if to is None:
                break
            address = to
        return answer

    def complaint(self, method: str, address: Address, answer: HttpAnswer) -> str:
        """What is wrong, in a sentence that holds no secrets."""
        told = f"{method} {address.shown} was answered with {answer.status_line}"
        if answer.status in _REDIRECTS:
            with suppress(ValueError):
                to = address.resolve(answer.headers.get("location", ""))
                told += f", which leads to {to.shown} and was not followed"
        return self.without_secrets(f"{told}: {self.excerpt(answer)}" if answer.body else told)

    def excerpt(self, answer: HttpAnswer) -> str:
        """The beginning of the body."""
        text = self.without_secrets(" ".join(answer.body[:_SHOWN_BYTES].decode(errors="replace").split()))
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    def without_secrets(self, text: str) -> str:
        return masked(text, self._config.headers.hidden)

    def interrupt(self) -> None:
        """From another thread: a request under way fails soon, and no other is made."""
        with self._lock:
            self._interrupted = True
            for stream in self._streams:
                _hang_up(stream)

    def close(self) -> None:
        self._known.close()
        if self._others is not None:
            self._others.close()

    # --- one request --------------------------------------------------------------------------------------------------

    def _ask(
        self, method: str, address: Address, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> HttpAnswer:
        what = f"{method} {address.shown}"
        if self._interrupted:
            raise RetriableError(_NO_MORE)
        transport, own = self._transport_for(address)
        sent = httpx2.Headers({**_HEADERS, **headers})
        sent.update(own)
        deadline = time.monotonic() + self._config.request_timeout_s
        try:
            request = httpx2.Request(method, address.url, headers=sent, content=body, extensions=self._extensions)
            with closing(transport.handle_request(request)) as response:
                return _read(response, what, most, deadline)
        except httpx2.TimeoutException as error:
            raise RetriableError(f"{what} was not answered in time ({type(error).__name__})") from error
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            raise ConnectError(f"{what} cannot be asked: {self.without_secrets(str(error))}") from error
        except httpx2.TransportError as error:
            told = self.without_secrets(str(error) or type(error).__name__)
            if _mistrusted(error):
                raise ConnectError(f"{what} failed, and the server is not trusted: {told}") from error
            raise RetriableError(f"{what} failed: {told}") from error

    def _transport_for(self, address: Address) -> tuple[httpx2.HTTPTransport, Mapping[str, str]]:
        """And the headers for it. What shows who we are is for the host of the configuration alone."""
        own = self._config.headers
        if self._config.address.is_home_of(address):
            return self._known, {**own.plain, **own.secret}
        if self._others is None:
            self._others = _transport(self._config, known=False)
        return self._others, own.plain

    def _redirected(self, method: str, address: Address, answer: HttpAnswer) -> Address | None:
        """Where to ask instead; None: nowhere."""
        repeats = answer.status in _SAME_METHOD or (method == "GET" and answer.status in _REDIRECTS)
        if not repeats or "location" not in answer.headers:
            return None
        with suppress(ValueError):
            to = address.resolve(answer.headers["location"])
            return to if address.is_home_of(to) else None
        return None

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._streams.append(info["return_value"])
                if self._interrupted:
                    _hang_up(info["return_value"])


def _read(response: httpx2.Response, what: str, most: int, deadline: float) -> HttpAnswer:
    headers = {name: ", ".join(response.headers.get_list(name)) for name in response.headers}
    found = HttpAnswer(response.status_code, headers, b"")
    if found.outcome is not Outcome.DONE:
        most = _SHOWN_BYTES
    try:
        body, whole = _body(response, most, deadline)
    except (zlib.error, ValueError) as error:
        if found.outcome is not Outcome.DONE:
            return found
        raise ConnectError(f"{what} has an answer that cannot be unpacked: {error}") from error
    except TimeoutError as error:
        raise RetriableError(f"{what} was not answered completely in time") from error
    return HttpAnswer(response.status_code, headers, body, whole)


def _body(response: httpx2.Response, most: int, deadline: float) -> tuple[bytes, bool]:
    """Unpacked here: a few bytes may become very many, and libraries unpack all of them before they ask."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip"):
        raise ValueError(f"it is packed as {packed}")
    unpacked = zlib.decompressobj(wbits=31) if packed.endswith("gzip") else None
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk if unpacked is None else unpacked.decompress(chunk, most + 1 - len(body))
        if len(body) > most:
            return bytes(body[:most]), False
        if time.monotonic() > deadline:
            raise TimeoutError
    if unpacked is not None and body and not unpacked.eof:
        raise ValueError("it ends too early")
    return bytes(body), True


def _transport(config: ClientConfig, known: bool) -> httpx2.HTTPTransport:
    """`known`: for the host of the configuration, which is shown a certificate. Raises ConfigError."""
    try:
        trust = ssl.create_default_context(cafile=config.ca)
    except OSError as error:
        raise ConfigError.invalid(CA, config.ca, f"It cannot be used: {error}") from error
    if known and config.certificate is not None:
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            trust.load_cert_chain(config.certificate, config.certificate_key, config.key_password or "")
        except OSError as error:
            raise ConfigError.invalid(CERTIFICATE, config.certificate, f"It cannot be used: {error}") from error
    return httpx2.HTTPTransport(verify=trust, trust_env=False)


def _mistrusted(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _hang_up(stream: Any) -> None:
    with suppress(OSError):
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
