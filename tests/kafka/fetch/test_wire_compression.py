"""The codecs of record batches, whoever compressed."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_support import CODECS, XERIAL, compressed, xerial

from headgate.kafka.fetch.compression import decompress

TEXT = b"a line of a log, much like the one before it\n" * 5000
NUMBERS = {XERIAL: 2}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "much"])
def test_what_was_compressed_comes_back(codec: int, data: bytes) -> None:
    assert decompress(NUMBERS.get(codec, codec), compressed(codec, data)) == data


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(1, 100))
def test_the_java_librarys_blocks_are_put_together(data: bytes, block: int) -> None:
    assert decompress(2, xerial(data, block)) == data


def test_gzip_in_several_members() -> None:
    assert decompress(1, gzip.compress(b"one, ") + gzip.compress(b"two")) == b"one, two"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_is_not_known_is_an_error(codec: int) -> None:
    with pytest.raises(ValueError, match=f"codec {codec} is not known"):
        decompress(codec, b"")


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec])
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_data_that_was_cut_off_is_an_error(codec: int, cut: int) -> None:
    with pytest.raises(ValueError, match=r"."):
        decompress(NUMBERS.get(codec, codec), compressed(codec, TEXT)[:-cut])


@pytest.mark.parametrize("size", [b"", b"\xff\xff\xff\xff\x7f", b"\xff" * 100_000], ids=["none", "huge", "endless"])
def test_snappy_that_lies_about_its_size_is_an_error(size: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decompress(2, size)
    with pytest.raises(ValueError, match=r"."):
        decompress(2, b"\x82SNAPPY\0" + bytes(8) + struct.pack(">I", 2**31) + size)


@settings(deadline=None)
@given(st.sampled_from([codec for codec in CODECS if codec]), st.data())
def test_damage_gives_bytes_or_a_value_error_and_nothing_else(codec: int, data: st.DataObject) -> None:
    good = bytearray(compressed(codec, TEXT[:2000]))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        assert isinstance(decompress(NUMBERS.get(codec, codec), bytes(good)), bytes)
