"""Commands: every POST, PUT, PATCH and DELETE leaves one line in the log, and one in the audit where there is one.

The worker that the client asked writes them, for it knows who that was; a worker that another one asked does not, for
the same command would be counted twice. Whoever looks for the hops of a request finds them with DEBUG, by its id.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.access.audit import Audit, AuditRecord
from headgate.access.principal import Principal
from headgate.rest.body import message_in
from headgate.rest.callers import ID_HEADER, PASSED_ON, PRINCIPAL, address_of, request_id
from headgate.rest.errors import sent_path

log = logging.getLogger(__name__)

_METHODS: Final = ("POST", "PUT", "PATCH", "DELETE")
_SHOWN: Final = ("includeTasks", "onlyFailed", "scope")
"""Parameters that make another command of it. Others, and all bodies, may hold secrets."""
_REFUSED: Final = (401, 403, 421, 429)
_CHANGE: Final = "headgate.change"


def note_change(request: Request, change: Callable[[], Mapping[str, Any]]) -> None:
    """What the request asks to change, without secrets, for the audit; asked for at once, if there is one."""
    if _CHANGE in request.scope:
        request.scope[_CHANGE] = change()


@dataclass(frozen=True, slots=True)
class Commands:
    """ASGI middleware. The lines are written before the client has its answer. Every answer has the request's id."""

    app: ASGIApp
    audit: Audit | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        request = Request(scope)
        head: Message | None = None
        if self.audit is not None:
            scope[_CHANGE] = None

        async def told(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[ID_HEADER] = request_id(request)
                head = message  # what went wrong stands in the body
                return
            if head is not None:
                await self._tell(request, head["status"], message.get("body", b""), time.monotonic() - began)
                await send(head)
                head = None
            await send(message)

        await self.app(scope, receive, told)

    async def _tell(self, request: Request, status: int, body: bytes, seconds: float) -> None:
        is_command = request.method in _METHODS
        passed_on = PASSED_ON in request.scope
        if is_command:
            self._log(logging.DEBUG if passed_on else logging.INFO, request, status, seconds)
        if self.audit is not None and not passed_on and (is_command or status in _REFUSED):
            await self.audit.write(
                AuditRecord(
                    principal=request.scope.get(PRINCIPAL),
                    address=address_of(request),
                    method=request.method,
                    path=_what(request),
                    request_id=request_id(request),
                    status=status,
                    ms=round(seconds * 1000),
                    connector=request.path_params.get("connector"),
                    change=request.scope.get(_CHANGE),
                    error=message_in(body) if status >= 400 else None,
                )
            )

    def _log(self, level: int, request: Request, status: int, seconds: float) -> None:
        who, principal = address_of(request), request.scope.get(PRINCIPAL)
        if isinstance(principal, Principal) and principal.login != "none":
            who = f"{principal.name!r} at {who}"
        what = _what(request)
        if "connector" in request.path_params:
            what += f", connector {request.path_params['connector']!r}"  # as Python writes it: no name ends the line
        ms, known_as = round(seconds * 1000), request_id(request)
        log.log(level, "%s: %s %s: %d in %d ms, request %s", who, request.method, what, status, ms, known_as)


def _what(request: Request) -> str:
    shown = urlencode([(name, value) for name, value in request.query_params.multi_items() if name in _SHOWN])
    return sent_path(request) + (f"?{shown}" if shown else "")
