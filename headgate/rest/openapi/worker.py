"""The worker's own paths described: /, /health, /metrics, /openapi.json and /admin/loggers."""

from __future__ import annotations

from typing import Final

from headgate.rest.metrics import CONTENT_TYPE
from headgate.rest.openapi.parts import LOGGER, Json, array_of, call, empty, found, json_content, query_text, ref

_TAG: Final = "worker"
_HEALTHY: Final = {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}
_WORKER: Final = {"version": "0.1.0", "commit": "unknown", "kafka_cluster_id": "4L6g3nShT-eMCtK--X86sw"}
_LEVEL: Final = {"level": "INFO", "last_modified": None}
_SCOPE: Final = query_text(
    "scope", "`worker` (also when absent) or `cluster`: which workers to change.", examples=("worker", "cluster")
)

PATHS: Final[Json] = {
    "/": {
        "get": call(
            _TAG, "getWorker", "Read the worker's version and its Kafka cluster",
            {200: found("The worker.", ref("Worker"), worker=_WORKER)},
        ),
    },
    "/health": {
        "get": call(
            _TAG, "getHealth", "Ask whether the worker can handle requests",
            {
                200: found("It can.", ref("Health"), healthy=_HEALTHY),
                500: found("It did not get to this request in time.", ref("Health")),
                503: found("It is still starting up.", ref("Health")),
            },
        ),
    },
    "/metrics": {
        "get": call(
            _TAG, "getMetrics", "Read the worker's metrics, as Prometheus does",
            {200: {"description": "The metrics.", "content": {CONTENT_TYPE: {"schema": {"type": "string"}}}}},
            negotiated=False,
        ),
    },
    "/openapi.json": {
        "get": call(
            _TAG, "getDescription", "Read this description", {200: found("The description.", {"type": "object"})}
        ),
    },
    "/admin/loggers": {
        "get": call(
            "admin", "listLoggers", "List the loggers with their levels",
            {200: found("The levels.", {"type": "object", "additionalProperties": ref("LoggerLevel")},
                        levels={"headgate.rest.server": _LEVEL, "root": _LEVEL})},
        ),
    },
    "/admin/loggers/{logger}": {
        "parameters": [LOGGER],
        "get": call(
            "admin", "getLogger", "Read a logger's level",
            {200: found("The level.", ref("LoggerLevel"), level=_LEVEL)}, (404,),
        ),
        "put": call(
            "admin", "setLogger", "Set the level of a logger and of all whose names begin with its",
            {
                200: found("The loggers changed.", array_of({"type": "string"}), changed=["headgate.rest.server"]),
                204: empty("Changed on all workers. With `scope=cluster`."),
            },
            (404,), query=[_SCOPE], body=json_content(ref("LevelChange"), level={"level": "DEBUG"}),
        ),
    },
}  # fmt: skip
