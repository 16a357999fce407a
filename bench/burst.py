"""Many connectors created at once on a cluster of three workers: until all are answered, and until all of them run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from side import Side, source, warm_up
from turn import Figure, Quantity, Turn

CONNECTORS: Final = 200
_WORKERS: Final = 3
_CALLERS: Final = 8


def burst(turn: Turn) -> Iterator[Figure]:
    count = turn.sizes.connectors or CONNECTORS
    turn.topics.make([f"{turn.name}-lines"])
    with ExitStack() as ending:
        sides = [
            ending.enter_context(Side(turn.kind, turn.topics.bootstrap, turn.folder, group=turn.name))
            for _ in range(_WORKERS)
        ]
        warm_up(sides, f"{turn.name}-warm", turn.folder)
        began = time.monotonic()
        with ThreadPoolExecutor(_CALLERS) as callers:
            list(callers.map(lambda number: _create(turn, sides, number), range(count)))
        created = time.monotonic() - began
        sides[0].until(lambda: _running(sides[0]) == count, "every connector and task is RUNNING", 0.25)
        running = time.monotonic() - began
    what = f"{count} connectors at once on {_WORKERS} workers"
    yield Figure(f"{what}: all answered", created, Quantity.TIME)
    yield Figure(f"{what}: all RUNNING", running, Quantity.TIME)


def _create(turn: Turn, sides: Sequence[Side], number: int) -> None:
    name, side = f"burst-{number}", sides[number % len(sides)]
    file = turn.folder / f"{name}.in"
    file.write_text("one line\n")
    body = {"name": name, "config": source(file, f"{turn.name}-lines")}
    while (status := side.call("POST", "/connectors", body)[0]) != 201:
        if status == 409 and side.call("GET", f"/connectors/{name}")[0] == 200:
            return  # an answer that did not come back
        time.sleep(0.1)


def _running(side: Side) -> int:
    """Connectors that run, and whose one task does."""
    _, found = side.call("GET", "/connectors?expand=status")
    states = [each["status"] for each in found.values() if "status" in each] if isinstance(found, dict) else []
    return sum(
        each["connector"]["state"] == "RUNNING" and [task["state"] for task in each["tasks"]] == ["RUNNING"]
        for each in states
    )
