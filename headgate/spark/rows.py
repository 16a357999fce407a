"""Rows of one topic on their way into a producer's queue: whole columns at once where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from headgate.spark import librdkafka as native
from headgate.spark.columns import Arguments, column, places
from headgate.spark.librdkafka import Message

if TYPE_CHECKING:
    import pyarrow as pa

SLICE: Final = 10_000
"""Rows that go together: between two of these, failures are looked at."""
QUEUE_FULL: Final = -184


class Rows(Protocol):
    @property
    def left(self) -> int:
        """How many have found no room yet."""

    def push(self, producer: int, topic: int) -> list[Message]:
        """Hands over as many as there is room for, in order; what the library does not take at all is returned."""


def rows_of(topic: str, rows: pa.RecordBatch, first: int) -> Rows:
    """Rows of one topic, numbered from `first`."""
    plain = all(column(rows, name).null_count == rows.num_rows for name in ("timestamp", "headers"))
    return _Columns(topic, rows, first) if plain else _Singles(topic, rows, first)


class _Columns:
    """Without timestamps and headers: the call for whole columns takes none."""

    def __init__(self, topic: str, rows: pa.RecordBatch, first: int) -> None:
        self._topic = topic
        self._rows = rows  # holds the buffers that the messages point into
        self._flags = native.COPY
        messages = np.zeros(rows.num_rows, native.MESSAGE)
        messages["payload"], messages["len"] = places(rows.column("value"))
        messages["private"] = np.arange(first, first + rows.num_rows)
        key = column(rows, "key")
        if key.null_count < rows.num_rows:
            messages["key"], messages["key_len"] = places(key)
        partition = column(rows, "partition")
        if partition.null_count < rows.num_rows:
            messages["partition"] = partition.fill_null(native.ANY_PARTITION).to_numpy(zero_copy_only=False)
            self._flags |= native.PARTITIONS
        self._messages: Any = messages

    @property
    def left(self) -> int:
        return len(self._messages)

    def push(self, producer: int, topic: int) -> list[Message]:
        messages = self._messages
        produce = native.library().rd_kafka_produce_batch
        sent = produce(topic, native.ANY_PARTITION, self._flags, messages.ctypes.data, len(messages))
        if sent == len(messages):
            self._messages = messages[:0]
            return []
        left = messages[messages["err"] != 0]
        refused = [native.row_of(message, self._topic) for message in left[left["err"] != QUEUE_FULL]]
        # The rest comes again in its order.
        self._messages = left[left["err"] == QUEUE_FULL]
        self._messages["err"] = 0
        return refused


class _Singles:
    """With timestamps or headers: one call for each."""

    def __init__(self, topic: str, rows: pa.RecordBatch, first: int) -> None:
        self._topic = topic
        self._rows = rows
        self._first = first
        others = (column(rows, name).to_pylist() for name in ("partition", "timestamp", "headers"))
        addressed = (*places(rows.column("value")), *places(column(rows, "key")))
        self._columns = [*(each.tolist() for each in addressed), *others]
        self._next = 0

    @property
    def left(self) -> int:
        return int(self._rows.num_rows) - self._next

    def push(self, producer: int, topic: int) -> list[Message]:
        arguments = Arguments(topic)
        refused: list[Message] = []
        left = zip(*(each[self._next :] for each in self._columns), strict=True)
        for row, (value, size, key, key_size, partition, timestamp, structs) in enumerate(left, self._next):
            headers = [(each["key"], each["value"]) for each in structs] if structs else []
            number = self._first + row
            code = native.produce(
                producer, arguments.set((value, size), (key, key_size), partition, timestamp, headers, number)
            )
            if code == QUEUE_FULL:
                return refused
            self._next = row + 1
            if code:
                where = native.ANY_PARTITION if partition is None else partition
                bare = native.copied(key, key_size), native.copied(value, size)
                refused.append(Message(code, number, self._topic, where, *bare, tuple(headers), timestamp))
        return refused
