"""Selected: what a statement gave, as records again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.types as kinds

from headgate.api import ConnectError, Header, HeaderConverter, Schema, SinkRecord, SourceRecord
from headgate.pipeline.sql.column import Side
from headgate.pipeline.sql.connect import schema_of, typed, untyped
from headgate.pipeline.sql.rows import Origins
from headgate.pipeline.sql.types import same, type_of

_Content: TypeAlias = "tuple[Schema | None, list[Any]]"

_OFFSET: Final = "offset"


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_null(kind))


def _are_headers(kind: pa.DataType) -> bool:
    if not kinds.is_list(kind) or not kinds.is_struct(kind.value_type):
        return bool(kinds.is_null(kind))
    found = {field.name: field.type for field in kind.value_type}
    return found.keys() == {"key", "value"} and all(_is_text(each) or _is_bytes(each) for each in found.values())


_KINDS: Final[Mapping[str, tuple[Callable[[pa.DataType], bool], str]]] = {
    "topic": (_is_text, "STRING"),
    "partition": (kinds.is_integer, "INT"),
    _OFFSET: (kinds.is_integer, "BIGINT"),
    "timestamp": (lambda kind: kinds.is_timestamp(kind) or kinds.is_integer(kind), "TIMESTAMP, or BIGINT for ms"),
    "headers": (_are_headers, "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
}
"""What the columns of a record must be, those without a type of their own left out."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns are which part of a record: those called as in `records` are what they are called. Without one
    called `value`, the value is made of all others."""

    own: Mapping[str, str]
    """By the parts of a record, the names of the columns."""
    fields: tuple[str, ...]
    """Those that make the value."""

    @classmethod
    def of(cls, schema: pa.Schema, sink: bool) -> Layout:
        """Raises ConnectError for columns that cannot be a record."""
        names: list[str] = schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConnectError(f"Two columns have the name {', '.join(twice)}: name them with AS")
        parts = {*_KINDS, "key", "value"} - (set() if sink else {_OFFSET})
        own = {name.lower(): name for name in names if name.lower() in parts}
        fields = tuple(name for name in names if name.lower() not in parts)
        if "value" in own and fields:
            raise ConnectError(
                f"Beside value, which is the whole value, there is no place for {', '.join(fields)}:"
                " put it into the value with struct(...) AS value"
            )
        if "value" not in own and not fields:
            raise ConnectError("No column makes the value; SELECT NULL AS value makes tombstones")
        for part, name in own.items():
            fits, wanted = _KINDS.get(part, (None, ""))
            kind = schema.field(name).type
            if fits is not None and not fits(kind) and not kinds.is_null(kind):
                raise ConnectError(f"Column {name} must be {wanted}, it is {kind}")
        return cls(own, fields)


class Selected:
    """The rows of a statement. Raises ConnectError when they cannot be records."""

    def __init__(self, table: pa.Table, origins: Origins, *, sink: bool) -> None:
        self._table = table
        self._origins = origins
        self._layout = Layout.of(table.schema, sink)

    def source_records(self, headers: HeaderConverter) -> list[SourceRecord]:
        records = zip(self._records(headers), self._column("partition"), strict=True)
        return [SourceRecord(**each, partition=partition) for each, partition in records]

    def sink_records(self, headers: HeaderConverter) -> list[SinkRecord]:
        origins, records = self._origins, []
        places = zip(self._column("partition"), self._column(_OFFSET), strict=True)
        for each, (partition, offset) in zip(self._records(headers), places, strict=True):
            partition = origins.partition if partition is None else partition
            place = origins.place(each["topic"], partition)
            offset = place.offset if offset is None else offset
            record = SinkRecord(
                **each,
                partition=partition,
                offset=offset,
                timestamp_type=origins.timestamp_type,
                original_topic=place.topic,
                original_partition=place.partition,
                original_offset=offset,
            )
            records.append(record)
        return records

    def check(self) -> None:
        """Raises ConnectError for a column whose type no record can have."""
        self._sides()

    def _records(self, headers: HeaderConverter) -> Iterator[dict[str, Any]]:
        (key_schema, keys), (value_schema, values) = self._sides()
        table = zip(self._topics(), self._timestamps(), keys, values, self._column("headers"), strict=True)
        for topic, timestamp, key, value, raw in table:
            yield {
                "topic": topic,
                "timestamp": timestamp,
                "key": key,
                "value": value,
                "key_schema": None if key is None else key_schema,
                "value_schema": None if value is None else value_schema,
                "headers": tuple(_header(headers, topic, each) for each in raw) if raw else (),
            }

    def _sides(self) -> tuple[_Content, _Content]:
        key, value = self._origins.key, self._origins.value
        return self._side("key", key, value), self._side("value", value, key)

    def _column(self, part: str) -> list[Any]:
        name = self._layout.own.get(part)
        found: list[Any] = [None] * self._table.num_rows if name is None else self._table.column(name).to_pylist()
        return found

    def _topics(self) -> list[str]:
        if "topic" not in self._layout.own:
            return [self._origins.topic] * self._table.num_rows
        topics = self._column("topic")
        if not all(topics):
            raise ConnectError("Column topic is NULL or empty in some row")
        return topics

    def _timestamps(self) -> list[int | None]:
        name = self._layout.own.get("timestamp")
        if name is None:
            return [self._origins.timestamp] * self._table.num_rows
        column = self._table.column(name)
        if kinds.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
        found: list[int | None] = column.cast(pa.int64()).to_pylist()
        return found

    def _side(self, part: str, side: Side, other: Side) -> _Content:
        """The schema, if there shall be one, and the keys or values. What has no precedent does as the other side."""
        with_schema = other.typed if side.typed is None else side.typed
        name = self._layout.own.get(part)
        if name is None and part == "key":
            return None, [None] * self._table.num_rows
        if name is not None:
            kind, items = self._table.schema.field(name).type, self._table.column(name).to_pylist()
        else:
            table = self._table.select(self._layout.fields)
            kind, items = pa.struct(list(table.schema)), table.to_pylist()
        if not with_schema:
            make, schema = untyped(kind, part), None
        else:
            before = side.schema
            if before is not None and same(type_of(before), kind):
                schema = before
            else:
                schema = replace(schema_of(kind, part), optional=False)
            make = typed(kind, schema)
        if make is None:
            return schema, items
        return schema, [None if item is None else make(item) for item in items]


def _header(converter: HeaderConverter, topic: str, raw: Mapping[str, Any]) -> Header:
    value = raw["value"]
    schema, made = converter.to_connect_header(topic, raw["key"], value.encode() if isinstance(value, str) else value)
    return Header(raw["key"], made, schema)
