"""A cold start: from the start of the process to its first answer, and to the first record in the sink's file."""

from __future__ import annotations

import time
from collections.abc import Iterator

from side import Side, sink, write_properties
from turn import Figure, Quantity, Turn


def start(turn: Turn) -> Iterator[Figure]:
    """With the file of a connector, whose topic has a record already."""
    topic, out = f"{turn.name}-start", turn.folder / "start.out"
    turn.topics.make([topic])
    turn.topics.fill(topic, [b"one line"])
    connector = turn.folder / "connector.properties"
    write_properties(connector, {"name": topic, **sink(topic, out)})
    with Side(turn.kind, turn.topics.bootstrap, turn.folder, connectors=[connector]) as side:
        side.until(lambda: out.exists() and out.stat().st_size > 0, "the first record is in the sink", 0.01)
        took = time.monotonic() - side.began
        yield Figure("start to first REST answer", side.answered - side.began, Quantity.TIME)
        yield Figure("start to first record in the sink", took, Quantity.TIME)
