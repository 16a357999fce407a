"""SourceTask and SinkTask: where a connector's work is done, in the worker, one thread per task.

A source task polls records, or columns when it has many. A sink task takes records, or columns (`TableSinkTask`), or
the Spark DataFrame itself (`FrameSinkTask`), which it writes from the executors. The DataFrame of a source
(`SourceFrame`) is sent to Kafka from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.api.context import SinkTaskContext, SourceTaskContext, TopicPartition
from headgate.api.plugin import Plugin
from headgate.api.record import SinkRecord, SourceRecord
from headgate.api.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Consumed:
    """How far a consumer group of Kafka is with what a source has read."""

    offsets: Mapping[TopicPartition, int]
    """The next offset to read of each partition."""
    group_metadata: object
    """Of the consumer: what confluent_kafka's `consumer_group_metadata()` gives."""


@dataclass(frozen=True, slots=True)
class RowsFrom:
    """Rows of a table that came from one source partition."""

    end: int
    """They end before this row, and begin where those of the RowsFrom before it end."""
    source_partition: Mapping[str, Any]
    source_offset: Mapping[str, Any]
    """Where to go on after the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """Many records as columns. They are committed together: the offset is the place to go on after the last row. A
    table without rows only moves the offset."""

    topic: str
    table: pa.Table
    """Column `value`; and where needed `key`, `partition` (int32), `timestamp` (ms, int64; without it, the time at
    which a record is sent, which costs least), `headers` (lists of structs with `key` and `value`, text or bytes). Keys
    and values may be structs, lists and maps; with a schema, a column is of the type that `headgate.api.frame` has for
    it, or of one that can become it without a loss."""
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    value_schema: Schema | None = None
    key_schema: Schema | None = None
    places: Sequence[RowsFrom] = ()
    """Where rows came from when it was not one partition, or more shall be known of each than the last offset: for all
    rows, instead of `source_partition` and `source_offset`."""

    def __post_init__(self) -> None:
        ends = [each.end for each in self.places]
        if ends != sorted(ends) or (ends and ends[-1] != self.table.num_rows):
            raise ValueError(
                f"The places of a table must cover its {self.table.num_rows} rows in order, not end at {ends}"
            )

    def place(self, row: int) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """Partition and offset of a row; the offset is that of the rows that it came with."""
        if not self.places:
            return self.source_partition, self.source_offset
        found = self.places[bisect_right(self.places, row, key=attrgetter("end"))]
        return found.source_partition, found.source_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFrame:
    """Very many records, which the executors read, put through the pipeline and send to Kafka; only how many they were
    comes to the worker. At least once: executors that die, or a frame that is broken off, begin again. Rows stay in
    their order within a partition of the frame, and only there. To be polled only where `context.takes_frames`."""

    topic: str
    frame: Callable[[SparkSession], DataFrame]
    """Makes it. Called when all that was polled before is in Kafka, while the task's thread waits; and once more for
    each JVM that dies meanwhile."""
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    """Where to go on when Kafka has all of it."""
    value_schema: Schema | None = None
    key_schema: Schema | None = None
    records: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]] | None = None
    """On the executors: makes tables, with the columns of a SourceTable, of the batches of a partition. None: the frame
    has those columns already."""


class Task(Plugin, ABC):
    """Both kinds. All methods are called from the task's own thread, unless they say otherwise."""

    def start(self, config: Mapping[str, str]) -> None:
        """Called once with the task configuration, before any record; open what you need here."""

    def stop(self) -> None:
        """Close what `start` opened. Called once, also after a failure."""

    def stop_requested(self) -> None:
        """Called from another thread when the task shall end: wake up a blocked `poll`; or end what `put`, `open` or
        `pre_commit` wait for, which may raise RetriableError then."""


class SourceTask(Task):
    context: SourceTaskContext
    """Set before `start`."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | SourceTable | SourceFrame | None:
        """The next records; None or nothing when there are none now.

        May block for about a second to wait for data, but returns soon after `stop_requested` was called.
        RetriableError means: nothing this time. Anything else raised fails the task."""

    def commit(self) -> None:
        """The offsets of all that was polled and acknowledged so far have been stored. Called from another thread."""

    def commit_record(self, record: SourceRecord) -> None:
        """Kafka has this record, or it was dropped by a transform or left out as bad. Called from another thread, never
        for rows of a table."""

    def frame_failed(self, frame: SourceFrame, error: Exception) -> None:
        """Spark could not make or read the frame that was polled last. The default raises the error, which fails the
        task. Who returns is polled again, and gives what was in the frame in another way; some of it may be in Kafka
        already."""
        raise error

    def consumed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Consumed | None:
        """Of a task that reads the very cluster that its records go to, as a consumer group: these source offsets are
        about to be committed with a transaction; what the group shall commit in it. None, the default: nothing. Called
        from another thread, with exactly-once delivery only."""
        return None


class _SinkBase(Task):
    context: SinkTaskContext
    """Set before `start`."""

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are now this task's; their records follow, from the group's offsets on, or from those that
        the task sets here with `context.offset`, because it keeps them in its own system."""

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are no longer this task's. What was put and not let pass by `pre_commit` comes again, to
        whoever opens them next."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make everything put so far durable: `offsets` are about to be committed."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed, given those put so far; an empty mapping commits nothing.

        All records of a partition that stand before its offset have been put or dropped. Some that do not may have been
        put too, after a failure: they come again. If this raises, nothing is committed, and what was put since the last
        time comes again: from the offsets that the task sets here with `context.offset`, else from those that it let
        pass last. The third time in a row without a commit in between fails the task, unless it is RetriableError."""
        self.flush(offsets)
        return offsets


class SinkTask(_SinkBase):
    """Takes records."""

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write these records; may be called with none. RetriableError: the same records come again."""


class Form(Enum):
    """How a value is shown in a column."""

    TEXT = "text"
    """As StringConverter would write it."""
    JSON = "json"
    """As JsonConverter without schemas would write it."""
    TYPED = "typed"
    """As it is: structs, lists, numbers, by the table of `headgate.api.frame`. All rows of a table have one schema, or,
    without one, one shape: where they change, another table begins."""


class TableSinkTask(_SinkBase):
    """Takes columns: `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, `original_topic`,
    `original_partition`, `original_offset`, of which only `columns` are sent. The original ones stay what Kafka says,
    whatever transforms do. With Form.TYPED there is also `original_headers`: lists of structs with `key`, a text, and
    `value`, bytes; null where a record has none."""

    columns: ClassVar[tuple[str, ...]] = ("value",)
    form: ClassVar[Form] = Form.TEXT
    """How keys and values, which Arrow has no one type for, are written into their columns: as text, unless TYPED."""
    key_schema: Schema | None = None
    """Of the table that `put` is given; with Form.TYPED only."""
    value_schema: Schema | None = None

    @abstractmethod
    def put(self, table: pa.Table) -> None: ...


class FrameSinkTask(_SinkBase):
    """Takes the Spark DataFrame of a batch, with the columns of TableSinkTask, and writes it from the executors."""

    columns: ClassVar[tuple[str, ...]] = ("topic", "partition", "offset", "timestamp", "key", "value")
    form: ClassVar[Form] = Form.JSON
    """With Form.TYPED, keys and values are columns of their own types: `frame.select("value.*")`."""
    key_schema: Schema | None = None
    """Of the frame that `put` is given; with Form.TYPED only."""
    value_schema: Schema | None = None

    @abstractmethod
    def put(self, frame: DataFrame) -> None: ...
