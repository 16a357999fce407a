"""Limits: how much a client may ask of the REST API at once, and how long it may take to say what it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.rest.errors import error_response


@dataclass(frozen=True, slots=True)
class RestLimits:
    """By the keys `headgate.rest.*`."""

    headers_s: float = 20.0
    body_s: float = 60.0
    idle_s: float = 75.0
    """Longer than clients commonly keep an idle connection to reuse it."""
    connections: int = 1000
    per_address: int = 200
    header_bytes: int = 32 * 1024
    headers: int = 100
    url_bytes: int = 8 * 1024
    body_bytes: int = 10 * 1024 * 1024

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> RestLimits:
        return cls(
            headers_s=parsed["headgate.rest.headers.timeout.ms"] / 1000,
            body_s=parsed["headgate.rest.body.timeout.ms"] / 1000,
            idle_s=parsed["headgate.rest.idle.timeout.ms"] / 1000,
            connections=parsed["headgate.rest.max.connections"],
            per_address=parsed["headgate.rest.max.connections.per.address"],
            header_bytes=parsed["headgate.rest.max.header.bytes"],
            headers=parsed["headgate.rest.max.headers"],
            url_bytes=parsed["headgate.rest.max.url.bytes"],
            body_bytes=parsed["headgate.rest.max.body.bytes"],
        )


@dataclass(frozen=True, slots=True)
class Limited:
    """ASGI middleware: what is too large is refused. What never ends is none of its business: no header gets here
    before all of them are there."""

    app: ASGIApp
    limits: RestLimits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        problem = self._problem(scope)
        if problem is not None:
            # The rest of a body is read and thrown away: who is still sending shall see the answer.
            await error_response(*problem)(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.limits.body_bytes:
                raise HTTPException(*self._too_large())
            return message

        await self.app(scope, counted, send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        limits, headers = self.limits, scope["headers"]
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > limits.url_bytes:
            return 414, f"HTTP 414 URI Too Long: more than {limits.url_bytes} bytes"
        if len(headers) > limits.headers:
            return 431, f"HTTP 431 Request Header Fields Too Large: more than {limits.headers} headers"
        if sum(len(name) + len(value) + 4 for name, value in headers) > limits.header_bytes:
            return 431, f"HTTP 431 Request Header Fields Too Large: more than {limits.header_bytes} bytes of headers"
        if any(name == b"content-length" and int(value) > limits.body_bytes for name, value in headers):
            return self._too_large()
        return None

    def _too_large(self) -> tuple[int, str]:
        return 413, f"Request body is larger than {self.limits.body_bytes} bytes"
