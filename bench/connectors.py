"""What many connectors cost, with little work and with none: processor time, threads and handles of all processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from side import sink, source
from turn import Figure, Lines, Quantity, Turn

BUSY: Final = 100
IDLE: Final = 300


def busy(turn: Turn) -> Iterator[Figure]:
    """File sinks with a topic each, that gets a record each second."""
    count = turn.sizes.connectors or BUSY
    names = [f"{turn.name}-{number:03d}" for number in range(count)]
    turn.topics.make(names)
    with turn.worker() as side:
        outs = [Lines(turn.folder / f"{name}.out") for name in names]
        for name, out in zip(names, outs, strict=True):
            side.create(name, sink(name, out.path))
        with _beat(turn, names) as sent:
            side.until(lambda: all(out.count() for out in outs), "every sink has a record")
            time.sleep(turn.sizes.settle)
            before = side.tree().cpu_s
            time.sleep(turn.sizes.seconds)
            used = side.tree().cpu_s - before
        # Who does not do the work is not to win.
        side.until(lambda: sum(out.count() for out in outs) >= sum(sent), "all records are in the files")
    what = f"{count} sinks with one record a second each, for {turn.sizes.seconds:.0f} s"
    yield Figure(what, used, Quantity.CPU)


def idle(turn: Turn) -> Iterator[Figure]:
    """Half of them sinks, half sources, that have done a record each and wait for more."""
    count = turn.sizes.connectors or IDLE
    names = [f"{turn.name}-{number:03d}" for number in range(count)]
    sinks, sources = names[: count // 2], names[count // 2 :]
    lines = f"{turn.name}-lines"
    turn.topics.make([*sinks, lines])
    with turn.worker() as side:
        outs = [Lines(turn.folder / f"{name}.out") for name in sinks]
        producer = turn.topics.producer()
        for name, out in zip(sinks, outs, strict=True):
            producer.produce(name, b"one line")
            side.create(name, sink(name, out.path))
        for name in sources:
            file = turn.folder / f"{name}.in"
            file.write_text("one line\n")
            side.create(name, source(file, lines))
        producer.flush()
        side.until(lambda: all(out.count() for out in outs), "every sink has its record")
        side.until(lambda: turn.topics.end(lines) >= len(sources), "every source has sent its line")
        time.sleep(turn.sizes.settle)
        before = side.tree().cpu_s
        time.sleep(turn.sizes.seconds)
        after = side.tree()
        what = f"{count} idle connectors"
        yield Figure(f"{what}, for {turn.sizes.seconds:.0f} s", after.cpu_s - before, Quantity.CPU)
        yield Figure(f"{what}: threads", after.threads, Quantity.COUNT)
        yield Figure(f"{what}: open files and sockets", after.handles(), Quantity.COUNT)


@contextmanager
def _beat(turn: Turn, topics: Sequence[str]) -> Iterator[list[int]]:
    """Each topic gets a record a second, one topic after the other; afterwards the list says how many were sent."""
    producer, stop = turn.topics.producer(), threading.Event()
    sent: list[int] = []

    def send() -> None:
        began, number = time.monotonic(), 0
        while not stop.wait(max(0.0, began + number / len(topics) - time.monotonic())):
            producer.produce(topics[number % len(topics)], b"one line")
            producer.poll(0)
            number += 1
        sent.append(number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()
        producer.flush()
