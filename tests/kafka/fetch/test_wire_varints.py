"""Zig-zag varints: columns of them say what a plain decoder says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_support import varint

from headgate.kafka.fetch.varints import decode, decode_one, starts

LONGS = st.integers(-(2**63), 2**63 - 1)
EDGES = [0, -1, 63, -64, 64, -65, 8191, -8192, 8192, 2**31 - 1, -(2**31), 2**62, -(2**62) - 1, 2**63 - 1, -(2**63)]


def plain(data: bytes, at: int) -> tuple[int, int]:
    """As Kafka's protocol guide describes it, with numbers that have no end."""
    raw = shift = 0
    while True:
        raw |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return (raw // 2 if raw % 2 == 0 else -(raw + 1) // 2), at
        shift += 7


def places(pieces: list[bytes]) -> list[int]:
    return [sum(map(len, pieces[:index])) for index in range(len(pieces))]


@given(st.lists(LONGS))
def test_a_column_of_numbers_is_read_as_each_of_them(numbers: list[int]) -> None:
    pieces = [varint(number) for number in numbers]
    data = b"".join(pieces)
    found, after = decode(np.frombuffer(data, np.uint8), np.array(places(pieces), np.int64))
    assert found.tolist() == numbers
    assert after.tolist() == [at + len(piece) for at, piece in zip(places(pieces), pieces, strict=True)]
    assert [plain(data, at) for at in places(pieces)] == list(zip(numbers, after.tolist(), strict=True))


@pytest.mark.parametrize("number", EDGES)
def test_numbers_where_their_length_or_sign_changes(number: int) -> None:
    data = b"\xff" + varint(number) + b"\xff"
    found, after = decode(np.frombuffer(data, np.uint8), np.array([1], np.int64))
    assert (found.tolist(), after.tolist()) == ([number], [len(data) - 1])
    assert decode_one(data, 1) == plain(data, 1) == (number, len(data) - 1)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\xff\xff", b"\x80" * 10 + b"\0", b"\xff" * 30])
def test_a_number_that_does_not_end_in_time_is_an_error(data: bytes) -> None:
    with pytest.raises(IndexError):
        decode_one(data, 0)
    with pytest.raises(IndexError):
        decode(np.frombuffer(data, np.uint8), np.array([0], np.int64))


@given(st.lists(st.sampled_from([0, 1, 62, 63, 64, 65, 8190, 8191, 8192, 20_000]) | st.integers(0, 300), max_size=20))
def test_records_begin_where_the_one_before_ends(lengths: list[int]) -> None:
    pieces = [varint(length) + bytes(length) for length in lengths]
    data = b"before" + b"".join(pieces) + b"after"
    assert starts(data, 6, len(data) - 5) == [6 + at for at in places(pieces)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(varint(3) + b"ab", id="short"),
        pytest.param(varint(100) + bytes(99), id="short, two bytes"),
        pytest.param(varint(10_000) + bytes(9_999), id="short, three bytes"),
        pytest.param(varint(2**62), id="beyond everything"),
        pytest.param(bytes(8) + varint(-9000), id="back to the beginning"),
        pytest.param(bytes(8) + varint(-(2**40)), id="far back"),
        pytest.param(b"\xff" * 12, id="no number"),
    ],
)
def test_a_record_that_does_not_end_in_its_batch_is_an_error(data: bytes) -> None:
    with pytest.raises(IndexError):
        starts(data, 0, len(data))
