"""StatementRows: the records of a blob as a statement will see them; and origins of rows that do not name theirs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from headgate.api import HeaderConverter, Record, SinkRecord
from headgate.api.frame import HEADERS
from headgate.pipeline.failure import Stage
from headgate.pipeline.sql.column import Side, column
from headgate.pipeline.sql.types import INSTANT
from headgate.pipeline.tolerance import attempt

ORIGINAL: Final = ("original_topic", "original_partition", "timestamp_type")
"""Columns that a statement does not see: what Kafka says, whatever transforms did to the topic."""

_SIDES: Final = b"headgate.sides"
_MS: Final = pa.timestamp("ms", "UTC")
_NO_TIMESTAMP: Final = -1


class Row(NamedTuple):
    record: Record
    headers: list[dict[str, Any]] | None
    """As the header converter writes them."""


@dataclass(frozen=True, slots=True)
class StatementRows:
    """Of one chain, whose header converter it uses."""

    converter: HeaderConverter

    def row(self, record: Record) -> Row:
        """Raises StageFailed."""
        if not record.headers:
            return Row(record, None)
        convert, cls = self.converter.from_connect_header, type(self.converter)
        return Row(
            record,
            [
                {
                    "key": header.key,
                    "value": attempt(
                        Stage.HEADER_CONVERTER, cls, convert, record.topic, header.key, header.schema, header.value
                    ),
                }
                for header in record.headers
            ],
        )

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """With what is known of keys and values beside it. Raises DataError."""
        records = [row.record for row in rows]
        key, key_side = column([each.key_schema for each in records], [each.key for each in records])
        value, value_side = column([each.value_schema for each in records], [each.value for each in records])
        columns: dict[str, pa.Array] = {
            "topic": pa.array([each.topic for each in records], pa.string()),
            "partition": pa.array([each.partition for each in records], pa.int32()),
            "timestamp": pa.array([_ms(each) for each in records], pa.int64()).cast(_MS).cast(INSTANT),
            "key": key,
            "value": value,
            "headers": pa.array([row.headers for row in rows], HEADERS),
        }
        sinks = [each for each in records if isinstance(each, SinkRecord)]
        if sinks:
            columns["offset"] = pa.array([each.offset for each in sinks], pa.int64())
            columns["original_topic"] = pa.array([each.original_topic for each in sinks], pa.string())
            columns["original_partition"] = pa.array([each.original_partition for each in sinks], pa.int32())
            columns["timestamp_type"] = pa.array([each.timestamp_type for each in sinks], pa.string())
        return pa.table(columns).replace_schema_metadata({_SIDES: pickle.dumps((key_side, value_side))})


def _ms(record: Record) -> int | None:
    return None if record.timestamp == _NO_TIMESTAMP else record.timestamp


def sides_of(tables: Iterable[pa.Table]) -> tuple[Side, Side]:
    """What is known of the keys and of the values of all these tables of StatementRows."""
    key, value = Side(), Side()
    for table in tables:
        one, other = pickle.loads(table.schema.metadata[_SIDES])  # noqa: S301 - StatementRows wrote it, in a result
        key, value = key.joined(one), value.joined(other)
    return key, value


class LastRecord(NamedTuple):
    """The last record of a partition, by what Kafka calls it."""

    topic: str | None
    partition: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Origins:
    """Of the batch that a statement was run on."""

    topic: str
    """Of the last record, as the next ones."""
    partition: int | None = None
    timestamp_type: str | None = None
    timestamp: int | None = None
    """The highest, in ms."""
    places: Mapping[tuple[str, int | None], LastRecord] = field(default_factory=dict)
    """Of a sink: by the topic and partition that transforms left."""
    key: Side = field(default_factory=Side)
    value: Side = field(default_factory=Side)

    def place(self, topic: str, partition: int | None) -> LastRecord:
        """Where a row of this topic and partition comes from; the end of the batch, where nobody knows."""
        found = self.places.get((topic, partition)) or self.places.get((self.topic, self.partition))
        return found or LastRecord(topic, partition, -1)
