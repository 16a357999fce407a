"""An HTTP server in the test's own process, whose answers a test decides on."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes
    certificate: str | None = None
    """Whose, where one was shown."""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = b""
    """Bytes as they are, an iterator piece by piece, all others as JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    """What Content-Length says, if it is not the truth."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asks may hang up at any time, or not trust the certificate."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class HttpServer:
    """Answers with the replies that wait in `replies`, else with what `answer` makes of a request."""

    def __init__(self, answer: Callable[[Asked], Reply] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer or (lambda asked: Reply())
        self.replies: list[Reply] = []
        self.asked: list[Asked] = []
        self.connections = 0
        self._server = _Listener(("127.0.0.1", 0), self._handler())
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def _any(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, self.rfile.read(size), _shown(self.connection))
                server.asked.append(asked)
                reply = server.replies.pop(0) if server.replies else server.answer(asked)
                try:
                    self._send(reply)
                except OSError:  # who asked has gone
                    self.close_connection = True

            def _send(self, reply: Reply) -> None:
                pieces = _pieces(reply.body)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if isinstance(pieces, bytes):
                    self.send_header("Content-Length", str(len(pieces) if reply.length is None else reply.length))
                    pieces = [pieces]
                else:
                    self.close_connection = True
                    self.send_header("Connection", "close")
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                if reply.length is not None:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Tests look at `asked`."""

        return Handler


def _pieces(body: Any) -> bytes | Iterable[bytes]:
    if isinstance(body, bytes) or hasattr(body, "__next__"):
        return body  # type: ignore[no-any-return]
    return json.dumps(body).encode()


def _shown(connection: Any) -> str | None:
    found = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    return dict(pair for part in found["subject"] for pair in part)["commonName"] if found else None  # type: ignore
