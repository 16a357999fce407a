from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.storage.java_offsets import MAGIC, JavaStreamError, read_java_offsets

# Written by Java 17's ObjectOutputStream, as FileOffsetBackingStore of Apache Kafka Connect does.
OFFSETS = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAAABAAAAAE"
    "dXIAAltCrPMX+AYIVOACAAB4cAAAAB5bImEiLHsiZmlsZW5hbWUiOiIvZC9pbi50eHQifV11cQB+AAIAAAAOeyJwb3NpdGlvbiI6OX11cQB+"
    "AAIAAAAgWyJhIix7ImZpbGVuYW1lIjoiL2QvZ29uZS50eHQifV1wdXEAfgACAAAAHFsiYiIseyJ0YWJsZSI6IsO2bCIsImRiIjoxfV11cQB+"
    "AAIAAAAZeyJpZCI6MS4wRTIwLCJkb25lIjp0cnVlfXVxAH4AAgAAAApbIm4iLG51bGxddXEAfgACAAAAB3sieCI6MX14"
)
EMPTY = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAB3CAAAABAAAAAAeA=="
)
NULL_KEY = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAAABAAAAABcHVy"
    "AAJbQqzzF/gGCFTgAgAAeHAAAAACe314"
)
ONE_VALUE_TWICE = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAAABAAAAACdXIA"
    "AltCrPMX+AYIVOACAAB4cAAAAA1bImEiLHsiZiI6MX1ddXEAfgACAAAAB3sicCI6MX11cQB+AAIAAAANWyJhIix7ImYiOjJ9XXEAfgAEeA=="
)
MAP_OF_STRINGS = base64.b64decode(
    "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcAUH2sHDFmDRAwACRgAKbG9hZEZhY3RvckkACXRocmVzaG9sZHhwP0AAAAAAAAx3CAAAABAAAAABdAAB"
    "YXQAAWJ4"
)
LIST = base64.b64decode("rO0ABXNyABNqYXZhLnV0aWwuQXJyYXlMaXN0eIHSHZnHYZ0DAAFJAARzaXpleHAAAAAAdwQAAAAAeA==")


def test_a_map_of_apaches_worker_is_read_with_its_nulls() -> None:
    assert read_java_offsets(OFFSETS) == [
        (b'["a",{"filename":"/d/in.txt"}]', b'{"position":9}'),
        (b'["a",{"filename":"/d/gone.txt"}]', None),
        ('["b",{"table":"öl","db":1}]'.encode(), b'{"id":1.0E20,"done":true}'),
        (b'["n",null]', b'{"x":1}'),
    ]


def test_an_empty_map_and_a_null_key_are_read() -> None:
    assert read_java_offsets(EMPTY) == []
    assert read_java_offsets(NULL_KEY) == [(None, b"{}")]


def test_an_array_that_java_wrote_once_and_referred_to_later_is_read_twice() -> None:
    assert read_java_offsets(ONE_VALUE_TWICE) == [
        (b'["a",{"f":1}]', b'{"p":1}'),
        (b'["a",{"f":2}]', b'{"p":1}'),
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "byte 0 does not begin the header"),
        (LIST, r"byte 4 does not begin a java\.util\.HashMap"),
        (MAP_OF_STRINGS, "byte 81 does not begin an array of bytes"),
        (OFFSETS + b"x", "1 bytes follow the map"),
        (OFFSETS[:-1], "byte 311 does not begin the end of the map"),
        (OFFSETS[:100], "the file ends early"),
    ],
)
def test_any_other_stream_is_refused_with_the_place_where_it_differs(data: bytes, message: str) -> None:
    with pytest.raises(JavaStreamError, match=message):
        read_java_offsets(data)


@pytest.mark.parametrize("end", range(len(OFFSETS)))
def test_no_part_of_a_file_passes_for_the_whole(end: int) -> None:
    with pytest.raises(JavaStreamError):
        read_java_offsets(OFFSETS[:end])


@given(st.integers(0, len(OFFSETS) - 1), st.binary(min_size=1, max_size=6))
def test_damage_is_read_as_something_or_refused_but_never_crashes(at: int, damage: bytes) -> None:
    for data in (OFFSETS[:at] + damage + OFFSETS[at + len(damage) :], MAGIC + damage):
        with suppress(JavaStreamError):
            read_java_offsets(data)
