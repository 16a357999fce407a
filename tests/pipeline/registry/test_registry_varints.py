"""Varints by columns: of any size, in any order, and damaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.converters.registry.columns import varints
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.words import overlapping, padded

NUMBERS = st.lists(st.integers(0, 64).flatmap(lambda bits: st.integers(0, (1 << bits) - 1)), min_size=1, max_size=20)


def one(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes([*made, number])


def read(data: bytes, at: list[int]) -> tuple[list[int], list[int]]:
    given = padded(np.frombuffer(data, np.uint8))
    numbers, sizes = varints.read(given, overlapping(given), np.array(at, np.int64))
    return numbers.tolist(), sizes.tolist()


@given(NUMBERS)
def test_all_are_written_as_one_by_one(numbers: list[int]) -> None:
    pieces = Pieces(len(numbers))
    pieces.varint(np.array(numbers, np.uint64), None)
    assert pieces.joined().to_pylist() == [one(each) for each in numbers]


@given(NUMBERS)
def test_all_are_read(numbers: list[int]) -> None:
    written = [one(each) for each in numbers]
    sizes = [len(each) for each in written]
    at = [sum(sizes[:place]) for place in range(len(sizes))]
    assert read(b"".join(written), at) == (numbers, sizes)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_zig_zag(numbers: list[int]) -> None:
    raw = varints.unsigned(np.array(numbers, np.int64))
    assert raw.tolist() == [2 * each if each >= 0 else -2 * each - 1 for each in numbers]
    assert varints.signed(raw).tolist() == numbers


@pytest.mark.parametrize("data", [b"\xff" * 9 + b"\x02", b"\xff" * 10 + b"\x01", b"\x80" * 20])
def test_more_than_64_bits_are_no_number(data: bytes) -> None:
    assert read(data, [0])[1] == [0]


def test_nothing_is_read_behind_the_end() -> None:
    assert read(b"\x05", [0, 1, 1000])[0] == [5, 0, 0]
