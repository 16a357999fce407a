"""JSON on the wire: request bodies into plain values, plain values into response bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.model import NumberText
from headgate.runtime.errors import BadRequest

MAX_DEPTH: Final = 100
JSON: Final = "application/json"
_TOO_DEEP: Final = f"Malformed JSON in request body: nested more than {MAX_DEPTH} levels deep"
_BOM: Final = b"\xef\xbb\xbf"
_BODY: Final = "headgate.body"


class JsonResponse(Response):
    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(dumps(content), status_code, headers, JSON)


def dumps(content: Any) -> bytes:
    try:
        return orjson.dumps(content)
    except TypeError:
        # Half a surrogate pair in a trace, an offset beyond 64 bits: rare, and the slow encoder can write them.
        return json.dumps(content, separators=(",", ":"), default=str).encode()


def message_in(body: bytes) -> str | None:
    """Of an answer that refuses something."""
    try:
        found = orjson.loads(body)["message"]
    except (ValueError, TypeError, KeyError):
        return None
    return str(found)


async def read_json(request: Request) -> Any:
    """The request's body, numbers as `NumberText`. Raises BadRequest, or HTTPException for its type."""
    declared = request.headers.get("content-type", JSON)
    if declared.partition(";")[0].strip().lower() != JSON:
        raise HTTPException(415, f"HTTP 415 Unsupported Media Type: Content-Type is '{declared}', expected '{JSON}'")
    return parse_json(await read_bytes(request))


def parse_json(raw: bytes) -> Any:
    raw = raw.removeprefix(_BOM)
    if not raw.strip():
        raise BadRequest("Request body is empty: expected JSON")
    try:
        # First the strict reader, for UTF-8, half surrogate pairs and numbers beyond all range; then the one that can
        # keep numbers as they were written.
        orjson.loads(raw)
        parsed = json.loads(raw, parse_int=NumberText, parse_float=NumberText)
    except RecursionError:
        raise BadRequest(_TOO_DEEP) from None
    except ValueError as error:
        raise BadRequest(f"Malformed JSON in request body: {error}") from None
    _check_depth(parsed)
    return parsed


def _check_depth(parsed: Any) -> None:
    # What is walked and written again later must not reach Python's own limit there.
    level = [parsed]
    for _ in range(MAX_DEPTH):
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return
        level = [child for each in nested for child in (each.values() if isinstance(each, dict) else each)]
    raise BadRequest(_TOO_DEEP)


async def read_bytes(request: Request) -> bytes:
    """The request's body as it was sent; may be asked for again."""
    if _BODY not in request.scope:
        request.scope[_BODY] = b"".join([chunk async for chunk in request.stream()])
    return read_already(request)


def read_already(request: Request) -> bytes:
    """What `read_bytes` has given; empty, if nobody wanted the body."""
    body: bytes = request.scope.get(_BODY, b"")
    return body
