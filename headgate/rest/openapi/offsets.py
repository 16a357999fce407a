"""/connectors/{connector}/offsets described."""

from __future__ import annotations

from typing import Final

from headgate.rest.openapi.parts import CONNECTOR, FORWARD, Json, call, found, json_content, ref

_TAG: Final = "offsets"
_SOURCE: Final = {"offsets": [{"partition": {"filename": "/data/in.txt"}, "offset": {"position": 9}}]}
_SINK: Final = {
    "offsets": [{"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": 6}}]
}
_RESET: Final = {"offsets": [{"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": None}]}
_STOPPED: Final = "The connector must be stopped."

PATHS: Final[Json] = {
    "/connectors/{connector}/offsets": {
        "parameters": [CONNECTOR],
        "get": call(
            _TAG, "getOffsets", "Read a connector's offsets",
            {200: found("The offsets.", ref("Offsets"), source=_SOURCE, sink=_SINK)}, (404,),
        ),
        "patch": call(
            _TAG, "alterOffsets", "Alter a connector's offsets",
            {200: found("Altered.", ref("Message"),
                        altered={"message": "The offsets for this connector have been altered successfully"})},
            (404, 409), query=[FORWARD], description=_STOPPED,
            body=json_content(ref("OffsetsChange"), source=_SOURCE, sink=_SINK, reset=_RESET),
        ),
        "delete": call(
            _TAG, "resetOffsets", "Reset a connector's offsets",
            {200: found("Reset.", ref("Message"),
                        reset={"message": "The offsets for this connector have been reset successfully"})},
            (400, 404, 409), query=[FORWARD], description=_STOPPED,
        ),
    },
}  # fmt: skip
