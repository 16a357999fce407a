"""Arrow columns as librdkafka's calls take them: pointers and lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_char_p, c_void_p, cast
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headgate.kafka.native import calls as native

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = np.ndarray[Any, np.dtype[np.uint64]]

SLICE: Final = 10_000
"""Rows that go together: between two of these, failures are looked at."""


def column(rows: pa.RecordBatch, name: str) -> pa.Array:
    """A column that is left out holds nothing."""
    if name in rows.schema.names:
        return rows.column(name)
    import pyarrow as pa

    return pa.nulls(rows.num_rows, pa.null())


def runs(topics: pa.Array) -> list[tuple[int, int, str]]:
    """Neighbouring rows of one topic: where they begin, how many, which topic. Usually it is one."""
    first = topics[0].as_py() if len(topics) else ""
    if len(topics.unique()) <= 1:
        return [(0, len(topics), first)] if len(topics) else []
    names = topics.to_pylist()
    starts = [0, *(index for index in range(1, len(names)) if names[index] != names[index - 1]), len(names)]
    return [(start, end - start, names[start]) for start, end in itertools.pairwise(starts)]


def places(values: pa.Array) -> tuple[Numbers, Numbers]:
    """Where each value lies in the column's own buffer, and its length; null is nowhere."""
    count = len(values)
    if values.null_count == count:
        return np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    _, offsets, data = values.buffers()
    at = np.frombuffer(offsets, np.int32)[values.offset : values.offset + count + 1].astype(np.uint64)
    # The buffer of a column of empty values may be nowhere, but empty is not null: it lies somewhere.
    base = data.address if data is not None and data.size else offsets.address
    found, sizes = at[:-1] + np.uint64(base), np.diff(at)
    if values.null_count:
        present = values.is_valid().to_numpy(zero_copy_only=False)
        found, sizes = np.where(present, found, np.uint64(0)), np.where(present, sizes, np.uint64(0))
    return found, sizes


def fitting(rows: pa.RecordBatch, limit: int) -> int:
    """How many of the first rows have no more than so many bytes together; at least one."""
    sizes = places(rows.column("value"))[1] + places(column(rows, "key"))[1] + np.uint64(native.RECORD_OVERHEAD)
    headers = column(rows, "headers")
    if headers.null_count < len(headers):
        sizes = sizes + np.fromiter(map(_size, headers.to_pylist()), np.uint64)
    return max(1, int(np.searchsorted(np.cumsum(sizes), limit, side="right")))


def _size(headers: Sequence[dict[str, Any]] | None) -> int:
    each_size = (len(each["key"].encode()) + len(each["value"] or b"") for each in headers or ())
    return sum(native.HEADER_OVERHEAD + size for size in each_size)


def slices(table: pa.Table, limit: Callable[[str], int | None]) -> Iterator[tuple[str, pa.RecordBatch, bool]]:
    """The rows in their order, cut so that each piece is of one topic, and of no more bytes than this topic may have
    at once, which is asked before each piece; and whether there is such a limit."""
    for batch in table.to_batches():
        for first, count, topic in runs(batch.column("topic")):
            start, end = first, first + count
            while start < end:
                rows = batch.slice(start, min(SLICE, end - start))
                most = limit(topic)
                if most is not None:
                    rows = rows.slice(0, fitting(rows, most))
                yield topic, rows, most is not None
                start += rows.num_rows


_FIXED: Final = (native.RKT, native.FLAGS, native.VALUE, native.KEY, native.PARTITION, native.TIMESTAMP, native.OPAQUE)


class Arguments:
    """Of `rd_kafka_produceva`, for many records of one topic: set, then called with, then set again."""

    def __init__(self, topic: int) -> None:
        self._fixed = (native.Argument * len(_FIXED))()
        for argument, kind in zip(self._fixed, _FIXED, strict=True):
            argument.vtype = kind
        self._fixed[0].u.rkt = topic
        self._fixed[1].u.i = native.COPY
        self._value, self._key, self._partition, self._timestamp, self._number = (each.u for each in self._fixed[2:])
        self.array: Any = self._fixed
        self.count = len(_FIXED)

    def set(
        self,
        value: tuple[int, int],
        key: tuple[int, int],
        partition: int | None,
        timestamp: int | None,
        headers: Sequence[tuple[str, bytes | None]],
        number: int,
    ) -> Arguments:
        """Value and key as address and length; what is at 0 is null."""
        self._value.mem.ptr, self._value.mem.size = value[0] or None, value[1]
        self._key.mem.ptr, self._key.mem.size = key[0] or None, key[1]
        self._partition.i32 = native.ANY_PARTITION if partition is None else partition
        self._timestamp.i64 = timestamp or 0
        self._number.ptr = number
        self.array, self.count = (self._fixed, len(_FIXED)) if not headers else self._with(headers)
        return self

    def _with(self, headers: Sequence[tuple[str, bytes | None]]) -> tuple[Any, int]:
        count = len(_FIXED) + len(headers)
        extended = (native.Argument * count)(*self._fixed)
        for index, (name, data) in enumerate(headers, len(_FIXED)):
            argument = extended[index]
            argument.vtype = native.HEADER
            argument.u.header.name = name.encode()
            argument.u.header.val = None if data is None else address(data)
            argument.u.header.size = -1 if data is None else len(data)
        return extended, count


def address(data: bytes) -> int:
    """For as long as somebody holds the bytes."""
    return cast(c_char_p(data), c_void_p).value or 0
