"""Record batches, as a fetch brings them, as Arrow columns.

Only the way from one record to the next is taken step by step; everything in them is read by columns. That is a
fraction of what a client's message object costs for each record.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.kafka.fetch.compression import decompress
from headgate.kafka.fetch.varints import Longs, decode, decode_one, starts
from headgate.model import TopicPartition

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_FIXED: Final = 12
"""Base offset and length: what the length does not count."""
_CODEC: Final = 0x07
_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_ABORT_MARKER: Final = 0
_HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


class Unreadable(Exception):
    """Bytes that are not what is read here: an old message format, a codec that is not known, or damage."""


class Aborted(NamedTuple):
    """A transaction that was given up, as a fetch of committed records tells of it."""

    producer: int
    first: int


@dataclass(frozen=True, slots=True)
class _Head:
    base: int
    last: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer: int
    count: int
    start: int
    end: int
    """Of its records in the bytes."""


class Batches:
    """The batches of one fetched partition. They are walked through once, and cheaply, before anything is read."""

    def __init__(self, data: bytes, aborted: Iterable[Aborted] = ()) -> None:
        self._data = data
        self.size = len(data)
        heads = list(_heads(data))
        self.following: int | None = heads[-1].last + 1 if heads else None
        """Where the next fetch begins; None when not one whole batch has come."""
        self._heads = list(_kept(data, heads, sorted(aborted, key=lambda each: each.first)))

    def read(self, where: TopicPartition, start: int, end: int, needed: Collection[str]) -> pa.Table:
        """The records from `start` to before `end`, with the columns that are needed. Raises Unreadable."""
        heads = [head for head in self._heads if head.last >= start and head.base < end]
        try:
            return _read(self._data, heads, where, start, end, needed)
        except IndexError as error:
            raise Unreadable(f"damaged records in {where} near offset {start}") from error


def _heads(data: bytes) -> Iterator[_Head]:
    at, size = 0, len(data)
    while at + _HEADER.size <= size:
        base, length, _, magic, _, attributes, last, first_time, last_time, producer, _, _, count = _HEADER.unpack_from(
            data, at
        )
        end = at + _FIXED + length
        if magic != 2:
            raise Unreadable(f"message format {magic}")
        if end < at + _HEADER.size or min(base, last, count) < 0:
            raise Unreadable("a damaged batch")
        if end > size:  # a fetch may end within a batch
            return
        yield _Head(base, base + last, attributes, first_time, last_time, producer, count, at + _HEADER.size, end)
        at = end


def _kept(data: bytes, heads: Sequence[_Head], aborted: list[Aborted]) -> Iterator[_Head]:
    """Without markers, and without the records of transactions that were given up."""
    given_up: set[int] = set()
    for head in heads:
        while aborted and aborted[0].first <= head.last:
            given_up.add(aborted.pop(0).producer)
        if head.attributes & _CONTROL:
            if head.count and _marker(data, head) == _ABORT_MARKER:
                given_up.discard(head.producer)
        elif not (head.attributes & _TRANSACTIONAL and head.producer in given_up):
            yield head


def _marker(data: bytes, head: _Head) -> int:
    """The kind of a control record: the second number of its key."""
    try:
        at = decode_one(data, head.start)[1] + 1
        for _ in range(3):  # time, offset, length of the key
            _, at = decode_one(data, at)
    except IndexError as error:
        raise Unreadable("a damaged marker of a transaction") from error
    return int.from_bytes(data[at + 2 : at + 4], "big")


def _read(
    data: bytes, heads: Sequence[_Head], where: TopicPartition, start: int, end: int, needed: Collection[str]
) -> pa.Table:
    if any(head.attributes & _CODEC for head in heads):
        data, heads = _unpacked(data, heads)
    places: list[int] = []
    for head in heads:
        found = starts(data, head.start, head.end)
        if len(found) != head.count:
            raise Unreadable(f"{len(found)} records where {head.count} should be")
        places += found
    records = _Records(data, np.array(places, np.int64), heads)
    if heads and (heads[0].base < start or heads[-1].last >= end):
        records = records.within(start, end)
    return records.table(where, needed)


def _unpacked(data: bytes, heads: Sequence[_Head]) -> tuple[bytes, list[_Head]]:
    """The same without compression, all in one piece."""
    parts: list[bytes] = []
    moved: list[_Head] = []
    at = 0
    for head in heads:
        try:
            part = decompress(head.attributes & _CODEC, data[head.start : head.end])
        except ValueError as error:
            raise Unreadable(f"records that cannot be decompressed: {error}") from error
        parts.append(part)
        moved.append(replace(head, start=at, end=at + len(part)))
        at += len(part)
    return b"".join(parts), moved


class _Records:
    """Where everything is in the bytes, by columns."""

    def __init__(self, data: bytes, places: Longs, heads: Sequence[_Head]) -> None:
        self._data = data
        counts = [head.count for head in heads]
        numbers = np.frombuffer(data, np.uint8)
        length, at = decode(numbers, places)
        self._end = at + length
        times, at = decode(numbers, at + 1)  # after a byte of attributes, of which there are none
        deltas, at = decode(numbers, at)
        self._key_length, self._key = decode(numbers, at)
        self._value_length, self._value = decode(numbers, self._key + np.maximum(self._key_length, 0))
        self._after = self._value + np.maximum(self._value_length, 0)

        def each(values: Iterable[int]) -> Longs:
            return np.repeat(np.fromiter(values, np.int64), counts)

        # Arrow and numpy are told below where to look: nothing may lead out of its record.
        fits = (self._key_length >= -1) & (self._value_length >= -1) & (deltas >= 0)
        fits &= (self._key_length <= length) & (self._value_length <= length) & (self._after < self._end)
        if not (fits & (deltas <= each(head.last - head.base for head in heads))).all():
            raise Unreadable("a damaged record")
        self._append = each(head.attributes & _APPEND_TIME for head in heads) > 0
        given = each(head.base_timestamp for head in heads) + times
        self._time = np.where(self._append, each(head.max_timestamp for head in heads), given)
        self.offsets = each(head.base for head in heads) + deltas

    def within(self, start: int, end: int) -> _Records:
        kept = (self.offsets >= start) & (self.offsets < end)
        if kept.all():
            return self
        part = object.__new__(_Records)
        part._data = self._data
        for name in ("_key_length", "_key", "_value_length", "_value", "_after", "_end", "_append", "_time", "offsets"):
            setattr(part, name, getattr(self, name)[kept])
        return part

    def table(self, where: TopicPartition, needed: Collection[str]) -> pa.Table:
        count = len(self.offsets)
        columns = {
            "topic": lambda: pa.repeat(pa.scalar(where.topic, pa.string()), count),
            "partition": lambda: pa.repeat(pa.scalar(where.partition, pa.int32()), count),
            "offset": lambda: pa.array(self.offsets),
            "timestamp": lambda: pa.array(self._time, mask=self._time < 0),
            "timestamp_type": self._time_types,
            "key": lambda: self._slices(self._key, self._key_length),
            "value": lambda: self._slices(self._value, self._value_length),
            "headers": self._headers,
        }
        made = {name: make() for name, make in columns.items() if name in needed}
        return pa.table(made)

    def _slices(self, at: Longs, length: Longs) -> pa.Array:
        """These pieces of the bytes. Arrow is told of all of them and of the gaps between, and takes every second."""
        count = len(at)
        edges = np.empty(2 * count + 1, np.int64)
        edges[0:-1:2] = at
        edges[1::2] = at + np.maximum(length, 0)
        edges[-1] = len(self._data)
        if len(self._data) < 2**31:
            kind, edges = pa.binary(), edges.astype(np.int32)
        else:
            kind = pa.large_binary()
        pieces = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(self._data)])
        null = length < 0
        chosen = pa.array(np.arange(0, 2 * count, 2), mask=null if null.any() else None)
        return pieces.take(chosen).cast(pa.binary())

    def _time_types(self) -> pa.Array:
        names = pa.array(["CreateTime", "LogAppendTime"])
        return names.take(pa.array(self._append.astype(np.int8)))

    def _headers(self) -> pa.Array:
        counts, at = decode(np.frombuffer(self._data, np.uint8), self._after)
        if not counts.any():
            return pa.nulls(len(counts), _HEADERS)
        found = zip(counts.tolist(), at.tolist(), self._end.tolist(), strict=True)
        return pa.array([_headers(self._data, *each) if each[0] else None for each in found], _HEADERS)


def _headers(data: bytes, count: int, at: int, end: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(count):
        length, start = decode_one(data, at)
        size, value = decode_one(data, start + length)
        at = value + max(size, 0)
        if length < 0 or at > end:
            break
        key = data[start : start + length].decode(errors="replace")
        found.append({"key": key, "value": None if size < 0 else data[value:at]})
    if len(found) != count or at != end:
        raise IndexError("headers do not end where they should")
    return found
