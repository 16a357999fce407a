"""Rows: what a sink is given, as columns of a table; and the record that a row was, for those who are told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError, Schema, SchemaType, SinkRecord, Struct
from headgate.connectors.spark.sink.columns import Misfit
from headgate.connectors.spark.sink.config import HEADERS
from headgate.connectors.spark.sink.ddl import type_name

TOPIC: Final = "original_topic"
PARTITION: Final = "original_partition"
OFFSET: Final = "original_offset"
GIVEN: Final[tuple[str, ...]] = ("timestamp", "key", "value", TOPIC, PARTITION, OFFSET)
"""The columns that the task asks for."""

RAW_HEADERS: Final = "original_headers"
"""One more, if it is wanted."""

_METADATA: Final[Mapping[str, str]] = {
    "_topic": TOPIC,
    "_partition": PARTITION,
    "_offset": OFFSET,
    "_key": "key",
    HEADERS: RAW_HEADERS,
}
_TIMESTAMP: Final = "_timestamp"


def check_origin(table: pa.Table) -> None:
    """Raises ConnectError."""
    if any(table.column(name).null_count for name in (TOPIC, PARTITION, OFFSET)):
        raise ConnectError(
            "A record does not say which one of Kafka it was: a transform made it anew instead of changing it"
        )


def value_problem(table: pa.Table) -> Misfit | None:
    """Why these values, none of which is null, have no fields."""
    kind = table.schema.field("value").type
    if pa.types.is_struct(kind):
        return None
    return Misfit(
        f"A value of type {type_name(kind)} has no fields to be columns; the transform HoistField$Value makes it one"
    )


def rows_of(table: pa.Table, schema: Schema | None, metadata: Sequence[str], key_columns: Sequence[str]) -> pa.Table:
    """The fields of values, which are structs, as columns, with their defaults; with the metadata, and the key columns
    that only keys have. Raises Misfit."""
    made = _fields(table.column("value"))
    for field in () if schema is None else schema.fields:
        if field.schema.default is not None and not pa.types.is_nested(made[field.name].type):
            default = pa.scalar(field.schema.default, made[field.name].type)
            made[field.name] = pc.fill_null(made[field.name], default)
    made = {**{name: each for name, each in keys_of(table, key_columns).items() if name not in made}, **made}
    twice = next((name for name in metadata if name in made), None)
    if twice is not None:
        raise Misfit(f"The value has a field {twice}, which is also one of metadata.columns")
    for name in metadata:
        made[name] = _time(table) if name == _TIMESTAMP else table.column(_METADATA[name])
    return pa.table(made) if made else table.select([])


def keys_of(table: pa.Table, key_columns: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Those key columns that the keys of the records have."""
    key = table.column("key")
    if pa.types.is_struct(key.type):
        fields = _fields(key)
        return {name: fields[name] for name in key_columns if name in fields}
    return {key_columns[0]: key} if len(key_columns) == 1 else {}


def _fields(structs: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    names = [field.name for field in structs.type]
    parts = [chunk.flatten() for chunk in structs.chunks]
    types = [field.type for field in structs.type]
    return {
        name: pa.chunked_array([part[number] for part in parts], types[number]) for number, name in enumerate(names)
    }


def _time(table: pa.Table) -> pa.ChunkedArray:
    return table.column("timestamp").cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))


# --- back to records --------------------------------------------------------------------------------------------------


def place_of(table: pa.Table, row: int) -> str:
    topic, partition, offset = (table.column(name)[row].as_py() for name in (TOPIC, PARTITION, OFFSET))
    return f"{topic}-{partition} at offset {offset}"


def record_of(table: pa.Table, row: int, key_schema: Schema | None, value_schema: Schema | None) -> SinkRecord:
    cells = {name: table.column(name)[row].as_py() for name in GIVEN}
    return SinkRecord(
        topic=cells[TOPIC],
        partition=cells[PARTITION],
        offset=cells[OFFSET],
        timestamp=cells["timestamp"],
        key=_value(key_schema, cells["key"]),
        key_schema=key_schema,
        value=_value(value_schema, cells["value"]),
        value_schema=value_schema,
        original_topic=cells[TOPIC],
        original_partition=cells[PARTITION],
        original_offset=cells[OFFSET],
    )


def _value(schema: Schema | None, value: Any) -> Any:
    """As Connect has it: Arrow gives structs as dicts, and maps as lists of pairs."""
    if value is None or schema is None:
        return value
    if schema.type is SchemaType.STRUCT:
        return Struct.of(schema, [_value(field.schema, value[field.name]) for field in schema.fields])
    if schema.type is SchemaType.ARRAY:
        return [_value(schema.value_schema, item) for item in value]
    if schema.type is SchemaType.MAP:
        return {_value(schema.key_schema, key): _value(schema.value_schema, item) for key, item in value}
    return value


def apart(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Records that have a value, and tombstones."""
    if not table.column("value").null_count:
        return table, table.slice(table.num_rows)
    null = pc.is_null(table.column("value"))
    return table.filter(pc.invert(null)), table.filter(null)
