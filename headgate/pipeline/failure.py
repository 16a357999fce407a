"""Failure: a record that could not be converted, transformed or put, as data that travels to the worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from headgate.api import Schema, SinkRecord, SourceRecord
from headgate.api.plugin import public_name
from headgate.model import TaskId
from headgate.pipeline.fitting import described, fitting
from headgate.pipeline.text import text

RawHeaders: TypeAlias = "tuple[tuple[str, bytes | None], ...]"


class Stage(Enum):
    """What was done to the record."""

    TASK_POLL = "TASK_POLL"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TASK_PUT = "TASK_PUT"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


_PARTS: Final = {Stage.KEY_CONVERTER: "key", Stage.VALUE_CONVERTER: "value"}


class ConsumedRecord(NamedTuple):
    """A record as it came from Kafka: its place, and its bytes where the batch had them."""

    topic: str
    partition: int | None
    offset: int
    timestamp: int | None = None
    timestamp_type: str | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: RawHeaders = ()

    @classmethod
    def of(cls, row: Sequence[Any]) -> ConsumedRecord:
        """From a row of the CONSUMED columns."""
        headers = tuple((each["key"], each["value"]) for each in row[-1] or ())
        return cls._make((*row[:-1], headers))

    def __str__(self) -> str:
        # Kafka names no time for records of its oldest format.
        when = f", timestamp={self.timestamp}, timestampType={self.timestamp_type}" if self.timestamp_type else ""
        return f"{{topic='{self.topic}', partition={self.partition}, offset={self.offset}{when}}}"


class PolledRecord(NamedTuple):
    """A record as a source task gave it: where it came from, and its bytes where somebody wants them."""

    topic: str
    source_partition: Mapping[str, Any] | None
    source_offset: Mapping[str, Any] | None
    timestamp: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: RawHeaders = ()
    shown: str = ""
    """All of it as text, where the log wants it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Plain values only: whoever reads it need not have the plugin's classes."""

    stage: Stage
    plugin: str
    """The class that failed."""
    error: str
    """The class of what it raised."""
    message: str | None
    trace: tuple[str, ...]
    """The traceback in pieces; empty where nobody wants it."""
    record: ConsumedRecord | PolledRecord
    row: int = 0
    """Of the batch that the record was in."""
    attempts: int = 1

    def report(self, task: TaskId, with_record: bool) -> str:
        """The line for the log: as Apache's LogReporter writes it, and what is wrong; bytes only with the record."""
        where = ""
        if with_record:
            where = (
                f", where consumed record is {self.record}"
                if isinstance(self.record, ConsumedRecord)
                else f", where source record is = {self.record.shown}"
            )
        return (
            f"Error encountered in task {task}. Executing stage '{self.stage.value}' with class '{self.plugin}'{where}."
            f" {self.said}{f'; {self.unread}' if with_record and self.unread else ''}"
        )

    @property
    def said(self) -> str:
        """In one line."""
        return " ".join(f"{self.error.rpartition('.')[2]}: {self.message or ''}".split()).removesuffix(":")

    @property
    def unread(self) -> str | None:
        """Of bytes that a converter could not read: where they are, what they look like, and who would read them."""
        part, record = _PARTS.get(self.stage), self.record
        data: bytes | None = getattr(record, part) if part and isinstance(record, ConsumedRecord) else None
        if data is None or part is None or isinstance(record, PolledRecord):
            return None
        place = f"the {part} of topic {record.topic}, partition {record.partition}, offset {record.offset}"
        guess = fitting(part, data, self.plugin, self.message or "")
        return f"{place} has {described(data)}{f': {guess}' if guess else ''}"

    @property
    def where(self) -> str:
        """The record by its place, for messages."""
        record = self.record
        if isinstance(record, ConsumedRecord):
            place = f"{{topic='{record.topic}', partition={record.partition}, offset={record.offset}}}"
            return f"consumed record is {place}"
        return (
            f"source record is {{topic='{record.topic}', sourcePartition={_shown(record.source_partition)}, "
            f"sourceOffset={_shown(record.source_offset)}}}"
        )


@dataclass(frozen=True, kw_only=True)
class InternalSinkRecord(SinkRecord):
    """A record that remembers the bytes it was made of, for the day when the sink task reports it as bad."""

    consumed: Sequence[Any] = ()
    """A row of the CONSUMED columns."""

    @classmethod
    def of(cls, record: SinkRecord, row: Sequence[Any]) -> InternalSinkRecord:
        return cls.unchecked({**record.__dict__, "consumed": row})


def class_name(cls: type) -> str:
    # One object for all failures of a batch: so it also travels once.
    return sys.intern(f"{cls.__module__}.{cls.__qualname__}")


def plugin_name(cls: type) -> str:
    """As users know it."""
    return sys.intern(public_name(cls))


def message_of(error: BaseException) -> str | None:
    try:
        return str(error) or None
    except Exception:
        return "<its message cannot be shown>"


def raw_bytes(convert: Callable[[Schema | None, Any], bytes | None], schema: Schema | None, value: Any) -> bytes | None:
    """As the converter writes it; if it cannot, and that may be why the record failed, then as it is or as its text."""
    try:
        return convert(schema, value)
    except Exception:
        if value is None or isinstance(value, bytes):
            return value
    return _any(value).encode(errors="backslashreplace")


def shown_record(record: SourceRecord) -> str:
    """As Apache's SourceRecord shows itself."""
    headers = ", ".join(
        f"ConnectHeader(key={each.key}, value={_any(each.value)}, schema={_any(each.schema)})"
        for each in record.headers
    )
    came_from = f"sourcePartition={_shown(record.source_partition)}, sourceOffset={_shown(record.source_offset)}"
    return (
        f"SourceRecord{{{came_from}}} "
        f"ConnectRecord{{topic='{record.topic}', kafkaPartition={_any(record.partition)}, key={_any(record.key)}, "
        f"keySchema={_any(record.key_schema)}, value={_any(record.value)}, valueSchema={_any(record.value_schema)}, "
        f"timestamp={_any(record.timestamp)}, headers=ConnectHeaders(headers={f'[{headers}]' if headers else ''})}}"
    )


def _any(value: Any) -> str:
    try:
        return "null" if value is None else text(value)
    except Exception:  # a value of a class that only the plugin knows
        return repr(value)


def _shown(position: Mapping[str, Any] | None) -> str:
    return "null" if position is None else f"{{{', '.join(f'{name}={value}' for name, value in position.items())}}}"
