"""Every call described, by path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headgate.rest.openapi.parts import (
    FORWARD,
    LOCATION,
    PARAMETERS,
    Json,
    array_of,
    call,
    empty,
    found,
    json_content,
    query_flag,
    query_text,
    ref,
)
from headgate.rest.root import METRICS_TYPE

_HEALTHY: Final = {
    "status": "healthy", "message": "Worker has completed startup and is ready to handle requests.",
    "kafka": {"reached": True, "since": "2026-11-17T08:00:00Z"}, "warnings": [],
}  # fmt: skip
_WORKER: Final = {
    "version": "4.3.1", "commit": "unknown", "kafka_cluster_id": "4L6g3nShT-eMCtK--X86sw", "headgate_version": "0.1.0",
}  # fmt: skip
_LEVEL: Final = {"level": "INFO", "last_modified": None}
_SCOPE: Final = query_text(
    "scope", "`worker` (also when absent) or `cluster`: which workers to change.", examples=("worker", "cluster")
)

_ONE: Final = "/connectors/{connector}"
_CONFIG: Final = {"connector.class": "FileStreamSource", "file": "/data/in.txt", "topic": "lines", "tasks.max": "1"}
_STORED: Final = {"name": "lines-in", **_CONFIG}
_TASK: Final = {"connector": "lines-in", "task": 0}
_INFO: Final = {"name": "lines-in", "config": _STORED, "tasks": [_TASK], "type": "source"}
_NEW: Final = {**_INFO, "tasks": []}
_FARES: Final = {
    "verdict": "ok", "since": "2026-11-17T08:00:00Z", "reason": None, "last_error": None,
    "last_progress": "2026-11-17T08:10:00Z", "lag": None, "rate": 12.5,
}  # fmt: skip
_STATE: Final = {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "0.1.0"}
_FAILED: Final = {**_STATE, "state": "FAILED", "trace": "Traceback (most recent call last):\n…\nOSError: disk full"}
_STATUS: Final = {"name": "lines-in", "connector": _STATE, "tasks": [{"id": 0, **_FAILED}], "type": "source"}
_RESTARTING: Final = {**_STATUS, "tasks": [{"id": 0, **_STATE, "state": "RESTARTING"}]}
_EXPAND: Final = {
    "name": "expand",
    "in": "query",
    "required": False,
    "description": "What to tell of each connector: `status`, `info`, `health`, or several; other values are ignored.",
    "style": "form",
    "explode": True,
    "schema": {"type": "array", "items": {"type": "string", "examples": ["status", "info", "health"]}},
}

_OF_SOURCE: Final = {"offsets": [{"partition": {"filename": "/data/in.txt"}, "offset": {"position": 9}}]}
_WHERE: Final = {"kafka_topic": "lines", "kafka_partition": 0}
_OF_SINK: Final = {"offsets": [{"partition": _WHERE, "offset": {"kafka_offset": 6}}]}
_RESET: Final = {"offsets": [{"partition": _WHERE, "offset": None}]}
_STOPPED: Final = "The connector must be stopped."

_PLUGIN: Final = {
    "class": "headgate.connectors.file_source.FileStreamSourceConnector",
    "type": "source",
    "version": "0.1.0",
}
_KEY: Final = {
    "name": "tasks.max", "type": "INT", "required": False, "default_value": "1", "importance": "HIGH",
    "documentation": "Most tasks of this connector.", "group": "Common", "order_in_group": 4, "width": "SHORT",
    "display_name": "Tasks max", "dependents": [],
}  # fmt: skip
_VALUE: Final = {"name": "tasks.max", "value": "1", "recommended_values": [], "errors": [], "visible": True}
_VALIDATION: Final = {
    "name": "FileStreamSource",
    "error_count": 0,
    "groups": ["Common"],
    "configs": [{"definition": _KEY, "value": _VALUE}],
    "unknown_keys": [{"name": "task.max", "did_you_mean": "tasks.max"}],
}

_OF_WORKERS: Final = (400, 403, 404, 409)
_STANDALONE: Final = "A standalone worker answers 500."

_CALLS: Final[Mapping[str, Mapping[str, Json]]] = {
    "/": {
        "get": call("worker", "getWorker", "Read the worker's version and its Kafka cluster",
                    {200: found("The worker.", ref("Worker"), worker=_WORKER)}),
    },
    "/health": {
        "get": call(
            "worker", "getHealth", "Ask whether the worker can handle requests",
            {
                200: found("It can.", ref("Health"), healthy=_HEALTHY),
                500: found("It did not get to this request in time.", ref("Health")),
                503: found("It is still starting up.", ref("Health")),
            },
        ),
    },
    "/metrics": {
        "get": call(
            "worker", "getMetrics", "Read the worker's metrics, as Prometheus does",
            {200: {"description": "The metrics.", "content": {METRICS_TYPE: {"schema": {"type": "string"}}}}},
            negotiated=False,
        ),
    },
    "/openapi.json": {
        "get": call("worker", "getDescription", "Read this description",
                    {200: found("The description.", {"type": "object"})}),
    },
    "/admin/loggers": {
        "get": call(
            "admin", "listLoggers", "List the loggers with their levels",
            {200: found("The levels.", {"type": "object", "additionalProperties": ref("LoggerLevel")},
                        levels={"headgate.rest.server": _LEVEL, "root": _LEVEL})},
        ),
    },
    "/admin/loggers/{logger}": {
        "get": call("admin", "getLogger", "Read a logger's level",
                    {200: found("The level.", ref("LoggerLevel"), level=_LEVEL)}, (404,)),
        "put": call(
            "admin", "setLogger", "Set the level of a logger and of all whose names begin with its",
            {
                200: found("The loggers changed.", array_of({"type": "string"}), changed=["headgate.rest.server"]),
                204: empty("Changed on all workers. With `scope=cluster`."),
            },
            (404,), query=[_SCOPE], body=json_content(ref("LevelChange"), level={"level": "DEBUG"}),
        ),
    },
    "/connectors": {
        "get": call(
            "connectors", "listConnectors", "List the connectors",
            {200: found("The connectors.", ref("Connectors"), names=["lines-in", "lines-out"],
                        expanded={"lines-in": {"status": _STATUS, "info": _INFO}},
                        health={"lines-in": {"health": {**_FARES, "tasks": [{"id": 0, "health": _FARES}]}}})},
            query=[_EXPAND],
        ),
        "post": call(
            "connectors", "createConnector", "Create a connector",
            {201: found("Created.", ref("ConnectorInfo"), LOCATION, created=_NEW)}, (409,), query=[FORWARD],
            body=json_content(
                ref("CreateConnector"),
                running={"name": "lines-in", "config": _CONFIG},
                stopped={"name": "lines-in", "config": _CONFIG, "initial_state": "STOPPED"},
            ),
        ),
    },
    _ONE: {
        "get": call("connectors", "getConnector", "Read a connector",
                    {200: found("The connector.", ref("ConnectorInfo"), connector=_INFO)}, (404,)),
        "delete": call("connectors", "deleteConnector", "Delete a connector", {204: empty("Deleted.")}, (404, 409),
                       query=[FORWARD], description="Its offsets stay, for a connector of the same name."),
    },
    f"{_ONE}/config": {
        "get": call("connectors", "getConnectorConfig", "Read a connector's configuration",
                    {200: found("The configuration.", ref("Config"), config=_STORED)}, (404,)),
        "put": call(
            "connectors", "putConnectorConfig", "Create a connector, or replace its configuration",
            {
                200: found("Replaced.", ref("ConnectorInfo"), replaced=_INFO),
                201: found("Created.", ref("ConnectorInfo"), LOCATION, created=_NEW),
            },
            (409,), query=[FORWARD], body=json_content(ref("ConfigChange"), config=_CONFIG),
        ),
        "patch": call(
            "connectors", "patchConnectorConfig", "Change some keys of a connector's configuration",
            {200: found("Changed.", ref("ConnectorInfo"), changed=_INFO)}, (404, 409), query=[FORWARD],
            body=json_content(ref("ConfigChange"), change={"tasks.max": 4, "topic": "other", "file": None}),
        ),
    },
    f"{_ONE}/status": {
        "get": call("connectors", "getConnectorStatus", "Read the states of a connector and its tasks",
                    {200: found("The states.", ref("ConnectorStatus"), status=_STATUS,
                                running={**_STATUS, "connector": {**_STATE, "health": _FARES}, "tasks": []})}, (404,)),
    },
    f"{_ONE}/tasks": {
        "get": call(
            "connectors", "listTasks", "List a connector's tasks with their configurations",
            {200: found("The tasks.", array_of(ref("TaskInfo")), tasks=[{"id": _TASK, "config": _STORED}])}, (404,),
        ),
        "post": call(
            "internal", "putTaskConfigs", "Hand new task configurations to the leader", {204: empty("Taken.")},
            _OF_WORKERS, query=[FORWARD], description=_STANDALONE,
            body=json_content(array_of(ref("ConfigChange")), tasks=[{"task.class": "FileStreamSourceTask"}]),
        ),
    },
    f"{_ONE}/tasks/{{task}}/status": {
        "get": call("connectors", "getTaskStatus", "Read the state of a task",
                    {200: found("The state.", ref("TaskState"), status={"id": 0, **_STATE})}, (404,)),
    },
    f"{_ONE}/pause": {
        "put": call("control", "pauseConnector", "Pause a connector and its tasks", {202: empty("Will be paused.")},
                    (404,), description="Its tasks stay. It stays paused when workers are restarted, until it is"
                    " resumed."),
    },
    f"{_ONE}/resume": {
        "put": call("control", "resumeConnector", "Resume a paused or stopped connector",
                    {202: empty("Will be resumed.")}, (404,)),
    },
    f"{_ONE}/stop": {
        "put": call("control", "stopConnector", "Stop a connector and remove its tasks", {204: empty("Stopped.")},
                    (404, 409), query=[FORWARD],
                    description="Its configuration stays, and its offsets can be changed."),
    },
    f"{_ONE}/restart": {
        "post": call(
            "control", "restartConnector", "Restart a connector, its tasks, or those that failed",
            {
                202: found(
                    "Will be restarted: all that have the state RESTARTING. With `includeTasks` or `onlyFailed`.",
                    ref("ConnectorStatus"), restarting=_RESTARTING,
                ),
                204: empty("The connector alone was restarted. With neither of the two."),
            },
            (404, 409),
            query=[
                query_flag("includeTasks", "Whether to restart the tasks too."),
                query_flag("onlyFailed", "Whether to restart only what has failed."),
                FORWARD,
            ],
        ),
    },
    f"{_ONE}/tasks/{{task}}/restart": {
        "post": call("control", "restartTask", "Restart a task", {204: empty("Restarted.")}, (404, 409),
                     query=[FORWARD]),
    },
    f"{_ONE}/topics": {
        "get": call(
            "topics", "getTopics", "List the topics a connector has used",
            {200: found("The topics; none for a connector that is not there.", ref("ActiveTopics"),
                        topics={"lines-in": {"topics": ["lines"]}})},
            (403,),
        ),
    },
    f"{_ONE}/topics/reset": {
        "put": call("topics", "resetTopics", "Forget the topics a connector has used", {202: empty("Forgotten.")},
                    (403,)),
    },
    f"{_ONE}/offsets": {
        "get": call("offsets", "getOffsets", "Read a connector's offsets",
                    {200: found("The offsets.", ref("Offsets"), source=_OF_SOURCE, sink=_OF_SINK)}, (404,)),
        "patch": call(
            "offsets", "alterOffsets", "Alter a connector's offsets",
            {200: found("Altered.", ref("Message"),
                        altered={"message": "The offsets for this connector have been altered successfully"})},
            (404, 409), query=[FORWARD], description=_STOPPED,
            body=json_content(ref("OffsetsChange"), source=_OF_SOURCE, sink=_OF_SINK, reset=_RESET),
        ),
        "delete": call(
            "offsets", "resetOffsets", "Reset a connector's offsets",
            {200: found("Reset.", ref("Message"),
                        reset={"message": "The offsets for this connector have been reset successfully"})},
            (400, 404, 409), query=[FORWARD], description=_STOPPED,
        ),
    },
    "/connector-plugins": {
        "get": call("plugins", "listPlugins", "List the installed plugins",
                    {200: found("The plugins.", array_of(ref("Plugin")), plugins=[_PLUGIN])},
                    query=[query_flag("connectorsOnly", "Whether to list connectors only.", default=True)]),
    },
    "/connector-plugins/{plugin}/config": {
        "get": call("plugins", "getPluginConfig", "List a plugin's configuration keys",
                    {200: found("The keys.", array_of(ref("KeyDefinition")), keys=[_KEY])}, (400, 404),
                    query=[query_text("version", "Version of the plugin; the newest when absent.")]),
    },
    "/connector-plugins/{plugin}/config/validate": {
        "put": call(
            "plugins", "validateConfig", "Check a configuration without creating a connector",
            {200: found("What was found, errors included.", ref("Validation"), validation=_VALIDATION)},
            body=json_content(
                ref("ConfigChange"),
                config={"connector.class": "FileStreamSource", "name": "lines-in", "topic": "lines"},
            ),
        ),
    },
    f"{_ONE}/fence": {
        "put": call("internal", "fenceZombies", "Shut out tasks of an earlier generation", {204: empty("Done.")},
                    _OF_WORKERS, query=[FORWARD], description=_STANDALONE),
    },
}  # fmt: skip


def _parameters(path: str) -> Json:
    named = [PARAMETERS[name] for name in re.findall(r"{(\w+)}", path)]
    return {"parameters": named} if named else {}


PATHS: Final[Json] = {path: {**_parameters(path), **calls} for path, calls in _CALLS.items()}
