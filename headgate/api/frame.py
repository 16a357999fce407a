"""Frame: records as columns, for transforms, predicates and converters that want speed. `headgate.api` does without it.

Record by record is what is right; columns must give the same or refuse. Whoever cannot be certain of some records
raises NotByColumns, and those go record by record, in their order, with whatever error is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, SchemaType

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
"""The headers of a record, with their values as Kafka has them."""

_TYPES: Final[Mapping[SchemaType, pa.DataType]] = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    DATE_NAME: pa.date32(),
    TIME_NAME: pa.time32("ms"),
    TIMESTAMP_NAME: pa.timestamp("ms", "UTC"),
}
_DIGITS: Final = 38
"""The most that a decimal of Arrow has."""


class NotByColumns(Exception):
    """Some records must be looked at one by one; nothing need be wrong with them."""

    def __init__(self, why: str, rows: pa.Array | None = None) -> None:
        """`why` is a few words that are the same each time: they are counted. `rows` is a mask of the frame's records;
        without one, all of them are meant."""
        super().__init__(why)
        self.why = why
        self.rows = rows


def arrow_type(schema: Schema) -> pa.DataType:
    """The type of columns of this schema. Raises NotByColumns for decimals that Arrow has no room for."""
    if schema.name == DECIMAL_NAME:
        scale = schema.parameters.get("scale", "")
        if not scale.isdecimal() or int(scale) > _DIGITS:
            raise NotByColumns("a decimal of an unusual scale")
        return pa.decimal128(_DIGITS, int(scale))
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return logical
    if schema.type is SchemaType.STRUCT:
        return pa.struct([pa.field(member.name, arrow_type(member.schema)) for member in schema.fields])
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        return pa.map_(arrow_type(schema.key_schema), arrow_type(schema.value_schema))
    return _TYPES[schema.type]


@dataclass(frozen=True, slots=True)
class Values:
    """Keys, values or fields of several records, all of one schema; or without schema, all of one shape.

    With a schema, the type of the data is `arrow_type(schema)`: nulls are what was not set, defaults are not filled in.
    Without one, it is null, bool, int64, float64, string, binary, list, or struct for maps that all have the same keys
    in the same order."""

    data: pa.Array
    schema: Schema | None = None

    @classmethod
    def nulls(cls, count: int) -> Values:
        return cls(pa.nulls(count))

    @classmethod
    def of_fields(
        cls, fields: Mapping[str, Values], count: int, schema: Schema | None = None, null: pa.Array | None = None
    ) -> Values:
        """Structs of this schema, or maps; null where the mask says so."""
        if not fields:
            made = pa.array([{}] * count, pa.struct([]))
            return cls(made if null is None else pc.if_else(null, pa.scalar(None, made.type), made), schema)
        columns = [each.data for each in fields.values()]
        types = [pa.field(name, each.data.type) for name, each in fields.items()]
        return cls(pa.StructArray.from_arrays(columns, fields=types, mask=null), schema)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def fields(self) -> dict[str, Values]:
        """Of structs or maps: their fields, null where they are null. Raises NotByColumns for anything else."""
        if not pa.types.is_struct(self.data.type):
            raise NotByColumns("neither structs nor maps")
        schemas: Sequence[Schema | None] = [None] * self.data.type.num_fields
        if self.schema is not None:
            schemas = [member.schema for member in self.schema.fields]
        names = [each.name for each in self.data.type]
        columns = self.data.flatten()
        return {name: Values(*each) for name, *each in zip(names, columns, schemas, strict=True)}

    def where(self, mask: pa.Array) -> Values:
        return replace(self, data=self.data.filter(mask))


@dataclass(frozen=True, slots=True)
class HeaderColumns:
    """Of each record those that it came with, and behind them some that all have."""

    given: pa.Array | None = None
    """HEADERS; None where no record has any, or nobody wants them."""
    added: tuple[tuple[str, Values], ...] = ()

    def where(self, mask: pa.Array) -> HeaderColumns:
        given = None if self.given is None else self.given.filter(mask)
        return HeaderColumns(given, tuple((name, values.where(mask)) for name, values in self.added))


@dataclass(frozen=True, slots=True)
class Frame:
    """Records of a batch whose keys are all of one schema or shape, and whose values are."""

    rows: pa.Array
    """Where in the batch they were: int64, ascending."""
    topic: pa.Array
    partition: pa.Array
    """int32; null where a source leaves it to the producer."""
    timestamp: pa.Array
    """int64, ms; null where there is none."""
    key: Values
    value: Values
    headers: HeaderColumns = field(default_factory=HeaderColumns)
    offset: pa.Array | None = None
    """int64; of sinks only."""

    @property
    def count(self) -> int:
        return len(self.rows)

    def with_key(self, key: Values) -> Frame:
        return replace(self, key=key)

    def with_value(self, value: Values) -> Frame:
        return replace(self, value=value)

    def with_topic(self, topic: pa.Array) -> Frame:
        return replace(self, topic=topic)

    def with_headers(self, headers: HeaderColumns) -> Frame:
        return replace(self, headers=headers)

    def where(self, mask: pa.Array) -> Frame:
        """Only the records that the mask names; it has no nulls."""
        return Frame(
            self.rows.filter(mask),
            self.topic.filter(mask),
            self.partition.filter(mask),
            self.timestamp.filter(mask),
            self.key.where(mask),
            self.value.where(mask),
            self.headers.where(mask),
            None if self.offset is None else self.offset.filter(mask),
        )

    def split(self, mask: pa.Array) -> tuple[Frame | None, Frame | None]:
        """Those that the mask names, and the others; None where there are none."""
        named = pc.sum(mask).as_py() or 0
        if named == self.count:
            return self, None
        if named == 0:
            return None, self
        return self.where(mask), self.where(pc.invert(mask))


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the keys or values that a converter was given, which are of one schema or shape."""

    rows: pa.Array
    """Which: int64, ascending."""
    values: Values


class ByColumns(Protocol):
    """A transform that can also be applied to a frame, with the same result as record by record."""

    def apply_to_columns(self, frame: Frame) -> Frame | Iterable[Frame] | None:
        """The changed frame; several, when records differ in schema or shape afterwards; None drops all records. Raises
        NotByColumns."""


class DecidesByColumns(Protocol):
    """A predicate that can also be asked about a frame."""

    def test_columns(self, frame: Frame) -> pa.Array | bool:
        """A mask without nulls, or the same answer for all records. Raises NotByColumns."""


class ReadsColumns(Protocol):
    """A converter that can also read a column of bytes, with the same result as one by one."""

    def read_columns(self, topic: str, data: pa.Array) -> Iterable[Group]:
        """Groups of what was read, each row in one of them at most: what is in none is read one by one. Raises
        NotByColumns."""


class WritesColumns(Protocol):
    """A converter that can also write a column."""

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        """Binary, null where `from_connect` gives None. Raises NotByColumns."""
