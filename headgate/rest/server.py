"""Server: the REST API on its sockets, in a thread of its own.

The sockets are bound when a Server is made, which is meant to be the first thing a worker does: a port in use is then
one sentence, and the worker knows its own address. Requests that come before `start()` wait in the backlog.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import cached_property
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from headgate.access.audit import Audit
from headgate.log import Complaints
from headgate.rest.certificates import Certificate
from headgate.rest.connections import Connection, Connections
from headgate.rest.http11 import Http11, Rfc9112
from headgate.rest.limits import RestLimits
from headgate.rest.listeners import WILDCARDS, Bound, authority, bind_all
from headgate.rest.origins import SameOrigin
from headgate.rest.settings import ADMIN_LISTENERS, RestSettings

log = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_PAUSE_S: Final = 0.5
"""Before a connection is taken again, when there was no file for one."""


class Server:
    """Binds in the constructor, which raises ListenerError; serves from `start()` to `stop()`, once."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._bound = bind_all(settings.listeners, settings.tls)
        self._admin: list[Bound] = []
        try:
            self._admin = bind_all(settings.admin_listeners or (), settings.admin_tls or settings.tls, ADMIN_LISTENERS)
        except Exception:
            _close(self._bound)
            raise
        for remark in {tls.handshake.remark for tls in (settings.tls, settings.admin_tls) if tls is not None} - {None}:
            log.warning("%s", remark)
        self._servers: list[_Uvicorn] = []
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: Exception | None = None

    @property
    def addresses(self) -> list[str]:
        """URLs as in `listeners`, with the ports really opened."""
        return [each.url for each in self._bound]

    @property
    def admin_addresses(self) -> list[str]:
        return [each.url for each in self._admin]

    @property
    def advertised_url(self) -> str:
        """What other workers are told, e.g. `http://10.0.0.7:8083/`."""
        scheme, host, port = self._advertised
        return f"{scheme}://{authority(host, port)}/"

    @property
    def worker_id(self) -> str:
        _, host, port = self._advertised
        return f"{host}:{port}"

    @property
    def certificate_ends(self) -> dict[str, float]:
        """Of each https listener: when its certificate expires, in seconds since 1970."""
        ends = {bound.url: certificate.not_after for bound, certificate in self._certificates()}
        return {url: end for url, end in ends.items() if end is not None}

    def warnings(self) -> list[str]:
        """About certificates; at start, and for as long as they hold."""
        certificates = dict.fromkeys(certificate for _, certificate in self._certificates())
        return [warning for certificate in certificates for warning in certificate.warnings()]

    def open_to_everybody(self, has_logins: bool) -> str | None:
        """A sentence about it, if it is so."""
        urls = [each.url for each in (*self._bound, *self._admin) if each.is_open]
        if has_logins or not urls:
            return None
        return (
            f"The REST API at {', '.join(urls)} is open to everybody who can reach this machine, and asks nobody who"
            " they are; set up logins (headgate.login keys), or set listeners to an address that only the right people"
            " can reach"
        )

    def start(self, app: ASGIApp, admin_app: ASGIApp | None = None, audit: Audit | None = None) -> None:
        """Returns when requests are being answered. `admin_app` is for the admin listeners. What is refused before it
        gets to an application is written down in `audit`, too."""
        self._audit = audit
        limits = self._settings.limits
        # Whoever asks must not take the files that tasks need.
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = limits.connections if files == resource.RLIM_INFINITY else min(limits.connections, files // 4)
        connections = Connections(most, min(limits.per_address, most))
        served = [(app, each) for each in self._bound]
        served += [(admin_app, each) for each in self._admin if admin_app is not None]
        self._servers = [_Uvicorn(app, bound, self._guarded(app, bound), connections, limits) for app, bound in served]
        self._thread = threading.Thread(target=self._run, name="headgate-rest", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        log.info("REST API listens on %s", ", ".join([*self.addresses, *self.admin_addresses]))
        self.warnings()  # which the log is told, too

    def stop(self, timeout: float = 5.0) -> None:
        """Take no more connections, give running requests `timeout` seconds to end, then cut them off. May be repeated.

        Called from any thread but the server's own."""
        for server in self._servers:
            server.end(timeout)
        if self._thread is not None:
            self._thread.join()
        _close([*self._bound, *self._admin])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _certificates(self) -> list[tuple[Bound, Certificate]]:
        bound = (*self._bound, *self._admin)
        return [(each, each.certificate) for each in bound if each.certificate is not None]

    def _guarded(self, app: ASGIApp, bound: Bound) -> ASGIApp:
        address = bound.socket.getsockname()[0]
        return Rfc9112(SameOrigin.of(app, address, self._settings, self.advertised_url, self._audit))

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            self._failure = error  # Raised by start(); after that, only the log can tell.
            if self._started.is_set():
                log.exception("The REST API ended with an error")
        finally:
            self._started.set()

    async def _serve(self) -> None:
        apps = {id(server.app): server.app for server in self._servers}.values()
        async with AsyncExitStack() as lives:
            for app in apps:
                if isinstance(app, Starlette):
                    await lives.enter_async_context(app.router.lifespan_context(app))
            await self._serve_all()

    async def _serve_all(self) -> None:
        serving = [asyncio.create_task(server.serve([server.bound.socket])) for server in self._servers]
        while not all(server.started for server in self._servers) and not any(task.done() for task in serving):
            await asyncio.sleep(0.001)
        if all(server.started for server in self._servers):
            self._started.set()
        await asyncio.gather(*serving)

    @cached_property
    def _advertised(self) -> tuple[str, str, int]:
        settings = self._settings
        schemes = [each.listener.scheme for each in self._bound]
        scheme = settings.advertised_listener or ("http" if "http" in schemes else "https")
        listener = next((each.listener for each in self._bound if each.listener.scheme == scheme), None)
        listener = listener or self._bound[0].listener
        host = settings.advertised_host or (_own_address() if listener.host in WILDCARDS else listener.host)
        return scheme, host, settings.advertised_port or listener.port


class _Uvicorn(uvicorn.Server):
    """One application on one socket. It takes connections itself: asyncio would not count them before they have agreed
    upon TLS, and fills the log when there are no files."""

    def __init__(
        self, app: ASGIApp, bound: Bound, guarded: ASGIApp, connections: Connections, limits: RestLimits
    ) -> None:
        super().__init__(
            uvicorn.Config(
                guarded,
                http=Http11,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=limits.idle_s,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=limits.url_bytes + limits.header_bytes,
            )
        )
        self.app: Final = app
        self.bound: Final = bound
        self.servers = []
        self._connections = connections
        self._limits = limits
        self._complaints = Complaints(log, f"{bound.url} is short of room")
        self._greetings: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.bound.socket.listen(_BACKLOG)
        self.bound.socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        await super().shutdown(sockets)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, (address, *_) = await loop.sock_accept(self.bound.socket)
            except ConnectionAbortedError:  # its client was quicker
                continue
            except OSError as error:
                self._complaints.say(f"no connection can be taken: {error.strerror}")
                self._connections.make_room()
                await asyncio.sleep(_PAUSE_S)
                continue
            connection = self._connections.take(taken, address)
            if connection is None:
                self._complaints.say(f"{len(self._connections)} connections, none of them idle: one more is refused")
            else:
                greeting = loop.create_task(self._greet(connection))
                self._greetings.add(greeting)
                greeting.add_done_callback(self._greetings.discard)
            await asyncio.sleep(0)  # who is connected has his turn, however many come

    async def _greet(self, connection: Connection) -> None:
        """Up to where there is somebody to talk to."""
        certificate, seconds = self.bound.certificate, self._limits.headers_s
        try:
            tls = None if certificate is None else certificate.context()
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Http11(self.config, self.server_state, connection, self._limits),
                connection.socket,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else seconds,
            )
        except Exception as error:
            log.debug("Nothing came of a connection: %s", error)
            connection.leave()

    def end(self, timeout: float) -> None:
        self.config.timeout_graceful_shutdown = timeout  # type: ignore[assignment]
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # Signals are the command line's.


def _close(bound: Sequence[Bound]) -> None:
    for each in bound:
        each.socket.close()


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
