"""Records per second, file to Kafka and Kafka to file, with the processor time and the memory that they took.

The clock runs from the request that creates a connector to its last record. Sinks of both sides read the same topics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import peer
from inputs import PARTITIONS
from processes import Tree
from side import HEADGATE, Side, sink, source
from turn import Figure, Lines, Quantity, Row, Turn
from workloads import Workload

_PLUGINS: Final = Path(__file__).resolve().parent / "plugins"


def rates(workloads: Sequence[Workload]) -> Row:
    """All of them, one after the other in one worker."""

    def row(turn: Turn) -> Iterator[Figure]:
        with worker(turn, workloads) as side:
            for workload in workloads:
                yield from run(turn, side, workload)

    return row


def worker(turn: Turn, workloads: Sequence[Workload]) -> AbstractContextManager[Side]:
    """One that has all that they need; what they read is there before it starts."""
    for each in workloads:
        turn.inputs.file(each.reads) if each.is_source else turn.inputs.topic(each.reads)
    if turn.kind == HEADGATE:
        return turn.worker(more={"plugin.path": str(_PLUGINS)})
    needs_avro = any(each.needs_registry for each in workloads)
    return turn.worker(more={"plugin.path": str(peer.avro_plugin(turn.folder))} if needs_avro else None)


def run(turn: Turn, side: Side, workload: Workload) -> Iterator[Figure]:
    name, inputs = f"{turn.name}-{workload.name}", turn.inputs
    more = {"tasks.max": str(turn.sizes.tasks), **workload.config_of(turn.kind, inputs.registry)}
    total = inputs.count(workload.reads)
    if workload.is_source:
        turn.topics.make([name], PARTITIONS)
        config = source(inputs.file(workload.reads), name, **more)
        yield from work(side, workload.what, name, config, total, lambda: turn.topics.end(name, PARTITIONS) >= total)
    else:
        out = Lines(turn.folder / f"{workload.name}.out")
        config = sink(inputs.topic(workload.reads), out.path, **more)
        yield from work(side, workload.what, name, config, total, lambda: out.count() >= total)
        out.path.unlink()


def work(
    side: Side, what: str, name: str, config: Mapping[str, str], total: int, done: Callable[[], bool]
) -> Iterator[Figure]:
    """What it takes this connector to carry so many records."""

    def carry() -> None:
        side.create(name, config)
        side.until(done, "all records have arrived")

    yield from taken(what, total, side.tree, carry)
    side.delete(name)


def taken(what: str, total: int, tree: Callable[[], Tree], carry: Callable[[], None]) -> Iterator[Figure]:
    """What it takes these processes to carry so many records."""
    before, began = tree().cpu_s, time.monotonic()
    carry()
    took, after = time.monotonic() - began, tree()
    used, memory = after.cpu_s - before, after.memory()
    yield Figure(what, total / took, Quantity.RATE)
    yield Figure(f"{what}: CPU for a million", used / total * 1e6, Quantity.CPU)
    yield Figure(f"{what}: memory", memory, Quantity.MEMORY)
