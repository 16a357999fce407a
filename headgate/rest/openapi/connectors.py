"""/connectors described."""

from __future__ import annotations

from typing import Final

from headgate.rest.openapi import internal
from headgate.rest.openapi.parts import (
    CONNECTOR,
    FORWARD,
    LOCATION,
    TASK,
    Json,
    array_of,
    call,
    empty,
    found,
    json_content,
    ref,
)

_TAG: Final = "connectors"
_CONFIG: Final = {"connector.class": "FileStreamSource", "file": "/data/in.txt", "topic": "lines", "tasks.max": "1"}
_STORED: Final = {"name": "lines-in", **_CONFIG}
_TASK: Final = {"connector": "lines-in", "task": 0}
_INFO: Final = {"name": "lines-in", "config": _STORED, "tasks": [_TASK], "type": "source"}
_NEW: Final = {**_INFO, "tasks": []}
_STATE: Final = {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "version": "0.1.0"}
_FAILED: Final = {**_STATE, "state": "FAILED", "trace": "Traceback (most recent call last):\n…\nOSError: disk full"}
STATUS_EXAMPLE: Final = {"name": "lines-in", "connector": _STATE, "tasks": [{"id": 0, **_FAILED}], "type": "source"}

_EXPAND: Final = {
    "name": "expand",
    "in": "query",
    "required": False,
    "description": "What to tell of each connector: `status`, `info`, or both; other values are ignored.",
    "style": "form",
    "explode": True,
    "schema": {"type": "array", "items": {"type": "string", "examples": ["status", "info"]}},
}
_BODY: Final = json_content(ref("ConfigChange"), config=_CONFIG)

PATHS: Final[Json] = {
    "/connectors": {
        "get": call(
            _TAG, "listConnectors", "List the connectors",
            {200: found("The connectors.", ref("Connectors"), names=["lines-in", "lines-out"],
                        expanded={"lines-in": {"status": STATUS_EXAMPLE, "info": _INFO}})},
            query=[_EXPAND],
        ),
        "post": call(
            _TAG, "createConnector", "Create a connector",
            {201: found("Created.", ref("ConnectorInfo"), LOCATION, created=_NEW)},
            (409,),
            query=[FORWARD],
            body=json_content(
                ref("CreateConnector"),
                running={"name": "lines-in", "config": _CONFIG},
                stopped={"name": "lines-in", "config": _CONFIG, "initial_state": "STOPPED"},
            ),
        ),
    },
    "/connectors/{connector}": {
        "parameters": [CONNECTOR],
        "get": call(
            _TAG, "getConnector", "Read a connector",
            {200: found("The connector.", ref("ConnectorInfo"), connector=_INFO)}, (404,),
        ),
        "delete": call(
            _TAG, "deleteConnector", "Delete a connector", {204: empty("Deleted.")}, (404, 409), query=[FORWARD],
            description="Its offsets stay, for a connector of the same name.",
        ),
    },
    "/connectors/{connector}/config": {
        "parameters": [CONNECTOR],
        "get": call(
            _TAG, "getConnectorConfig", "Read a connector's configuration",
            {200: found("The configuration.", ref("Config"), config=_STORED)}, (404,),
        ),
        "put": call(
            _TAG, "putConnectorConfig", "Create a connector, or replace its configuration",
            {
                200: found("Replaced.", ref("ConnectorInfo"), replaced=_INFO),
                201: found("Created.", ref("ConnectorInfo"), LOCATION, created=_NEW),
            },
            (409,), query=[FORWARD], body=_BODY,
        ),
        "patch": call(
            _TAG, "patchConnectorConfig", "Change some keys of a connector's configuration",
            {200: found("Changed.", ref("ConnectorInfo"), changed=_INFO)},
            (404, 409), query=[FORWARD],
            body=json_content(ref("ConfigChange"), change={"tasks.max": 4, "topic": "other", "file": None}),
        ),
    },
    "/connectors/{connector}/status": {
        "parameters": [CONNECTOR],
        "get": call(
            _TAG, "getConnectorStatus", "Read the states of a connector and its tasks",
            {200: found("The states.", ref("ConnectorStatus"), status=STATUS_EXAMPLE)}, (404,),
        ),
    },
    "/connectors/{connector}/tasks": {
        "parameters": [CONNECTOR],
        "get": call(
            _TAG, "listTasks", "List a connector's tasks with their configurations",
            {200: found("The tasks.", array_of(ref("TaskInfo")), tasks=[{"id": _TASK, "config": _STORED}])}, (404,),
        ),
        "post": internal.PUT_TASKS,
    },
    "/connectors/{connector}/tasks/{task}/status": {
        "parameters": [CONNECTOR, TASK],
        "get": call(
            _TAG, "getTaskStatus", "Read the state of a task",
            {200: found("The state.", ref("TaskState"), status={"id": 0, **_STATE})}, (404,),
        ),
    },
}  # fmt: skip
