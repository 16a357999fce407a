"""ByteArrayConverter: bytes as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.api import ConfigDef, Converter, DataError, HeaderConverter, Schema, SchemaType
from headgate.api.schema import OPTIONAL_BYTES
from headgate.pipeline.converters.type_key import CONVERTER_TYPE
from headgate.pipeline.text import java_class


class ByteArrayConverter(Converter, HeaderConverter):
    aliases = ("org.apache.kafka.connect.converters.ByteArrayConverter",)
    config = ConfigDef(CONVERTER_TYPE)

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        self.settings = self.config.parse(config)

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

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return self.to_connect(topic, data)
