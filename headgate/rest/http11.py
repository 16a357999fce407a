"""HTTP/1.1 by RFC 9112: uvicorn's protocol on h11, and what the two of them leave to others."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from headgate.rest.connections import Connection
from headgate.rest.errors import error_response
from headgate.rest.limits import RestLimits
from headgate.rest.routing import CERTIFICATE

_AUTHORITY: Final = re.compile(rb"https?://([^/]*)", re.IGNORECASE)
_HEADERS: Final = "headers"
_BODY: Final = "body"
_READING: Final = "the reading of its answer"
_NEXT: Final = "next request"
_REFUSED: Final = "headgate.refused"
"""Of a scope: the client has its answer. What came in one piece with the end of its headers was looked at first."""


class Http11(H11Protocol):
    """One connection. A client that owes us something has its time for that, and makes room for others meanwhile."""

    def __init__(self, config: uvicorn.Config, state: ServerState, connection: Connection, limits: RestLimits) -> None:
        super().__init__(config, state, {})
        self._connection = connection
        self._patience = {_HEADERS: limits.headers_s, _BODY: limits.body_s, _READING: limits.idle_s}
        self._owed: tuple[str | None, object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _should_upgrade(self) -> bool:
        # Java's client and curl offer h2c with every request. To go on in HTTP/1.1 is an answer to that; uvicorn would
        # warn each time that a library for WebSockets is missing.
        return False

    def send_400_response(self, msg: str) -> None:
        """What h11 has just refused."""
        refused = sys.exception()
        status = refused.error_status_hint if isinstance(refused, h11.ProtocolError) else 400
        if status == 431 and b"\n" not in self.conn.trailing_data[0]:
            status = 414  # not even the first line has ended
        self._refuse(HTTPStatus(status), str(refused or msg))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """In JSON as every error, unless an answer has begun. Then nothing more is read."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            told = error_response(status, f"HTTP {status} {status.phrase}: {why}", {"Connection": "close"})
            headers = [*self.server_state.default_headers, *told.raw_headers]
            begin = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
            for event in (begin, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:  # whoever is at work for this client has nobody to answer to any more
            self.scope[_REFUSED] = True  # type: ignore[typeddict-unknown-key]
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._look()

    # --- what the client owes us --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and (certificate := tls.getpeercert()):
            self.app = _certified(self.app, certificate)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._set_timer(None)
        self._connection.leave()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # closed politely, it would wait for a client that does not read
        super().timeout_keep_alive_handler()

    def _look(self) -> None:
        """Its time counts from when it began to owe us this, however many bytes come meanwhile."""
        owed = self._what_is_owed(), self.cycle
        if owed == self._owed:
            return
        self._owed = owed
        self._set_timer(self._patience.get(owed[0]) if owed[0] else None)
        self._connection.waits() if owed[0] else self._connection.works()

    def _what_is_owed(self) -> str | None:
        if self.flow.write_paused or self.transport.is_closing():
            return _READING
        if self.conn.their_state is h11.SEND_BODY:
            return _BODY
        if self.conn.their_state is h11.IDLE:
            return _HEADERS if self.timeout_keep_alive_task is None else _NEXT  # which uvicorn waits for
        return None

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        what = self._what_is_owed()
        if what == _BODY and self.flow.read_paused:  # it is we who do not read
            self._set_timer(self._patience[_BODY])
        elif what == _BODY or (what == _HEADERS and self.conn.trailing_data[0]):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"no end of the {what} within {self._patience[what]:g} s")
        else:
            self.transport.abort()


def _certified(app: Any, certificate: Mapping[str, object]) -> Any:
    """All requests of a connection are by whoever showed that."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CERTIFICATE] = certificate
        await app(scope, receive, send)

    return called


@dataclass(frozen=True, slots=True)
class Rfc9112:
    """ASGI middleware: requests as they are meant where h11 only says what was sent."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _REFUSED in scope:
            return
        whole = _AUTHORITY.match(scope["raw_path"])
        if whole is not None:  # `GET http://host/path`: every server must take it, and this host for the host (3.2.2)
            scope["raw_path"] = scope["raw_path"][whole.end() :] or b"/"
            scope["path"] = unquote(scope["raw_path"].decode())
            scope["headers"] = [(b"host", whole[1]), *(each for each in scope["headers"] if each[0] != b"host")]
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy before us may see another end of it than we do: what follows is nobody's request (6.1).
            scope["headers"].append((b"connection", b"close"))
        await self.app(scope, receive, send)
