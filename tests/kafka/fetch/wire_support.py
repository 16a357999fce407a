"""Record batches written by hand, as Kafka's protocol describes them, and records as rows to compare."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.model import TopicPartition
from headgate.pipeline.batch import CONSUMED

WHERE = TopicPartition("orders", 3)
ALL = frozenset(CONSUMED.names)
XERIAL = 9
"""No codec of Kafka's: snappy, in the frame of the Java library."""
CODECS = (0, 1, 2, XERIAL, 3, 4)

HEADER = struct.Struct(">qiibIhiqqqhii")


@dataclass(frozen=True)
class Rec:
    offset: int
    timestamp: int = 1000
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes | None], ...] = ()


def varint(number: int) -> bytes:
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(rec: Rec, base: int, base_time: int) -> bytes:
    headers = b"".join(sized(key.encode()) + sized(value) for key, value in rec.headers)
    body = b"\0" + varint(rec.timestamp - base_time) + varint(rec.offset - base) + sized(rec.key) + sized(rec.value)
    return sized(body + varint(len(rec.headers)) + headers)


def compressed(codec: int, data: bytes) -> bytes:
    if codec == XERIAL:
        return xerial(data, 32 * 1024)
    names = {2: "snappy", 3: "lz4", 4: "zstd"}
    if codec in names:
        return bytes(pa.compress(data, names[codec], asbytes=True))
    return gzip.compress(data) if codec == 1 else data


def xerial(data: bytes, block: int) -> bytes:
    out = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), block):
        part = bytes(pa.compress(data[at : at + block], "snappy", asbytes=True))
        out += struct.pack(">i", len(part)) + part
    return out


def batch(
    records: Sequence[Rec],
    *,
    base: int | None = None,
    last: int | None = None,
    codec: int = 0,
    append_time: int | None = None,
    producer: int = -1,
    transactional: bool = False,
    control: bool = False,
    body: bytes | None = None,
    count: int | None = None,
    magic: int = 2,
) -> bytes:
    """A batch of these records. It may begin before the first and end after the last: compaction leaves that."""
    base = records[0].offset if base is None else base
    last = records[-1].offset if last is None else last
    times = [each.timestamp for each in records] or [-1]
    if body is None:
        body = compressed(codec, b"".join(record(each, base, times[0]) for each in records))
    attributes = {XERIAL: 2}.get(codec, codec) | 0x10 * transactional | 0x20 * control
    attributes |= 0x08 if append_time is not None else 0
    most = max(times) if append_time is None else append_time
    number = len(records) if count is None else count
    length = HEADER.size - 12 + len(body)
    head = (base, length, 0, magic, 0, attributes, last - base, times[0], most, producer, 0, 0, number)
    return HEADER.pack(*head) + body


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    rec = Rec(offset, key=struct.pack(">hh", 0, commit), value=struct.pack(">hi", 0, 0))
    return batch([rec], producer=producer, transactional=True, control=True)


def rows(records: Sequence[Rec], append_time: int | None = None) -> list[dict[str, Any]]:
    """What is to be read of them."""
    return [
        {
            "topic": WHERE.topic,
            "partition": WHERE.partition,
            "offset": each.offset,
            "timestamp": shown_time(each.timestamp if append_time is None else append_time),
            "timestamp_type": "CreateTime" if append_time is None else "LogAppendTime",
            "key": each.key,
            "value": each.value,
            "headers": [{"key": key, "value": value} for key, value in each.headers] or None,
        }
        for each in records
    ]


def shown_time(milliseconds: int) -> int | None:
    return milliseconds if milliseconds >= 0 else None
