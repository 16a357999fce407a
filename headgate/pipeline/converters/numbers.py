"""Converters of numbers: big-endian integers of 2, 4 and 8 bytes, IEEE floats of 4 and 8."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.api import DataError, Schema, SchemaType
from headgate.api import schema as schemas
from headgate.api.frame import Group, NotByColumns, Values, arrow_type
from headgate.java.numbers import float32
from headgate.pipeline.columns.groups import group_where
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
_PYTHON: Final = {int: pa.int64(), float: pa.float64()}
"""Without a schema."""


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

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        data = values.data
        if data.null_count == len(data):
            return pa.nulls(len(data), pa.binary())
        if data.type != (arrow_type(self.schema) if values.schema is not None else _PYTHON[self.kind]):
            raise NotByColumns("values that are no such numbers")
        numbers = (data.fill_null(0) if data.null_count else data).to_numpy()
        packed = self._by_way_of_python(numbers, self.layout.format)
        if self.kind is int and (packed != numbers).any():
            raise NotByColumns("a number that is too large", pa.array(packed != numbers))
        made = pa.Array.from_buffers(pa.binary(self.layout.size), len(data), [None, pa.py_buffer(packed)])
        return pc.if_else(data.is_valid(), made.cast(pa.binary()), pa.scalar(None, pa.binary()))

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        size, kind = self.layout.size, arrow_type(self.schema)
        sized = pc.equal(pc.binary_length(data), size)
        filled = pc.if_else(sized.fill_null(False), data, bytes(size)).cast(pa.binary(size))
        packed = np.frombuffer(filled.buffers()[1], self.layout.format)
        numbers = self._by_way_of_python(packed, kind.to_pandas_dtype())
        found = pa.array(numbers, kind, mask=data.is_null().to_numpy(zero_copy_only=False))
        yield group_where(sized.fill_null(True), Values(found, self.schema))

    def _by_way_of_python(self, numbers: NDArray[Any], target: Any) -> NDArray[Any]:
        """As one by one: there are some that are no numbers, and Python changes them."""
        with np.errstate(all="ignore"):
            return numbers.astype(self.kind).astype(target)


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
