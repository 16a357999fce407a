"""What is not a record batch of the second format is Unreadable: never a crash, never a loop without end."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from wire_support import ALL, CODECS, HEADER, WHERE, Rec, batch, marker, record, sized, varint

from headgate.kafka.fetch.batches import Aborted, Batches, Unreadable

END = 2**63 - 1
LENGTH_AT, COUNT_AT, LAST_AT = 8, HEADER.size - 4, 23


def read(data: bytes) -> None:
    table = Batches(data, [Aborted(1, 0)]).read(WHERE, 0, END, ALL)
    table.validate(full=True)


def put(data: bytes, at: int, form: str, number: int) -> bytes:
    out = bytearray(data)
    struct.pack_into(form, out, at, number)
    return bytes(out)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=0, batch_size=10_000)
    for offset in range(3):
        builder.append(offset, timestamp=1, key=b"key", value=b"value" * 20)
    with pytest.raises(Unreadable, match=f"format {magic}"):
        Batches(bytes(builder.build()))


def test_a_format_of_the_future() -> None:
    with pytest.raises(Unreadable, match="format 3"):
        Batches(batch([Rec(0)], magic=3))


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 48])
def test_a_batch_that_is_shorter_than_its_header(length: int) -> None:
    with pytest.raises(Unreadable):
        Batches(put(batch([Rec(0)]), LENGTH_AT, ">i", length))


@pytest.mark.parametrize(("at", "form"), [(0, ">q"), (LAST_AT, ">i"), (COUNT_AT, ">i")], ids=["base", "last", "count"])
def test_negative_numbers_in_a_header(at: int, form: str) -> None:
    with pytest.raises(Unreadable):
        Batches(put(batch([Rec(0)]), at, form, -1))


@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1])
def test_another_number_of_records_than_there_are(count: int) -> None:
    with pytest.raises(Unreadable, match=f"2 records where {count} should be"):
        read(batch([Rec(0), Rec(1)], count=count))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_is_not_known(codec: int) -> None:
    with pytest.raises(Unreadable, match=f"codec {codec}"):
        read(batch([Rec(0)], codec=codec))


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
def test_records_that_cannot_be_decompressed(codec: int) -> None:
    with pytest.raises(Unreadable):
        read(batch([Rec(0)], codec=codec, body=b"these are no compressed records"))


GOOD = record(Rec(0), 0, 1000)
BODIES = {
    "ends too early": GOOD[:-1],
    "goes on": GOOD + b"\0",
    "of negative length": varint(-1) + GOOD[1:],
    "empty": varint(0),
    "all length": varint(5) + b"\xff" * 5,
    "key beyond the record": sized(b"\0\0\0" + varint(100) + b"key" + varint(0) + b"\0"),
    "key beyond everything": sized(b"\0\0\0" + varint(2**63 - 1) + b"key" + varint(0) + b"\0"),
    "key of length -2": sized(b"\0\0\0" + varint(-2) + varint(0) + b"\0"),
    "value beyond the record": sized(b"\0\0\0" + varint(-1) + varint(5) + b"four"),
    "value beyond everything": sized(b"\0\0\0" + varint(-1) + varint(2**63 - 1) + b"\0"),
    "value of length -2": sized(b"\0\0\0" + varint(-1) + varint(-2) + b"\0"),
    "without headers": sized(b"\0\0\0" + varint(-1) + varint(1) + b"v"),
    "offset before the batch": sized(b"\0\0" + varint(-1) + varint(-1) + varint(-1) + b"\0"),
    "offset after the batch": sized(b"\0\0" + varint(1) + varint(-1) + varint(-1) + b"\0"),
    "a number of eleven bytes": sized(b"\0" + b"\x80" * 10 + b"\0" + b"\0\1\1\0"),
    "fewer headers than said": sized(b"\0\0\0\1\1" + varint(2) + sized(b"h") + sized(b"1")),
    "more headers than said": sized(b"\0\0\0\1\1" + varint(1) + sized(b"h") + sized(b"1") + sized(b"i") + sized(b"2")),
    "headers without end": sized(b"\0\0\0\1\1" + varint(2**62) + sized(b"h") + sized(b"1")),
    "a negative number of headers": sized(b"\0\0\0\1\1" + varint(-1)),
    "header name of negative length": sized(b"\0\0\0\1\1" + varint(1) + varint(-3) + sized(b"1")),
    "header name beyond the record": sized(b"\0\0\0\1\1" + varint(1) + varint(9) + b"h"),
    "header value beyond the record": sized(b"\0\0\0\1\1" + varint(1) + sized(b"h") + varint(9) + b"1"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("following", [b"", batch([Rec(1, value=b"x" * 300)])], ids=["last", "followed"])
def test_a_damaged_record(body: bytes, following: bytes) -> None:
    with pytest.raises(Unreadable):
        read(batch([Rec(0)], body=body) + following)


@pytest.mark.parametrize("body", [b"\xff" * 20, b"\x80", varint(10) + b"\0" + b"\xff" * 12], ids=["ff", "80", "later"])
def test_a_damaged_marker(body: bytes) -> None:
    with pytest.raises(Unreadable):
        Batches(batch([Rec(0)], producer=1, transactional=True, control=True, body=body))


LOG = b"".join(
    [
        batch([Rec(0, key=b"k", headers=(("h", b"1"),)), Rec(2, value=None)], producer=1, transactional=True),
        marker(3, 1, commit=False),
        *(batch([Rec(4 + at, value=b"abc" * 50)] * 3, codec=codec) for at, codec in enumerate(CODECS)),
        batch([Rec(20, value=b"x" * 9000, headers=(("h", None),) * 3)]),
    ]
)


@settings(deadline=None, max_examples=5 * settings().max_examples)
@given(st.lists(st.tuples(st.integers(0, len(LOG) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_whatever_bytes_change_it_is_read_or_unreadable(changes: list[tuple[int, int]]) -> None:
    data = bytearray(LOG)
    for at, byte in changes:
        data[at] = byte
    with suppress(Unreadable):
        read(bytes(data))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_whatever_records_say_it_is_read_or_unreadable(body: bytes) -> None:
    """Under a good header, so that they are looked at."""
    for count in range(4):
        with suppress(Unreadable):
            read(batch([Rec(0)], body=body, count=count, last=100))
