"""BooleanConverter: one byte, 1 or 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError, Schema, SchemaType
from headgate.api.frame import Group, NotByColumns, Values
from headgate.api.schema import BOOLEAN
from headgate.pipeline.columns.groups import group_where
from headgate.pipeline.converters.any_part import AnyPartConverter
from headgate.pipeline.text import java_class

_SCHEMA: Final = BOOLEAN.as_optional()
_VALUES: Final = {b"\x01": True, b"\x00": False}


class BooleanConverter(AnyPartConverter):
    aliases = ("org.apache.kafka.connect.converters.BooleanConverter",)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not SchemaType.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.value}")
        if value is None:
            return None
        if isinstance(value, bool):
            return b"\x01" if value else b"\x00"
        raise DataError(f"BooleanConverter is not compatible with objects of type class {java_class(value)}")

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return _SCHEMA, None
        if data not in _VALUES:
            raise DataError("Failed to deserialize boolean: ")
        return _SCHEMA, _VALUES[data]

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        data, schema = values.data, values.schema
        if schema is not None and schema.type is not SchemaType.BOOLEAN:
            raise NotByColumns("values that are no booleans")
        if data.null_count == len(data):
            return pa.nulls(len(data), pa.binary())
        if data.type != pa.bool_():
            raise NotByColumns("values that are no booleans")
        return pc.if_else(data, b"\x01", b"\x00")

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        true = pc.equal(data, b"\x01")
        known = pc.or_(true, pc.equal(data, b"\x00")).fill_null(True)
        yield group_where(known, Values(true, _SCHEMA))
