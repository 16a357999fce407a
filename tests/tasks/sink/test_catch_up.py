"""Ranges of offsets: how they are cut, and read ahead."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from sink_bench import P0, P1

from headgate.model import RangeUnread, TopicPartition
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Ranges
from headgate.tasks.sink.catch_up import left, pieces, read, sizes


@pytest.mark.parametrize(
    ("positions", "ends", "expected"),
    [
        ({P0: 3}, {P0: (0, 9)}, {P0: (3, 9)}),
        ({P0: 3}, {P0: (5, 9)}, {P0: (5, 9)}),
        ({P0: 9, P1: 0}, {P0: (0, 9), P1: (0, 2)}, {P1: (0, 2)}),
        ({P0: 9}, {P0: (0, 8)}, {}),
        ({P1: 1}, {P0: (0, 9), P1: (0, 9)}, {P1: (1, 9)}),
        ({}, {P0: (0, 9)}, {}),
    ],
    ids=["some", "retention was here", "one is done", "behind the end", "one is not ours", "none is ours"],
)
def test_what_is_left_to_be_read(positions: dict[TopicPartition, int], ends: Ranges, expected: Ranges) -> None:
    assert left(positions, ends) == expected


@pytest.mark.parametrize(
    ("record_bytes", "buffer_bytes", "together", "expected"),
    [
        (100.0, 64 << 20, False, (50_000, 4)),
        (1024.0, 64 << 20, False, (32_768, 4)),
        (1024.0, 4 << 20, False, (2048, 4)),
        (20 << 20, 64 << 20, False, (1, 4)),
        (50 << 20, 64 << 20, False, (1, 2)),
        (1e9, 64 << 20, False, (1, 1)),
        (100.0, 64 << 20, True, (200_000, 1)),
        (1024.0, 64 << 20, True, (131_072, 1)),
    ],
)
def test_how_much_is_read_ahead_depends_on_how_large_records_are_and_on_the_room(
    record_bytes: float, buffer_bytes: int, together: bool, expected: tuple[int, int]
) -> None:
    reader = Reader()
    reader.most, reader.ahead = 50_000, 4
    assert sizes(reader, together, record_bytes, buffer_bytes) == expected


@pytest.mark.parametrize(
    ("ranges", "most", "expected"),
    [
        ({}, 10, []),
        ({P0: (5, 5)}, 10, []),
        ({P0: (0, 10)}, 10, [{P0: (0, 10)}]),
        ({P0: (2, 13)}, 5, [{P0: (2, 7)}, {P0: (7, 12)}, {P0: (12, 13)}]),
        ({P0: (0, 9), P1: (0, 2)}, 4, [{P0: (0, 4)}, {P1: (0, 2), P0: (4, 6)}, {P0: (6, 9)}]),
        ({P0: (0, 2), P1: (0, 2)}, 1, [{P0: (0, 1)}, {P1: (0, 1)}, {P0: (1, 2)}, {P1: (1, 2)}]),
        ({P0: (0, 2), P1: (5, 7)}, 8, [{P0: (0, 2), P1: (5, 7)}]),
    ],
)
def test_ranges_are_cut_and_partitions_take_turns(ranges: Ranges, most: int, expected: list[Ranges]) -> None:
    assert list(pieces(ranges, most)) == expected


class Reader:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Ranges] = []
        self.futures: list[Future[Any]] = []
        self.cancelled = 0
        self.most, self.ahead = 2, 1

    def read(self, ranges: Ranges, shelf: object) -> Future[Any]:
        self.asked.append(ranges)
        self.futures.append(Future())
        return self.futures[-1]

    def cancel(self) -> None:
        self.cancelled += 1

    def close(self) -> None: ...


def test_while_one_piece_is_put_the_next_one_is_read() -> None:
    reader = Reader()
    given = read(reader, {P0: (0, 6)}, (2, 1), None, Control(paused=False), lambda: reader.futures[0].set_result("a"))
    assert next(given) == ("a", {P0: (0, 2)})  # it was asked about meanwhile until it was there
    assert reader.asked == [{P0: (0, 2)}, {P0: (2, 4)}]
    reader.futures[1].set_result("b")
    assert next(given) == ("b", {P0: (2, 4)})
    assert len(reader.asked) == 3
    reader.futures[2].set_result("c")
    assert list(given) == [("c", {P0: (4, 6)})]
    assert (len(reader.asked), reader.cancelled) == (3, 0)


def test_as_many_are_read_ahead_as_was_said() -> None:
    reader = Reader()
    given = read(reader, {P0: (0, 20)}, (2, 3), None, Control(paused=False), lambda: reader.futures[0].set_result("a"))
    next(given)
    assert len(reader.asked) == 4
    given.close()
    assert reader.cancelled == 1


def test_what_was_asked_for_is_cancelled_when_a_piece_cannot_be_read() -> None:
    reader = Reader()

    def fail() -> None:
        reader.futures[0].set_exception(RangeUnread("gone"))

    with pytest.raises(RangeUnread):
        next(read(reader, {P0: (0, 6)}, (2, 1), None, Control(paused=False), fail))
    assert reader.cancelled == 1


def test_who_is_given_up_on_does_not_wait_for_executors() -> None:
    control = Control(paused=False)
    with pytest.raises(Stopped):
        next(read(Reader(), {P0: (0, 6)}, (2, 1), None, control, control.cancel))


def test_there_is_nothing_to_read() -> None:
    assert list(read(Reader(), {}, (2, 1), None, Control(paused=False), lambda: None)) == []
