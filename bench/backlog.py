"""The most memory that a worker takes for a backlog larger than it, and for records that are large themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from inputs import BACKLOG
from side import Side, sink
from turn import Figure, Lines, Quantity, Turn

_LOOK_S: Final = 0.25
_LARGE: Final = 20 * 1024 * 1024
_MANY: Final = 20


class Peak:
    """Looks at all processes of a worker, from `with` to its end."""

    def __init__(self, side: Side) -> None:
        self.memory = 0
        self._side = side
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.memory = max(self.memory, self._side.tree().memory())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def backlog(turn: Turn) -> Iterator[Figure]:
    many, large = turn.inputs.topic(BACKLOG), f"{turn.name}-large"
    count = turn.inputs.count(BACKLOG)
    room = 2 * _LARGE
    turn.topics.make([large], config={"max.message.bytes": str(room)})
    turn.topics.fill(large, (bytes([97 + number]) * _LARGE for number in range(_MANY)), largest=room)
    out = turn.folder / "backlog.out"
    with turn.worker() as side:
        yield from _carried(side, f"{count:,} records behind", count, sink(many, out), out)
        more = {"consumer.override.max.partition.fetch.bytes": str(room)}
        yield from _carried(side, f"{_MANY} records of 20 MiB", _MANY, sink(large, out, **more), out)


def _carried(side: Side, what: str, count: int, config: Mapping[str, str], out: Path) -> Iterator[Figure]:
    found, began = Lines(out), time.monotonic()
    with Peak(side) as peak:
        side.create("backlog", config)
        side.until(lambda: found.count() >= count, "all records have arrived", 0.2)
    took = time.monotonic() - began
    side.delete("backlog")
    out.unlink()
    yield Figure(what, count / took, Quantity.RATE)
    yield Figure(f"{what}: most memory", peak.memory, Quantity.MEMORY)
