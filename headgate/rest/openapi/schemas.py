"""The bodies, by name."""

from __future__ import annotations

from typing import Any, Final

from headgate.model import INITIAL_STATES, Verdict
from headgate.rest.openapi.parts import Json, array_of, ref

_TEXT: Final[Json] = {"type": "string"}
_TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
_OBJECT: Final[Json] = {"type": "object"}
_OBJECT_OR_NULL: Final[Json] = {"type": ["object", "null"]}
_NUMBER: Final[Json] = {"type": "integer"}
_FLAG: Final[Json] = {"type": "boolean"}
_CONNECTOR_TYPE: Final[Json] = {"enum": ["source", "sink", "unknown"]}
# Something to see, and no control characters but those at the ends, which are cut off.
_NAME: Final = (
    r"^[\u0000-\u0020]*[^\u0000-\u0020\u007f-\u009f]"
    r"([^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u0020\u007f-\u009f])?[\u0000-\u0020]*$"
)
_STATES: Final = ["UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "RESTARTING"]


def _any_case(word: str) -> str:
    return "".join(f"[{each}{each.lower()}]" for each in word)


def _or_null(schema: Json) -> Json:
    return {"oneOf": [schema, {"type": "null"}]}


def _by_name(description: str, values: Json) -> Json:
    return {"type": "object", "description": description, "additionalProperties": values}


def _record(description: str, fields: Json, *optional: str, closed: bool = True) -> Json:
    schema: dict[str, Any] = {"type": "object", "description": description, "properties": fields}
    required = [name for name in fields if name not in optional]
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False} if closed else schema


_STATE_FIELDS: Final[Json] = {
    "worker_id": _TEXT, "version": _TEXT_OR_NULL, "health": ref("Fares"), "trace": _TEXT,
}  # fmt: skip
_FARES: Final[Json] = {
    "verdict": {"enum": [*(each.value for each in Verdict), None]},
    "since": _TEXT,
    "reason": _TEXT_OR_NULL,
    "last_error": _TEXT_OR_NULL,
    "last_progress": _TEXT_OR_NULL,
    "lag": {"type": ["integer", "null"]},
    "rate": {"type": ["number", "null"]},
}
_UNLESS_KNOWN: Final = ("since", "reason", "last_error", "last_progress", "lag", "rate")

