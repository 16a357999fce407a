"""Lines per second from a file to Kafka, exactly once, in distributed mode.

The clock runs from the request that creates the connector until its last offset is committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from side import Side, source
from turn import Figure, Quantity, Turn

_MORE: Final = {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "1000"}
BOUNDARIES: Final = {"poll": "poll, the default", "interval": "interval, one second"}


def exactly_once(turn: Turn) -> Iterator[Figure]:
    file = turn.inputs.text_file
    with turn.worker(turn.name, _MORE) as side:
        for boundary, shown in BOUNDARIES.items():
            took = _took(side, f"{turn.name}-{boundary}", file, boundary)
            yield Figure(f"file source, exactly once, boundary {shown}", turn.sizes.lines / took, Quantity.RATE)


def _took(side: Side, name: str, file: Path, boundary: str) -> float:
    size = file.stat().st_size

    def done() -> bool:
        _, found = side.call("GET", f"/connectors/{name}/offsets")
        offsets = found.get("offsets", []) if isinstance(found, dict) else []
        return bool(offsets) and offsets[0]["offset"]["position"] >= size

    began = time.monotonic()
    side.create(name, source(file, name, **{"transaction.boundary": boundary}))
    side.until(done, "all lines are committed", 0.05)
    took = time.monotonic() - began
    side.delete(name)
    return took
