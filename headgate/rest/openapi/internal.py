"""Calls from worker to worker described."""

from __future__ import annotations

from typing import Final

from headgate.rest.openapi.parts import CONNECTOR, FORWARD, Json, array_of, call, empty, json_content, ref

_TAG: Final = "internal"
_ERRORS: Final = (400, 403, 404, 409)
_STANDALONE: Final = "A standalone worker answers 500."

PUT_TASKS: Final = call(
    _TAG,
    "putTaskConfigs",
    "Hand new task configurations to the leader",
    {204: empty("Taken.")},
    _ERRORS,
    query=[FORWARD],
    body=json_content(array_of(ref("ConfigChange")), tasks=[{"task.class": "FileStreamSourceTask"}]),
    description=_STANDALONE,
)
PATHS: Final[Json] = {
    "/connectors/{connector}/fence": {
        "parameters": [CONNECTOR],
        "put": call(
            _TAG,
            "fenceZombies",
            "Shut out tasks of an earlier generation",
            {204: empty("Done.")},
            _ERRORS,
            query=[FORWARD],
            description=_STANDALONE,
        ),
    }
}
