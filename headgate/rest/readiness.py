"""Until the herder can take commands every path but /health says that the worker is starting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.rest.errors import error_response
from headgate.rest.root import STARTING, with_stage
from headgate.runtime.herder import Herder

_ALWAYS: Final = ("/health", "/health/")


@dataclass(frozen=True, slots=True)
class Readiness:
    """ASGI middleware."""

    app: ASGIApp
    herder: Herder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.herder.ready or scope["path"] in _ALWAYS:
            await self.app(scope, receive, send)
            return
        response = error_response(503, with_stage(STARTING, self.herder), {"Retry-After": "1"})
        await response(scope, receive, send)
