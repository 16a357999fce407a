"""HTTP/1.1 by RFC 9112: uvicorn's protocol on h11, and what the two of them leave to others."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.rest.errors import error_response

_AUTHORITY: Final = re.compile(rb"https?://[^/]*", re.IGNORECASE)


class Http11(H11Protocol):
    def _should_upgrade(self) -> bool:
        # Java's client and curl offer h2c with every request. To go on in HTTP/1.1 is an answer to that; uvicorn would
        # warn each time that a library for WebSockets is missing.
        return False

    def send_400_response(self, msg: str) -> None:
        """What h11 has just refused, in JSON as every error, unless an answer has begun. Then nothing more is read."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refused = sys.exception()
            status = HTTPStatus(refused.error_status_hint if isinstance(refused, h11.ProtocolError) else 400)
            told = error_response(status, f"HTTP {status} {status.phrase}: {refused or msg}", {"Connection": "close"})
            headers = [*self.server_state.default_headers, *told.raw_headers]
            begin = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
            for event in (begin, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


@dataclass(frozen=True, slots=True)
class Rfc9112:
    """ASGI middleware: requests as they are meant where h11 only says what was sent."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = _AUTHORITY.match(scope["raw_path"])
        if whole is not None:  # `GET http://host/path`: every server must take it (3.2.2)
            scope["raw_path"] = scope["raw_path"][whole.end() :] or b"/"
            scope["path"] = unquote(scope["raw_path"].decode())
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy before us may see another end of it than we do: what follows is nobody's request (6.1).
            scope["headers"].append((b"connection", b"close"))
        await self.app(scope, receive, send)
