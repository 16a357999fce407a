"""ByteArrayConverter: bytes as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headgate.api import DataError, Schema, SchemaType
from headgate.api.frame import Group, NotByColumns, Values
from headgate.api.schema import OPTIONAL_BYTES
from headgate.pipeline.columns.groups import group
from headgate.pipeline.converters.any_part import AnyPartConverter
from headgate.pipeline.text import java_class


class ByteArrayConverter(AnyPartConverter):
    aliases = ("org.apache.kafka.connect.converters.ByteArrayConverter",)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.value}")
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise DataError(f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}")

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return OPTIONAL_BYTES, data

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        data, schema = values.data, values.schema
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise NotByColumns("values that are no bytes")
        if data.null_count == len(data):
            return pa.nulls(len(data), pa.binary())
        if data.type != pa.binary():
            raise NotByColumns("values that are no bytes")
        return data

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        yield group(Values(data, OPTIONAL_BYTES))
