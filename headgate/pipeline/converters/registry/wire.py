"""The wire format: a zero, four bytes of schema id, then the data; with Protobuf, which message stands between."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from headgate.api import DataError

HEADER: Final = 5
MAGIC: Final = 0
_ID: Final = struct.Struct(">BI")


def header(schema_id: int) -> bytes:
    return _ID.pack(MAGIC, schema_id)


def schema_id(topic: str, data: bytes) -> int:
    """Raises DataError for bytes that no serializer of a schema registry wrote."""
    if len(data) < HEADER:
        raise DataError(f"Bytes of topic {topic} are too short for a schema id: {len(data)} of at least {HEADER} bytes")
    magic, found = _ID.unpack_from(data)
    if magic != MAGIC:
        raise DataError(
            f"Unknown magic byte! Data of topic {topic} starts with 0x{magic:02x}, not with 0x00 and a schema id:"
            " no serializer of a schema registry wrote it"
        )
    return int(found)


def write_indexes(indexes: Sequence[int]) -> bytes:
    """The place of a Protobuf message in its file; the first message, which is most common, is one zero."""
    if list(indexes) == [0]:
        return b"\x00"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def read_indexes(topic: str, data: bytes) -> tuple[tuple[int, ...], int]:
    """The place of the message, and where it begins. Raises DataError."""
    count, position = _read_varint(topic, data, HEADER)
    if count == 0:
        return (0,), position
    if count < 0 or count > len(data):
        raise DataError(f"Data of topic {topic} names no Protobuf message: {count} indexes")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(topic, data, position)
        indexes.append(index)
    return tuple(indexes), position


def _varint(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    made = bytearray()
    while left > 0x7F:
        made.append(0x80 | (left & 0x7F))
        left >>= 7
    made.append(left)
    return bytes(made)


def _read_varint(topic: str, data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        if position >= len(data) or shift > 63:
            raise DataError(f"Data of topic {topic} ends, or is broken, before its Protobuf message is named")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
