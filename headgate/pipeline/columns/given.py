"""Columns that a source task gives, in whatever types of Arrow it has, as the values that records would hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from headgate.api import Schema
from headgate.api.frame import NotByColumns, Values, arrow_type
from headgate.pipeline.batch import text_column


def given(column: pa.Array, schema: Schema | None) -> Values:
    """Raises NotByColumns for what does not fit the schema, or is no value of Connect."""
    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
    if schema is None:
        return Values(_cast(column, _plain(column.type)))
    return Values(_typed(column, schema), schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    """What values without schema are in columns."""
    if types.is_integer(kind):
        return pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_null(kind) or types.is_boolean(kind):
        return kind
    if _is_text(kind):
        return pa.string()
    if _is_bytes(kind):
        return pa.binary()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    raise NotByColumns("a type that needs a schema")


def _typed(column: pa.Array, schema: Schema) -> pa.Array:
    target, kind = arrow_type(schema), column.type
    if kind == target or types.is_null(kind):
        return _cast(column, target)
    if types.is_string(target) and _is_bytes(kind):
        return text_column(column)
    if types.is_struct(target) and types.is_struct(kind):
        found = dict(zip((each.name for each in kind), column.flatten(), strict=True))
        missing = pa.nulls(len(column))
        members = [_typed(found.get(each.name, missing), each.schema) for each in schema.fields]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=column.is_null()) if members else column
    if types.is_list(target) and types.is_list(kind) and schema.value_schema:
        items = _typed(column.flatten(), schema.value_schema)
        return pa.ListArray.from_arrays(_offsets(column), items, mask=column.is_null())
    if not _alike(kind, target):
        raise NotByColumns("a column that is not of its schema")
    return _cast(column, target)


def _alike(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast that loses nothing gives what the schema describes."""
    if types.is_integer(target):
        return bool(types.is_integer(kind))
    if types.is_float64(target):
        return bool(types.is_floating(kind))
    if types.is_timestamp(target):
        return bool(types.is_timestamp(kind) and kind.tz is not None)
    return bool((types.is_string(target) and _is_text(kind)) or (types.is_binary(target) and _is_bytes(kind)))


def _offsets(column: Any) -> pa.Array:
    """Of a list array whose items are those of `flatten`."""
    lengths = column.value_lengths().fill_null(0)
    ends = pa.compute.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == target:
        return column
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise NotByColumns("a column that is not of its schema") from None
