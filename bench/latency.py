"""How long one record takes: from a producer to the sink's file, and from a source's file to a consumer."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from side import Side, sink, source
from turn import Figure, Quantity, Turn

_LOOK_S: Final = 0.0002
"""Between looks at the sink's file, only while a record is under way."""
_SINK_GAP_S: Final = (0.02, 0.06)
_SOURCE_GAP_S: Final = (0.0, 1.0)
"""As long as the longest wait of a source between two looks at its file, so that a line meets it at any moment."""
_LINES_OF: Final = 5
"""A line of a source takes up to a second: one for so many records to a sink."""


def latency(turn: Turn) -> Iterator[Figure]:
    gaps = random.Random(turn.round)  # the same for both sides
    with turn.worker() as side:
        yield from _percentiles("one record to the sink", _to_sink(turn, side, gaps))
        yield from _percentiles("one line of a source to a consumer", _from_source(turn, side, gaps))


def _percentiles(what: str, times: list[float]) -> Iterator[Figure]:
    cuts = statistics.quantiles(times, n=20, method="inclusive")
    yield Figure(f"{what}, p50", cuts[9], Quantity.TIME)
    yield Figure(f"{what}, p95", cuts[18], Quantity.TIME)


def _to_sink(turn: Turn, side: Side, gaps: random.Random) -> list[float]:
    """From the call of produce() to the line being in the file."""
    topic, out = f"{turn.name}-sink", turn.folder / "latency.out"
    turn.topics.make([topic])
    out.touch()
    side.create(topic, sink(topic, out))
    producer = turn.topics.producer()
    times: list[float] = []
    for number in range(-1, turn.sizes.records):  # the first finds the task, and does not count
        time.sleep(gaps.uniform(*_SINK_GAP_S))
        began = time.perf_counter()
        producer.produce(topic, b"%09d" % (number + 1))
        _await_size(side, out, (number + 2) * 10)
        times.append(time.perf_counter() - began)
    producer.flush()
    side.delete(topic)
    return times[1:]


def _await_size(side: Side, file: Path, size: int) -> None:
    side.until(lambda: file.stat().st_size >= size, "the record is in the file", _LOOK_S)


def _from_source(turn: Turn, side: Side, gaps: random.Random) -> list[float]:
    """From the write of a line to the record in the hands of a consumer."""
    topic, file = f"{turn.name}-source", turn.folder / "latency.in"
    turn.topics.make([topic])
    consumer = turn.topics.consumer(topic, topic)
    times: list[float] = []
    with file.open("wb", buffering=0) as lines:
        side.create(topic, source(file, topic))
        for number in range(-1, max(2, turn.sizes.records // _LINES_OF)):
            time.sleep(gaps.uniform(*_SOURCE_GAP_S))
            began = time.perf_counter()
            lines.write(b"%09d\n" % (number + 1))
            side.until(lambda: consumer.poll(5) is not None, "the record is in the topic", 0)
            times.append(time.perf_counter() - began)
    consumer.close()
    side.delete(topic)
    return times[1:]
