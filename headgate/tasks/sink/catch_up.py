"""Catching up: a sink task that is far behind lets executors read for it, large ranges at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Final

from headgate.model import TopicPartition
from headgate.pipeline.shelf import Shelf
from headgate.tasks.control import Control
from headgate.tasks.ports import RangeReader, Ranges
from headgate.tasks.waiting import result_of

FAR_BEHIND: Final = 200_000
"""Records of backlog from which on executors read for themselves."""
AGAIN_S: Final = 60.0
"""So long after they could not, they are asked again."""
_TOGETHER: Final = 200_000
"""Records that are read at once where a statement or a frame wants to see many: the driver holds them twice."""
_ROOM: Final = 2
"""What is read ahead has so many times the room of a task, by the size that records have had so far."""


def left(positions: dict[TopicPartition, int], ends: Ranges) -> dict[TopicPartition, tuple[int, int]]:
    """What is still to be read of each partition. What retention has taken is not."""
    starts = {where: (max(positions[where], low), high) for where, (low, high) in ends.items() if where in positions}
    return {where: (start, end) for where, (start, end) in starts.items() if start < end}


def sizes(reader: RangeReader, together: bool, record_bytes: float, buffer_bytes: int) -> tuple[int, int]:
    """Records of a piece, and pieces ahead, as far as there is room; `buffer_bytes` is that of a task."""
    most, ahead = (_TOGETHER, 1) if together else (reader.most, reader.ahead)
    room = int(_ROOM * buffer_bytes / record_bytes)
    ahead = max(1, min(ahead, room))
    return max(1, min(most, room // ahead)), ahead


def pieces(ranges: Ranges, most: int) -> Iterator[Ranges]:
    """Cut so that each has about `most` records, of several partitions only if one has not so many. Partitions take
    turns."""
    rest = {where: bounds for where, bounds in ranges.items() if bounds[0] < bounds[1]}
    while rest:
        piece: dict[TopicPartition, tuple[int, int]] = {}
        room = most
        for where, (start, end) in list(rest.items()):
            if not room:
                break
            piece[where] = start, min(start + room, end)
            room -= piece[where][1] - start
            del rest[where]
            if piece[where][1] < end:
                rest[where] = piece[where][1], end  # behind the others
        yield piece


def read(
    reader: RangeReader,
    ranges: Ranges,
    sizes: tuple[int, int],
    shelf: Shelf | None,
    control: Control,
    meanwhile: Callable[[], None],
) -> Generator[tuple[Any, Ranges]]:
    """What executors read, piece by piece, each with its range; while one is put, the next ones are read. To be
    closed: what nobody wants any more is cancelled."""
    most, ahead = sizes
    asked: deque[tuple[Future[Any], Ranges]] = deque()

    def first() -> tuple[Any, Ranges]:
        future, piece = asked.popleft()
        return result_of(future, control, meanwhile), piece

    try:
        for piece in pieces(ranges, most):
            asked.append((reader.read(piece, shelf), piece))
            if len(asked) > ahead:
                yield first()
        while asked:
            yield first()
    finally:
        if asked:
            reader.cancel()
