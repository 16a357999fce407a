"""Lines per second from a file to Kafka, exactly once, in distributed mode.

The clock runs from the request that creates the connector until its last offset is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from inputs import TEXTS
from rates import work
from side import Side, source
from turn import Figure, Turn

_MORE: Final = {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "1000"}
BOUNDARIES: Final = {"poll": "poll, the default", "interval": "interval, one second"}


def exactly_once(turn: Turn) -> Iterator[Figure]:
    file, total = turn.inputs.file(TEXTS), turn.inputs.count(TEXTS)
    size = file.stat().st_size
    with turn.worker(turn.name, _MORE) as side:
        for boundary, shown in BOUNDARIES.items():
            name = f"{turn.name}-{boundary}"
            config = source(file, name, **{"transaction.boundary": boundary})
            what = f"file source, exactly once, boundary {shown}"
            yield from work(side, what, name, config, total, partial(_committed, side, name, size))


def _committed(side: Side, name: str, size: int) -> bool:
    """Whether the offset of the last line is."""
    _, found = side.call("GET", f"/connectors/{name}/offsets")
    offsets = found.get("offsets", []) if isinstance(found, dict) else []
    return bool(offsets) and offsets[0]["offset"]["position"] >= size
