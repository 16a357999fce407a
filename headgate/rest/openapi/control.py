"""Pause, resume, stop, restart and topics described."""

from __future__ import annotations

from typing import Final

from headgate.rest.openapi.connectors import STATUS_EXAMPLE
from headgate.rest.openapi.parts import CONNECTOR, FORWARD, TASK, Json, call, empty, found, query_flag, ref

_TAG: Final = "control"
_RESTARTING: Final = {
    **STATUS_EXAMPLE,
    "tasks": [{"id": 0, "state": "RESTARTING", "worker_id": "127.0.0.1:8083", "version": "0.1.0"}],
}

PATHS: Final[Json] = {
    "/connectors/{connector}/pause": {
        "parameters": [CONNECTOR],
        "put": call(
            _TAG, "pauseConnector", "Pause a connector and its tasks", {202: empty("Will be paused.")}, (404,),
            description="Its tasks stay. It stays paused when workers are restarted, until it is resumed.",
        ),
    },
    "/connectors/{connector}/resume": {
        "parameters": [CONNECTOR],
        "put": call(
            _TAG, "resumeConnector", "Resume a paused or stopped connector", {202: empty("Will be resumed.")}, (404,)
        ),
    },
    "/connectors/{connector}/stop": {
        "parameters": [CONNECTOR],
        "put": call(
            _TAG, "stopConnector", "Stop a connector and remove its tasks", {204: empty("Stopped.")}, (404, 409),
            query=[FORWARD], description="Its configuration stays, and its offsets can be changed.",
        ),
    },
    "/connectors/{connector}/restart": {
        "parameters": [CONNECTOR],
        "post": call(
            _TAG, "restartConnector", "Restart a connector, its tasks, or those that failed",
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
    "/connectors/{connector}/tasks/{task}/restart": {
        "parameters": [CONNECTOR, TASK],
        "post": call(
            _TAG, "restartTask", "Restart a task", {204: empty("Restarted.")}, (404, 409), query=[FORWARD]
        ),
    },
    "/connectors/{connector}/topics": {
        "parameters": [CONNECTOR],
        "get": call(
            "topics", "getTopics", "List the topics a connector has used",
            {200: found("The topics; none for a connector that is not there.", ref("ActiveTopics"),
                        topics={"lines-in": {"topics": ["lines"]}})},
            (403,),
        ),
    },
    "/connectors/{connector}/topics/reset": {
        "parameters": [CONNECTOR],
        "put": call(
            "topics", "resetTopics", "Forget the topics a connector has used", {202: empty("Forgotten.")}, (403,)
        ),
    },
}  # fmt: skip