SCHEMAS: Final[Json] = {
    "Error": _record(
        "What went wrong. `error_code` is the HTTP status.",
        {"error_code": {"type": "integer", "minimum": 400, "maximum": 599}, "message": _TEXT_OR_NULL},
    ),
    "Worker": _record(
        "The worker. `version` is that of the Kafka Connect whose API it speaks.",
        {"version": _TEXT, "commit": _TEXT, "kafka_cluster_id": _TEXT_OR_NULL, "headgate_version": _TEXT},
    ),
    "Health": _record(
        "Whether the worker can handle requests. `warnings` are sentences about what keeps it from nothing as yet.",
        {
            "status": {"enum": ["healthy", "starting", "unhealthy"]},
            "message": _TEXT,
            "kafka": _or_null(
                _record("Whether a broker answered, and since when.", {"reached": _FLAG, "since": _TEXT})
            ),
            "warnings": array_of(_TEXT),
        },
    ),
    "Fares": _record(
        "How a connector or a task fares, beside its state: since when, why, the last error and the last progress, the"
        " records behind and per second. Times are UTC.",
        _FARES,
    ),
    "Config": _by_name("A configuration: flat, all values as text.", _TEXT),
    "ConfigChange": _by_name(
        "A configuration as sent: numbers and booleans are taken as text. In a PATCH, null removes.",
        {"type": ["string", "number", "boolean", "null"]},
    ),
    "CreateConnector": _record(
        "A new connector. `initial_state` is RUNNING, PAUSED or STOPPED in any case; RUNNING when absent.",
        {
            "name": {"type": "string", "pattern": _NAME},
            "config": ref("ConfigChange"),
            "initial_state": _or_null({"type": "string", "pattern": f"^({'|'.join(map(_any_case, INITIAL_STATES))})$"}),
        },
        "initial_state",
    ),
    "TaskId": _record("A task of a connector.", {"connector": _TEXT, "task": _NUMBER}),
    "ConnectorInfo": _record(
        "A connector, its configuration and its tasks.",
        {"name": _TEXT, "config": ref("Config"), "tasks": array_of(ref("TaskId")), "type": _CONNECTOR_TYPE},
    ),
    "TaskInfo": _record("A task and its configuration.", {"id": ref("TaskId"), "config": ref("Config")}),
    "ConnectorState": _record(
        "State of a connector. `trace` is there after a failure, `health` where its worker knows verdicts.",
        {"state": {"enum": [*_STATES, "STOPPED"]}, **_STATE_FIELDS},
        "trace",
        "health",
    ),
    "TaskState": _record(
        "State of a task. `trace` is there after a failure, `health` where its worker knows verdicts.",
        {"id": _NUMBER, "state": {"enum": _STATES}, **_STATE_FIELDS},
        "trace",
        "health",
    ),
    "ConnectorStatus": _record(
        "States of a connector and its tasks.",
        {
            "name": _TEXT,
            "connector": ref("ConnectorState"),
            "tasks": array_of(ref("TaskState")),
            "type": _CONNECTOR_TYPE,
        },
    ),
    "Connectors": {
        "description": "Names; with `expand`, an object by name with what was asked for.",
        "oneOf": [
            array_of(_TEXT),
            {
                "type": "object",
                "additionalProperties": _record(
                    "What was asked for.",
                    {
                        "status": ref("ConnectorStatus"),
                        "info": ref("ConnectorInfo"),
                        "health": _record(
                            "How a connector and its tasks fare; the verdict is null where workers know none.",
                            {
                                **_FARES,
                                "tasks": array_of(
                                    _record("A task.", {"id": _NUMBER, "health": _or_null(ref("Fares"))})
                                ),
                            },
                            *_UNLESS_KNOWN,
                        ),
                    },
                    "status",
                    "info",
                    "health",
                ),
            },
        ],
    },
    "Offsets": _record(
        "Offsets by partition: the connector's own for a source, `kafka_topic`, `kafka_partition` and `kafka_offset`"
        " for a sink.",
        {"offsets": array_of(_record("One partition.", {"partition": _OBJECT, "offset": _OBJECT}))},
    ),
    "OffsetsChange": _record(
        "New offsets. Partitions that are not named keep theirs; one with an offset of null, or without, is reset.",
        {
            "offsets": {
                "type": "array",
                "minItems": 1,
                "items": _record("One partition.", {"partition": _OBJECT_OR_NULL, "offset": _OBJECT_OR_NULL}, "offset"),
            }
        },
    ),
    "Message": _record("What was done.", {"message": _TEXT}),
    "ActiveTopics": _by_name(
        "The topics used, by the connector's name.", _record("Topics.", {"topics": array_of(_TEXT)})
    ),
    "Plugin": _record(
        "An installed plugin.",
        {
            "class": _TEXT,
            "type": {"enum": ["sink", "source", "transformation", "predicate", "converter", "header_converter"]},
            "version": _TEXT,
        },
        "version",
    ),
    "KeyDefinition": _record(
        "A configuration key.",
        {
            "name": _TEXT,
            "type": {"enum": ["BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"]},
            "required": _FLAG,
            "default_value": _TEXT_OR_NULL,
            "importance": {"enum": ["HIGH", "MEDIUM", "LOW"]},
            "documentation": _TEXT,
            "group": _TEXT_OR_NULL,
            "order_in_group": _NUMBER,
            "width": {"enum": ["NONE", "SHORT", "MEDIUM", "LONG"]},
            "display_name": _TEXT,
            "dependents": array_of(_TEXT),
        },
    ),
    "KeyValue": _record(
        "What was found for a key.",
        {
            "name": _TEXT,
            "value": _TEXT_OR_NULL,
            "recommended_values": array_of(_TEXT_OR_NULL),
            "errors": array_of(_TEXT),
            "visible": _FLAG,
        },
    ),
    "Validation": _record(
        "What validation found, key by key.",
        {
            "name": _TEXT,
            "error_count": _NUMBER,
            "groups": array_of(_TEXT),
            "configs": array_of(
                _record(
                    "A key; its definition is null if nobody declared it.",
                    {"definition": _or_null(ref("KeyDefinition")), "value": _or_null(ref("KeyValue"))},
                )
            ),
            "unknown_keys": array_of(
                _record(
                    "A key that nobody declared, which is no error, and the key that was probably meant.",
                    {"name": _TEXT, "did_you_mean": _TEXT_OR_NULL},
                )
            ),
        },
    ),
    "LoggerLevel": _record(
        "A logger's level, and when it was last changed here, in milliseconds since 1970.",
        {
            "level": {"enum": ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"]},
            "last_modified": {"type": ["integer", "null"]},
        },
    ),
    "LevelChange": _record(
        "The level, in any case.", {"level": {"type": ["string", "number", "boolean"]}}, closed=False
    ),
}
