"""/openapi.json: the REST API described in OpenAPI 3.1, written by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from headgate import __version__
from headgate.rest.body import JsonResponse
from headgate.rest.guard import NOTHING, Guarded, Needs
from headgate.rest.openapi.parts import Json, failure
from headgate.rest.openapi.paths import PATHS
from headgate.rest.openapi.schemas import SCHEMAS
from headgate.rest.routing import Endpoint, Resource

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


_SCHEMES: Final = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the worker's own, or a JSON Web Token."},
    "certificate": {"type": "mutualTLS", "description": "The client's certificate."},
}


@dataclass(slots=True)
class OpenApiEndpoints:
    logins: Collection[str] = ()
    """The ways to log in, of `basic`, `bearer` and `certificate`."""
    resources: Sequence[Resource] = ()

    async def document(self, request: Request) -> Response:
        calls = {
            each.path: {method: _needs(call) for method, call in each.endpoints.items()} for each in self.resources
        }
        return JsonResponse(document(calls, self.logins))


def _needs(endpoint: Endpoint) -> Needs:
    return endpoint.needs if isinstance(endpoint, Guarded) else NOTHING


def document(calls: Mapping[str, Mapping[str, Needs]], logins: Collection[str] = ()) -> dict[str, Any]:
    """The description of those of our calls that this application has, by path and method, with what they need."""
    served = {path: _item(item, calls[path], logins) for path, item in PATHS.items() if path in calls}
    used = {
        tag for item in served.values() for key, call in item.items() if key != "parameters" for tag in call["tags"]
    }
    schemes = {name: scheme for name, scheme in _SCHEMES.items() if name in logins}
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
        "components": {"schemas": SCHEMAS, **({"securitySchemes": schemes} if schemes else {})},
    }


def _item(item: Json, needs: Mapping[str, Needs], logins: Collection[str]) -> Json:
    """A path, with the role that each call needs and, where there are logins, how to log in."""
    return {
        key: call if key == "parameters" else _with_needs(call, needs.get(key.upper(), NOTHING), logins)
        for key, call in item.items()
    }


def _with_needs(call: Json, needs: Needs, logins: Collection[str]) -> Json:
    if needs.role is None:
        return {**call, "security": []} if logins else call
    made = {**call, "x-headgate-role": needs.role.word, "x-headgate-for-all-connectors": needs.everywhere}
    if logins:
        made["security"] = [{each: []} for each in logins]
        refused = {str(status): failure(status) for status in (401, 403, 429)}
        made["responses"] = dict(sorted({**call["responses"], **refused}.items()))
    return made
