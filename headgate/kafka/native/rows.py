"""Rows of one topic on their way into a producer's queue: whole columns at once where that is possible."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from headgate.kafka.native import calls as native
from headgate.kafka.native.calls import Message
from headgate.kafka.native.columns import Arguments, column, places

if TYPE_CHECKING:
    import pyarrow as pa

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
    """Without timestamps and headers: the call for whole columns takes none. One call for the rows of a partition:
    told the partition row by row, librdkafka forgets to let go of a row whose partition is not there, and waits for it
    for ever after."""

    def __init__(self, topic: str, rows: pa.RecordBatch, first: int) -> None:
        self._topic = topic
        self._rows = rows  # holds the buffers that the messages point into
        messages = np.zeros(rows.num_rows, native.MESSAGE)
        messages["payload"], messages["len"] = places(rows.column("value"))
        messages["private"] = np.arange(first, first + rows.num_rows)
        key = column(rows, "key")
        if key.null_count < rows.num_rows:
            messages["key"], messages["key_len"] = places(key)
        self._runs: deque[Any] = deque(_by_partition(messages, column(rows, "partition")))

    @property
    def left(self) -> int:
        return sum(len(run) for run in self._runs)

    def push(self, producer: int, topic: int) -> list[Message]:
        refused: list[Message] = []
        while self._runs:
            left = _push(topic, self._runs.popleft())
            refused += (native.row_of(message, self._topic) for message in left[left["err"] != QUEUE_FULL])
            full = left[left["err"] == QUEUE_FULL]
            if len(full):  # comes again, in its order
                full["err"] = 0
                self._runs.appendleft(full)
                break
        return refused


def _push(topic: int, run: Any) -> Any:
    """Hands over rows of one partition; returns those that were not taken."""
    produce, partition = native.library().rd_kafka_produce_batch, int(run["partition"][0])
    sent = produce(topic, partition, native.COPY, run.ctypes.data, len(run))
    return run[:0] if sent == len(run) else run[run["err"] != 0]


def _by_partition(messages: Any, partition: pa.Array) -> list[Any]:
    """Rows for the same partition together. The order within a partition is kept: where some rows leave theirs to the
    library, nobody knows which that will be, and none is moved."""
    if partition.null_count == len(messages):
        messages["partition"] = native.ANY_PARTITION
        return [messages] if len(messages) else []
    messages["partition"] = partition.fill_null(native.ANY_PARTITION).to_numpy(zero_copy_only=False)
    if not partition.null_count:
        messages = messages[np.argsort(messages["partition"], kind="stable")]
    return list(np.split(messages, np.flatnonzero(np.diff(messages["partition"])) + 1))


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
