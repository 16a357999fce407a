"""Lines per second, file to Kafka and Kafka to file; then the memory of the worker that has done all of it.

The clock runs from the request that creates a connector to its last line. Sinks of both sides read the same topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from side import Side, sink, source
from turn import Figure, Lines, Quantity, Turn

_TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
_JSON: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "transforms.add.type": f"{_TRANSFORMS}.InsertField$Value",
    "transforms.add.static.field": "origin",
    "transforms.add.static.value": "bench",
}
THREE: Final = {
    **_JSON,
    "transforms": "drop,add,cast",
    "transforms.drop.type": f"{_TRANSFORMS}.ReplaceField$Value",
    "transforms.drop.exclude": "note",
    "transforms.cast.type": f"{_TRANSFORMS}.Cast$Value",
    "transforms.cast.spec": "price:string",
}
NESTED: Final = {
    **_JSON,
    "transforms": "hoist,add",
    "transforms.hoist.type": f"{_TRANSFORMS}.HoistField$Value",
    "transforms.hoist.field": "payload",
}


def rates(turn: Turn) -> Iterator[Figure]:
    topic = f"{turn.name}-lines"
    turn.topics.make([topic])
    file, texts, objects = turn.inputs.text_file, turn.inputs.text_topic, turn.inputs.json_topic
    with turn.worker() as side:
        rate = _rate(turn, side, source(file, topic), lambda: turn.topics.end(topic))
        yield Figure("file source, String", rate, Quantity.RATE)
        for what, read, more in (
            ("file sink, String", texts, {}),
            ("file sink, JSON without schema, ReplaceField, InsertField, Cast", objects, THREE),
            ("file sink, JSON without schema, nested: HoistField, InsertField", objects, NESTED),
        ):
            out = Lines(turn.folder / "out.txt")
            yield Figure(what, _rate(turn, side, sink(read, out.path, **more), out.count), Quantity.RATE)
            out.path.unlink()
        yield Figure("memory of all processes after these", side.tree().memory(), Quantity.MEMORY)


def _rate(turn: Turn, side: Side, config: Mapping[str, str], count: Callable[[], int]) -> float:
    name = f"{turn.name}-{time.monotonic_ns()}"
    began = time.monotonic()
    side.create(name, config)
    side.until(lambda: count() >= turn.sizes.lines, "all lines have arrived")
    took = time.monotonic() - began
    side.delete(name)
    return turn.sizes.lines / took
