"""Catching up: a sink task that is far behind lets executors read for it, large ranges at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final

from headgate.model import TopicPartition
from headgate.pipeline.shelf import Shelf
from headgate.tasks.control import Control
from headgate.tasks.ports import RangeReader, Ranges
from headgate.tasks.waiting import result_of

FAR_BEHIND: Final = 200_000
"""Records of backlog from which on executors read for themselves: planning such a job takes a third of a second."""
_RECORDS: Final = 1_000_000
_BYTES: Final = 128 * 1024 * 1024
"""Most that one such job brings to the worker, by the size that records have had so far."""
_STATEMENT_RECORDS: Final = 200_000
"""The same where a statement is run on it: the driver holds it twice."""
_LEAST: Final = 1000


def left(positions: dict[TopicPartition, int], ends: Ranges) -> dict[TopicPartition, tuple[int, int]]:
    """What is still to be read of each partition. What retention has taken is not."""
    starts = {where: (max(positions[where], low), high) for where, (low, high) in ends.items() if where in positions}
    return {where: (start, end) for where, (start, end) in starts.items() if start < end}


def most_records(record_bytes: float, statements: bool) -> int:
    """Of one range."""
    return max(_LEAST, min(_STATEMENT_RECORDS if statements else _RECORDS, int(_BYTES / record_bytes)))


def chunks(ranges: Ranges, most: int) -> list[dict[TopicPartition, tuple[int, int]]]:
    """Cut so that each has at most about `most` records, every partition going forward in each."""
    rest = {where: bounds for where, bounds in ranges.items() if bounds[0] < bounds[1]}
    cut = []
    while rest:
        share = max(1, most // len(rest))
        chunk = {where: (start, min(start + share, end)) for where, (start, end) in rest.items()}
        cut.append(chunk)
        rest = {where: (chunk[where][1], end) for where, (_, end) in rest.items() if chunk[where][1] < end}
    return cut


def read(
    reader: RangeReader,
    ranges: Ranges,
    most: int,
    shelf: Shelf | None,
    control: Control,
    meanwhile: Callable[[], None],
) -> Iterator[tuple[Any, Ranges]]:
    """What executors read of them, piece by piece, each with its range; while one is put, the next one is read."""
    ahead: tuple[Future[Any], Ranges] | None = None
    for chunk in [*chunks(ranges, most), None]:
        following = (reader.read(chunk, shelf), chunk) if chunk else None
        if ahead is not None:
            yield result_of(ahead[0], control, meanwhile), ahead[1]
        ahead = following
