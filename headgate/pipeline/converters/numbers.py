"""Converters of numbers: big-endian integers of 2, 4 and 8 bytes, IEEE floats of 4 and 8."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from headgate.api import DataError, Schema, SchemaType
from headgate.api import schema as schemas
from headgate.java.numbers import float32
from headgate.pipeline.converters.any_part import AnyPartConverter
from headgate.pipeline.text import java_class

_CLASSES: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "java.lang.Byte",
    SchemaType.INT16: "java.lang.Short",
    SchemaType.INT32: "java.lang.Integer",
    SchemaType.INT64: "java.lang.Long",
    SchemaType.FLOAT32: "java.lang.Float",
    SchemaType.FLOAT64: "java.lang.Double",
}


class NumberConverter(AnyPartConverter):
    """What they share. Python's numbers have no size: without a schema, every one that fits is taken."""

    word: ClassVar[str]
    """The type in messages."""
    layout: ClassVar[struct.Struct]
    schema: ClassVar[Schema]
    kind: ClassVar[type] = int

    @staticmethod
    def narrow(value: Any) -> Any:
        """What is packed; only floats are made to fit."""
        return value

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        sized = schema.type if schema is not None and schema.type in _CLASSES else None
        if type(value) is self.kind and sized in (None, self.schema.type):
            try:
                return self.layout.pack(self.narrow(value))
            except struct.error:  # too large
                pass
        found = _CLASSES[sized] if sized is not None and type(value) in (int, float) else java_class(value)
        raise DataError(f"Failed to serialize to {self.word} (was class {found}): ")

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return self.schema, None
        if len(data) != self.layout.size:
            raise DataError(f"Failed to deserialize {self.word}: ")
        return self.schema, self.layout.unpack(data)[0]


class ShortConverter(NumberConverter):
    aliases = ("org.apache.kafka.connect.converters.ShortConverter",)
    word, layout, schema = "short", struct.Struct(">h"), schemas.INT16.as_optional()


class IntegerConverter(NumberConverter):
    aliases = ("org.apache.kafka.connect.converters.IntegerConverter",)
    word, layout, schema = "integer", struct.Struct(">i"), schemas.INT32.as_optional()


class LongConverter(NumberConverter):
    aliases = ("org.apache.kafka.connect.converters.LongConverter",)
    word, layout, schema = "long", struct.Struct(">q"), schemas.INT64.as_optional()


class FloatConverter(NumberConverter):
    aliases = ("org.apache.kafka.connect.converters.FloatConverter",)
    word, layout, schema, kind = "float", struct.Struct(">f"), schemas.FLOAT32.as_optional(), float

    @staticmethod
    def narrow(value: Any) -> Any:
        return float32(value)


class DoubleConverter(NumberConverter):
    aliases = ("org.apache.kafka.connect.converters.DoubleConverter",)
    word, layout, schema, kind = "double", struct.Struct(">d"), schemas.FLOAT64.as_optional(), float
