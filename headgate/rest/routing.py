"""Resource: one path with all its methods.

Routes are matched on the raw path, split first and decoded after, so that `%2F` is a slash inside a name and not one
between segments. `/connectors/a` and `/connectors/a/` are the same resource.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from headgate.rest import errors
from headgate.rest.body import JSON
from headgate.runtime.errors import ShuttingDown

Endpoint = Callable[[Request], Awaitable[Response]]

BASE: Final = "headgate.base"
"""Of a scope: the URL that the client knows this worker by, as far as that was checked, else its own."""
CERTIFICATE: Final = "headgate.certificate"
"""Of a scope: what `getpeercert` says of the client's certificate, if it has shown one that was verified."""
_SEGMENTS: Final = "headgate.segments"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


class Resource(BaseRoute):
    def __init__(self, path: str, *, produces: str | None = JSON, **endpoints: Endpoint) -> None:
        """`endpoints` by method. HEAD comes with GET, OPTIONS always. `produces` None: any `Accept` will do."""
        self.path: Final = path
        self.endpoints: Final = endpoints
        self._template: Final = path.strip("/").split("/") if path != "/" else []
        self._produces: Final = produces
        self.methods: Final = (*(("HEAD",) if "GET" in endpoints else ()), *endpoints, "OPTIONS")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        params = _match(self._template, _segments(scope))
        return (Match.NONE, {}) if params is None else (Match.FULL, {"path_params": params})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except Exception as error:
            response = await errors.answer(request, error)
        except asyncio.CancelledError:
            # Only a server that ends cancels requests, when they take too long; the client still learns why.
            response = await errors.answer(request, ShuttingDown())
        if request.method == "HEAD":
            response.body = b""  # The headers, Content-Length among them, stay those of GET.
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        endpoint = self.endpoints.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            if request.method != "OPTIONS":
                raise HTTPException(405, headers={"Allow": ",".join(self.methods)})
            allow = {"Allow": ",".join(self.methods), "Content-Type": "text/plain"}
            return Response(", ".join(self.methods), headers=allow)
        if self._produces is not None and not accepts(request.headers.getlist("accept"), self._produces):
            raise HTTPException(406)
        return await endpoint(request)


def connector_of(request: Request) -> str:
    return str(request.path_params["connector"])


def flag(request: Request, name: str, default: bool = False) -> bool:
    """A boolean query parameter: `true` in any case is true, other text is false, no text is the default."""
    text = query(request, name)
    return text.lower() == "true" if text else default


def query(request: Request, name: str) -> str:
    """The first value of a query parameter, empty when absent."""
    return next(iter(request.query_params.getlist(name)), "")


def location(request: Request, connector: str) -> str:
    """The connector's address on the worker that was asked, by the name it was asked under, if it has that name."""
    base = request.scope.get(BASE) or f"{request.scope['scheme']}://{_server(request.scope)}"
    return f"{base}/connectors/{encoded(connector)}"


def path_of(request: Request) -> str:
    """The request's path, each of its segments encoded anew."""
    return "/" + "/".join(map(encoded, _segments(request.scope) or ()))


def encoded(segment: str) -> str:
    """As one segment of a path, whatever is in it."""
    # Dots alone are no names to others, but ways to go; a name of dots must not look like one.
    return segment.replace(".", "%2E") if segment in (".", "..") else quote(segment, safe="")


def _server(scope: Scope) -> str:
    host, port = scope.get("server") or ("localhost", 80)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _segments(scope: Scope) -> Sequence[str] | None:
    """The decoded segments of the path, None if they are no text; worked out once per request."""
    if _SEGMENTS not in scope:
        raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        parts = raw.split(b"/")[1:]
        if parts and parts[-1] == b"":
            parts.pop()
        try:
            scope[_SEGMENTS] = [unquote_to_bytes(part).decode() for part in parts]
        except UnicodeDecodeError:
            scope[_SEGMENTS] = None
    found: Sequence[str] | None = scope[_SEGMENTS]
    return found


def _match(template: Sequence[str], segments: Sequence[str] | None) -> dict[str, Any] | None:
    if segments is None or len(template) != len(segments):
        return None
    params: dict[str, Any] = {}
    for pattern, segment in zip(template, segments, strict=True):
        if not pattern.startswith("{"):
            if pattern != segment:
                return None
            continue
        name = pattern.strip("{}")
        # Tasks are numbered; what is no number is no task, and so an unknown path.
        value = _integer(segment) if name == "task" else segment
        if value is None or value == "":
            return None
        params[name] = value
    return params


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 31) <= number < 1 << 31 else None


# --- the Accept header: whether the client takes the one media type we have -------------------------------------------


def accepts(headers: Iterable[str], media_type: str) -> bool:
    """False only if the headers name ranges and none of them lets `media_type` in; the most precise range decides."""
    ranges = [_media_range(text) for header in headers for text in header.split(",") if text.strip()]
    if not ranges:
        return True
    family = media_type.partition("/")[0] + "/*"
    # Java's HttpURLConnection writes a bare * for "anything".
    precision = {media_type: 3, family: 2, "*/*": 1, "*": 1}
    fitting = [(precision[name], quality) for name, quality in ranges if name in precision]
    return bool(fitting) and max(fitting)[1] > 0


def _media_range(text: str) -> tuple[str, float]:
    name, *params = (part.strip().lower() for part in text.split(";"))
    for param in params:
        key, _, value = param.partition("=")
        if key.strip() == "q":
            try:
                return name, float(value)
            except ValueError:
                return name, 1.0  # An unreadable quality is no reason to refuse.
    return name, 1.0
