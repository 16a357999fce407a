"""Until the herder can take commands every path but /health says that the worker is starting."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.rest.errors import error_response
from headgate.rest.root import STARTING, with_stage
from headgate.runtime.herder import Herder

_ALWAYS: Final = ("/health", "/health/")


class Readiness:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, herder: Herder) -> None:
        self._app = app
        self._herder = herder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._herder.ready or scope["path"] in _ALWAYS:
            await self._app(scope, receive, send)
            return
        response = error_response(503, with_stage(STARTING, self._herder), {"Retry-After": "1"})
        await response(scope, receive, send)
