"""The pieces that descriptions of calls are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

_ERRORS: Final = {
    400: "The request is wrong: malformed JSON, an unknown field, an invalid configuration, a connector not stopped.",
    401: "Nobody has logged in, or not with what this worker knows.",
    403: "Switched off in the worker's configuration, or the caller's role does not allow it.",
    404: "There is no such thing.",
    406: "The `Accept` header rules out JSON.",
    409: "It exists already, is being restarted already, or another request came in between.",
    413: "The body is larger than 10 MiB, or `headgate.rest.max.body.bytes`.",
    414: "Path and query are longer than `headgate.rest.max.url.bytes`.",
    415: "The body is not `application/json`.",
    429: "Too many failed logins from this address: try again later.",
    431: "The headers are too many, or too large.",
    500: "The worker could not do it: the connector did not start, Kafka did not answer in time, or a defect.",
    503: "The worker is still starting up.",
}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def json_content(schema: Json, **examples: Any) -> Json:
    content: Json = {"schema": schema}
    if examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": content}


def found(description: str, schema: Json, headers: Json | None = None, **examples: Any) -> Json:
    """A response with a body."""
    response: Json = {"description": description, "content": json_content(schema, **examples)}
    return response if headers is None else {**response, "headers": headers}


def empty(description: str) -> Json:
    return {"description": description}


def call(
    tag: str,
    operation: str,
    summary: str,
    success: Mapping[int, Json],
    errors: Sequence[int] = (),
    *,
    query: Sequence[Json] = (),
    body: Json | None = None,
    description: str | None = None,
    negotiated: bool = True,
) -> Json:
    """One operation. Any may answer 414, 431, 500, 503, those with a body 400, 413, 415, those that write JSON 406."""
    failures = {*errors, 414, 431, 500, 503, *((406,) if negotiated else ()), *((400, 413, 415) if body else ())}
    failures -= set(success)
    responses = {**success, **{status: failure(status) for status in failures}}
    described: Json = {"tags": [tag], "operationId": operation, "summary": summary}
    if description is not None:
        described["description"] = description
    if query:
        described["parameters"] = list(query)
    if body is not None:
        described["requestBody"] = {"required": True, "content": body}
    described["responses"] = {str(status): responses[status] for status in sorted(responses)}
    return described


def failure(status: int) -> Json:
    return {"description": _ERRORS[status], "content": json_content(ref("Error"))}


def query_text(name: str, description: str, *, examples: Sequence[str] = ()) -> Json:
    schema: Json = {"type": "string"}
    if examples:
        schema["examples"] = list(examples)
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def query_flag(name: str, description: str, default: bool = False) -> Json:
    """Text, not a boolean: whatever is not `true` in any case counts as false."""
    text = f"{description} `true` in any case is true, other text is false, no text is {str(default).lower()}."
    return query_text(name, text, examples=("true", "false"))


def _path(name: str, description: str, schema: Json, example: str | int) -> Json:
    described = {"name": name, "in": "path", "required": True, "description": description}
    return {**described, "schema": schema, "example": example}


_NAME: Final = {"type": "string", "minLength": 1}
PARAMETERS: Final = {
    "connector": _path("connector", "Name of the connector.", _NAME, "lines-in"),
    "task": _path("task", "Number of the task.", {"type": "integer", "format": "int32", "minimum": 0}, 0),
    "plugin": _path("plugin", "Class name of the plugin, or its short name.", _NAME, "FileStreamSource"),
    "logger": _path("logger", "Name of the logger; `root` for the root logger.", _NAME, "root"),
}
"""Of paths, by the names that they have there."""
FORWARD: Final = query_text(
    "forward", "Between workers: whether the request may be passed on to another worker.", examples=("true", "false")
)
LOCATION: Final = {
    "Location": {
        "description": "The connector's address on this worker.",
        "schema": {"type": "string", "format": "uri"},
    }
}
