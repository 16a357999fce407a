"""SourceTask and SinkTask: where a connector's work is done, in the worker, one thread per task.

A source task polls records, or columns when it has many. A sink task takes records, or columns (`TableSinkTask`), or
the Spark DataFrame itself (`FrameSinkTask`), which it writes from the executors. Splits, parts of a source that
executors read for themselves, will be a third thing that `poll` may return.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.api.context import SinkTaskContext, SourceTaskContext, TopicPartition
from headgate.api.plugin import Plugin
from headgate.api.record import SinkRecord, SourceRecord
from headgate.api.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """Many records as columns. They are committed together: the offset is the place to go on after the last row."""

    topic: str
    table: pa.Table
    """Column `value`; and where needed `key`, `partition` (int32), `timestamp` (ms, int64; without it, the time at
    which a record is sent, which costs least)."""
    source_partition: Mapping[str, Any] | None
    source_offset: Mapping[str, Any] | None
    value_schema: Schema | None = None
    key_schema: Schema | None = None


class Task(Plugin, ABC):
    """Both kinds. All methods are called from the task's own thread, unless they say otherwise."""

    def start(self, config: Mapping[str, str]) -> None:
        """Called once with the task configuration, before any record; open what you need here."""

    def stop(self) -> None:
        """Close what `start` opened. Called once, also after a failure."""


class SourceTask(Task):
    context: SourceTaskContext
    """Set before `start`."""

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | SourceTable | None:
        """The next records; None or nothing when there are none now.

        May block for about a second to wait for data, but returns soon after `stop_requested` was called.
        RetriableError means: nothing this time. Anything else raised fails the task."""

    def commit(self) -> None:
        """The offsets of all that was polled and acknowledged so far have been stored. Called from another thread."""

    def commit_record(self, record: SourceRecord) -> None:
        """Kafka has this record, or it was dropped by a transform or left out as bad. Called from another thread, never
        for rows of a table."""

    def stop_requested(self) -> None:
        """Called from another thread when the task shall end: wake up a blocked `poll`."""


class _SinkBase(Task):
    context: SinkTaskContext
    """Set before `start`."""

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are now this task's; their records follow."""

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are no longer this task's."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make everything put so far durable: `offsets` are about to be committed."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets that may be committed, given those put so far; an empty mapping commits nothing."""
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


class TableSinkTask(_SinkBase):
    """Takes columns: `topic`, `partition`, `offset`, `timestamp`, `key`, `value`, of which only `columns` are sent."""

    columns: ClassVar[tuple[str, ...]] = ("value",)
    form: ClassVar[Form] = Form.TEXT
    """How keys and values, which Arrow has no one type for, are written into their columns: as strings."""

    @abstractmethod
    def put(self, table: pa.Table) -> None: ...


class FrameSinkTask(_SinkBase):
    """Takes the Spark DataFrame of a batch, with the columns of TableSinkTask, and writes it from the executors."""

    columns: ClassVar[tuple[str, ...]] = ("topic", "partition", "offset", "timestamp", "key", "value")
    form: ClassVar[Form] = Form.JSON

    @abstractmethod
    def put(self, frame: DataFrame) -> None: ...
