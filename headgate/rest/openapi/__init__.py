"""/openapi.json: the REST API described in OpenAPI 3.1, written by hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from headgate import __version__
from headgate.rest.body import JsonResponse
from headgate.rest.openapi.paths import PATHS
from headgate.rest.openapi.schemas import SCHEMAS

_TAGS: Final = {
    "connectors": "Create, read, change and delete connectors.",
    "control": "Pause, resume, stop and restart connectors and tasks.",
    "offsets": "Read, alter and reset the offsets of connectors.",
    "topics": "The topics that connectors use.",
    "plugins": "What is installed, and whether a configuration is good for it.",
    "worker": "The worker itself.",
    "admin": "Log levels.",
    "internal": "From worker to worker.",
}
_DESCRIPTION: Final = (
    "Kafka Connect's REST API. A trailing slash makes no difference, query parameters that are not listed are ignored,"
    " and so are bodies of requests that need none. A name with a slash in it is addressed with `%2F`."
    " Errors have the body `{error_code, message}`. Under a name that is not the worker's, requests may be 421; what"
    " would change something for a web page of another site is 403."
)


@dataclass(frozen=True, slots=True)
class OpenApiEndpoints:
    paths: Collection[str]

    async def document(self, request: Request) -> Response:
        return JsonResponse(document(self.paths))


def document(paths: Collection[str]) -> dict[str, Any]:
    """The description of those of our paths that this application has."""
    served = {path: item for path, item in PATHS.items() if path in paths}
    used = {
        tag for item in served.values() for key, call in item.items() if key != "parameters" for tag in call["tags"]
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items() if name in used],
        "paths": served,
        "components": {"schemas": SCHEMAS},
    }
