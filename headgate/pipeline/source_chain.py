"""SourceChain: records or columns of a source task in, records for the producer out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError, Converter, DataError, Header, Schema, SchemaType, SourceRecord, Struct
from headgate.java.text import decode_utf8
from headgate.pipeline.batch import PRODUCED, Produced, numbered, produced, rows, text_column
from headgate.pipeline.columns.frame import joined
from headgate.pipeline.columns.shown import quoted
from headgate.pipeline.converters.byte_array import ByteArrayConverter
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.string import is_utf8
from headgate.pipeline.directed_chain import DirectedChain
from headgate.pipeline.failure import PolledRecord, Stage, shown_record
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.tolerance import StageFailed, Triage, attempt

Column: TypeAlias = "pa.Array | pa.ChunkedArray"

_NO_TIMESTAMP: Final = -1


class SourceChain(DirectedChain[SourceRecord]):
    """Transforms, then converters."""

    def records(self, records: Sequence[SourceRecord], triage: Triage | None = None) -> pa.Table:
        """PRODUCED rows of the records that no transform dropped. What fails is for `triage`; without one, raises
        ToleranceExceeded. Where a statement comes next, rows for it instead."""
        triage = triage or Triage(ErrorPolicy())
        if self.cut:
            return self._statement_rows(records, triage)
        return produced(self._converted(records, triage))

    def columns(
        self,
        topic: str,
        table: pa.Table,
        key_schema: Schema | None = None,
        value_schema: Schema | None = None,
        triage: Triage | None = None,
    ) -> pa.Table:
        """The same for a table, as SourceTable describes it."""
        if "value" not in table.column_names:
            raise ConnectError('The table of a source task has no column "value"')
        quick = self._quick(topic, table, key_schema, value_schema)
        if quick is not None:
            return quick
        return self.records(list(_records(topic, table, key_schema, value_schema)), triage)

    def _converted(self, records: Sequence[SourceRecord], triage: Triage) -> Iterator[Produced]:
        chain = self._chain
        key_class, value_class = type(chain.key), type(chain.value)
        to_key, to_value = chain.key.from_connect, chain.value.from_connect
        for row, origin in enumerate(records):
            try:
                record = chain.steps.apply(origin)
                if record is None:
                    continue
                topic = record.topic
                headers = self._headers(record.headers, topic) if record.headers else None
                key = attempt(Stage.KEY_CONVERTER, key_class, to_key, topic, record.key_schema, record.key)
                value = attempt(Stage.VALUE_CONVERTER, value_class, to_value, topic, record.value_schema, record.value)
            except StageFailed as failed:
                if not triage.goes_on(row, failed, partial(self._origin, origin)):
                    return
                continue
            yield Produced(row, topic, record.partition, key, value, _checked(record.timestamp), headers)

    def _headers(self, headers: Sequence[Header], topic: str) -> list[tuple[str, bytes | None]]:
        converter = self._chain.headers
        convert, cls = converter.from_connect_header, type(converter)
        return [
            (each.key, attempt(Stage.HEADER_CONVERTER, cls, convert, topic, each.key, each.schema, each.value))
            for each in headers
        ]

    def _origin(self, record: SourceRecord) -> PolledRecord:
        policy, topic = self.policy, record.topic
        shown = shown_record(record) if policy.log and policy.log_records else ""
        known = PolledRecord(topic, record.source_partition, record.source_offset, shown=shown)
        if not policy.dead_letter_topic:
            return known
        timestamp = None if record.timestamp == _NO_TIMESTAMP else record.timestamp
        key, value, headers = self._raw(topic, record)
        return known._replace(timestamp=timestamp, key=key, value=value, headers=headers)

    # --- columns without a record per row -----------------------------------------------------------------------------

    def _quick(
        self, topic: str, table: pa.Table, key_schema: Schema | None, value_schema: Schema | None
    ) -> pa.Table | None:
        """None when rows must be transformed, or looked at one by one to find out which is wrong."""
        names = set(table.column_names)
        timestamps = table.column("timestamp").cast(pa.int64()) if "timestamp" in names else None
        if self._chain.steps or (timestamps is not None and (pc.min(timestamps).as_py() or 0) < 0):
            return None
        count = table.num_rows
        try:
            value = _bytes_column(self._chain.value, topic, table.column("value"), value_schema)
            if "key" in names:
                key = _bytes_column(self._chain.key, topic, table.column("key"), key_schema)
            else:  # the same for every row
                key = pa.repeat(pa.scalar(self._chain.key.from_connect(topic, key_schema, None), pa.binary()), count)
        except Exception:
            return None
        partition = table.column("partition").cast(pa.int32()) if "partition" in names else pa.nulls(count, pa.int32())
        columns = {
            "row": numbered(count),
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
            "partition": partition,
            "key": key,
            "value": value,
            "timestamp": pa.nulls(count, pa.int64()) if timestamps is None else timestamps,
            "headers": pa.nulls(count, PRODUCED.field("headers").type),
        }
        return pa.Table.from_arrays([columns[name] for name in PRODUCED.names], schema=PRODUCED)


def _bytes_column(converter: Converter, topic: str, column: pa.ChunkedArray, schema: Schema | None) -> Column:
    """The column as the converter writes it, all at once where that needs no look at the values."""
    kind = column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if is_utf8(converter) and (is_text or is_bytes):
        return (column if is_text else text_column(column)).cast(pa.binary())
    if type(converter) is ByteArrayConverter and is_bytes and (schema is None or schema.type is SchemaType.BYTES):
        return column.cast(pa.binary())
    if type(converter) is JsonConverter and (is_text or (is_bytes and _is_string(schema))):
        return _json_column(converter, topic, column.cast(pa.string()) if is_text else text_column(column), schema)
    convert = converter.from_connect
    return pa.array([convert(topic, schema, _shaped(schema, item)) for item in column.to_pylist()], pa.binary())


def _json_column(converter: JsonConverter, topic: str, column: Column, schema: Schema | None) -> Column:
    """Text between what comes before and after it in every row. Raises whatever the converter does."""
    around = converter.from_connect(topic, schema, "") or b""
    head, _, tail = around.decode().rpartition('""')
    written = quoted(joined(column), head, tail).cast(pa.binary())
    null = converter.from_connect(topic, schema, None) if written.null_count else None
    return written if null is None else written.fill_null(pa.scalar(null, pa.binary()))


def _is_string(schema: Schema | None) -> bool:
    return schema is not None and schema.type is SchemaType.STRING


def _records(
    topic: str, table: pa.Table, key_schema: Schema | None, value_schema: Schema | None
) -> Iterator[SourceRecord]:
    now = int(time.time() * 1000)
    for key, value, timestamp, partition in rows(
        table, ("key", "value", "timestamp", "partition"), (None, None, now, None)
    ):
        yield SourceRecord(
            topic=topic,
            key=_shaped(key_schema, key),
            value=_shaped(value_schema, value),
            key_schema=key_schema,
            value_schema=value_schema,
            timestamp=timestamp,
            partition=partition,
        )


def _shaped(schema: Schema | None, item: Any) -> Any:
    """What Arrow calls a dict, a list of pairs or bytes, as the schema wants it."""
    if schema is None or item is None:
        return item
    if schema.type is SchemaType.STRING and isinstance(item, bytes):
        return decode_utf8(item)
    if schema.type is SchemaType.ARRAY:
        return [_shaped(schema.value_schema, each) for each in item]
    if schema.type is SchemaType.MAP:
        pairs = item.items() if isinstance(item, Mapping) else item
        return {_shaped(schema.key_schema, key): _shaped(schema.value_schema, value) for key, value in pairs}
    if schema.type is SchemaType.STRUCT and isinstance(item, Mapping):
        given = {member.name: _shaped(member.schema, item.get(member.name)) for member in schema.fields}
        return Struct(schema, {name: value for name, value in given.items() if value is not None})
    return item


def _checked(timestamp: int | None) -> int | None:
    if timestamp is None or timestamp == _NO_TIMESTAMP:
        return None
    if timestamp < 0:
        raise DataError(f"Invalid record timestamp {timestamp}")
    return timestamp
