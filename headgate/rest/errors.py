"""What an exception is over HTTP: its status in one table, its answer from one handler.

The body is always `{"error_code", "message"}`. Nothing here is a page or a traceback: those go to the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headgate.log import masked
from headgate.rest.body import JsonResponse
from headgate.runtime.errors import (
    AlreadyExists,
    AlreadyRestarting,
    BadRequest,
    ConnectorNotFound,
    Elsewhere,
    FencingOutdated,
    Forbidden,
    HerderError,
    InvalidSignature,
    LeaderUnknown,
    NoSessionKey,
    PluginNotFound,
    Rebalancing,
    StatusNotFound,
    Superseded,
    TaskNotFound,
)

log = logging.getLogger(__name__)

STATUS: Final[Mapping[type[Exception], int]] = {
    BadRequest: 400,
    Forbidden: 403,
    InvalidSignature: 403,
    ConnectorNotFound: 404,
    TaskNotFound: 404,
    StatusNotFound: 404,
    PluginNotFound: 404,
    AlreadyExists: 409,
    AlreadyRestarting: 409,
    Superseded: 409,
    Elsewhere: 409,
    FencingOutdated: 409,
    LeaderUnknown: 409,
    Rebalancing: 409,
    NoSessionKey: 503,
    # All that is left is no mistake of the caller: failed starts, offsets, time-outs, shutting down.
    HerderError: 500,
}


async def answer(request: Request, error: Exception) -> Response:
    """The response for anything raised while a request was handled. Called in place of the endpoint's response."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)  # For the log, where nginx has made it known: nobody is there to read it.
    if isinstance(error, HTTPException):
        return error_response(error.status_code, _message(error), error.headers)
    known = next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), None)
    shown = masked(str(error)) or type(error).__name__
    if known is None:
        log.error("%s %s failed", request.method, sent_path(request), exc_info=error)
    elif known >= 500:
        log.warning("%s %s answered %d: %s", request.method, sent_path(request), known, shown)
    return error_response(known or 500, shown)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JsonResponse({"error_code": status, "message": message}, status, headers)


def _message(error: HTTPException) -> str:
    phrase = HTTPStatus(error.status_code).phrase
    # Starlette's own errors say no more than the status does.
    return f"HTTP {error.status_code} {phrase}" if error.detail == phrase else error.detail


def sent_path(request: Request) -> str:
    # Encoded, as it was sent: a decoded name may have line ends in it, which do not belong into a log.
    return quote(request.scope.get("raw_path", b""), safe="/%:@!$&()*+,;=~")


@contextmanager
def unknown_connector(text: str) -> Iterator[None]:
    """Within it, an unknown connector is reported as `text` and its name: each endpoint has its own words."""
    try:
        yield
    except ConnectorNotFound as error:
        raise ConnectorNotFound(error.connector, f"{text} {error.connector}") from None


@contextmanager
def unknown_class() -> Iterator[None]:
    """Within it, an unknown plugin is a mistake in the configuration that names it, not a missing resource."""
    try:
        yield
    except PluginNotFound as error:
        raise BadRequest(str(error)) from None
