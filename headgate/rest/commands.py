"""Commands: every POST, PUT, PATCH and DELETE leaves one line in the log: who, what, outcome, how long."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.rest.errors import sent_path
from headgate.rest.routing import query

log = logging.getLogger(__name__)

_METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
_SHOWN: Final = ("includeTasks", "onlyFailed", "scope")
"""Parameters that make another command of it. Others, and all bodies, may hold secrets."""


@dataclass(frozen=True, slots=True)
class Commands:
    """ASGI middleware. The line is in the log before the client has its answer."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                _tell(Request(scope), message["status"], time.monotonic() - began)
            await send(message)

        command = scope["type"] == "http" and scope["method"] in _METHODS
        await self.app(scope, receive, told if command else send)


def _tell(request: Request, status: int, seconds: float) -> None:
    # Only the worker that the client asked knows who it was, so the line is there. With `forward` it is a worker that
    # asks, for somebody or for itself: a second line, on the leader or the owner, would count each command twice and
    # blame the worker before it. Who looks for the hops of a request finds them with DEBUG.
    level = logging.DEBUG if query(request, "forward") else logging.INFO
    who = request.client.host if request.client is not None else "somebody"
    shown = urlencode([(name, value) for name, value in request.query_params.multi_items() if name in _SHOWN])
    what = sent_path(request) + (f"?{shown}" if shown else "")
    if "connector" in request.path_params:
        what += f", connector {request.path_params['connector']!r}"  # as Python writes it: no name ends the line
    log.log(level, "%s: %s %s: %d in %d ms", who, request.method, what, status, round(seconds * 1000))
