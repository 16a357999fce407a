"""Ranges of offsets: how they are cut, and read ahead."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from sink_bench import P0, P1

from headgate.model import TopicPartition
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Ranges
from headgate.tasks.sink.catch_up import chunks, left, most_records, read


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
    ("record_bytes", "statements", "most"),
    [
        (1.0, False, 1_000_000),
        (1.0, True, 200_000),
        (1024.0, False, 131_072),
        (1024.0, True, 131_072),
        (1e9, False, 1000),
    ],
)
def test_how_much_is_read_at_once_depends_on_how_large_records_are(
    record_bytes: float, statements: bool, most: int
) -> None:
    assert most_records(record_bytes, statements) == most


@pytest.mark.parametrize(
    ("ranges", "most", "expected"),
    [
        ({}, 10, []),
        ({P0: (5, 5)}, 10, []),
        ({P0: (0, 10)}, 10, [{P0: (0, 10)}]),
        ({P0: (2, 13)}, 5, [{P0: (2, 7)}, {P0: (7, 12)}, {P0: (12, 13)}]),
        (
            {P0: (0, 9), P1: (0, 2)},
            4,  # two of each; and all four of the one that is left
            [{P0: (0, 2), P1: (0, 2)}, {P0: (2, 6)}, {P0: (6, 9)}],
        ),
        ({P0: (0, 2), P1: (0, 2)}, 1, [{P0: (0, 1), P1: (0, 1)}, {P0: (1, 2), P1: (1, 2)}]),
    ],
)
def test_ranges_are_cut_and_every_partition_goes_forward(ranges: Ranges, most: int, expected: list[Ranges]) -> None:
    assert chunks(ranges, most) == expected


class Reader:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Ranges] = []
        self.futures: list[Future[Any]] = []

    def read(self, ranges: Ranges, shelf: object) -> Future[Any]:
        self.asked.append(ranges)
        self.futures.append(Future())
        return self.futures[-1]

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def test_while_one_piece_is_put_the_next_one_is_read() -> None:
    reader = Reader()
    pieces = read(reader, {P0: (0, 6)}, 2, None, Control(paused=False), lambda: reader.futures[0].set_result("a"))
    assert next(pieces) == ("a", {P0: (0, 2)})  # it was asked about meanwhile until it was there
    assert reader.asked == [{P0: (0, 2)}, {P0: (2, 4)}]
    reader.futures[1].set_result("b")
    assert next(pieces) == ("b", {P0: (2, 4)})
    assert len(reader.asked) == 3
    reader.futures[2].set_result("c")
    assert list(pieces) == [("c", {P0: (4, 6)})]
    assert len(reader.asked) == 3


def test_who_is_given_up_on_does_not_wait_for_executors() -> None:
    control = Control(paused=False)
    with pytest.raises(Stopped):
        next(read(Reader(), {P0: (0, 6)}, 2, None, control, control.cancel))


def test_there_is_nothing_to_read() -> None:
    assert list(read(Reader(), {}, 2, None, Control(paused=False), lambda: None)) == []
