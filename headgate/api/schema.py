"""Schema and Struct: Connect's data model. Values are plain Python; a schema says what they mean.

INT8 … INT64 are `int`, FLOAT32 and FLOAT64 `float`, BYTES `bytes`, ARRAY `list`, MAP `dict`, STRUCT `Struct`. The
logical types are `Decimal`, `datetime.date`, `datetime.time` and an aware `datetime.datetime`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal as PyDecimal
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from headgate.api.errors import DataError


class SchemaType(Enum):
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    BYTES = "BYTES"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"


DECIMAL_NAME: Final = "org.apache.kafka.connect.data.Decimal"
DATE_NAME: Final = "org.apache.kafka.connect.data.Date"
TIME_NAME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME: Final = "org.apache.kafka.connect.data.Timestamp"

_LOGICAL: Final[Mapping[str, type]] = {
    DECIMAL_NAME: PyDecimal,
    DATE_NAME: dt.date,
    TIME_NAME: dt.time,
    TIMESTAMP_NAME: dt.datetime,
}
_BITS: Final = {SchemaType.INT8: 7, SchemaType.INT16: 15, SchemaType.INT32: 31, SchemaType.INT64: 63}
_PLAIN: Final[Mapping[SchemaType, tuple[type, ...]]] = {
    SchemaType.FLOAT32: (float,),
    SchemaType.FLOAT64: (float,),
    SchemaType.BOOLEAN: (bool,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes, bytearray, memoryview),
}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    index: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Schema:
    """What a value is. Two schemas are equal when every attribute is."""

    type: SchemaType
    optional: bool = False
    default: Any = field(default=None, hash=False)
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    """Of a MAP's values, or of an ARRAY's items."""

    def __post_init__(self) -> None:
        if self.type is SchemaType.MAP and not (self.key_schema and self.value_schema):
            raise DataError("A MAP schema needs the schemas of its keys and of its values")
        if self.type is SchemaType.ARRAY and not self.value_schema:
            raise DataError("An ARRAY schema needs the schema of its items")
        if len({each.name for each in self.fields}) != len(self.fields):
            raise DataError("A STRUCT schema needs a different name for each field")
        if self.default is not None:
            validate_value(replace(self, default=None, optional=False), self.default)

    def field(self, name: str) -> Field | None:
        return next((each for each in self.fields if each.name == name), None)

    def as_optional(self) -> Schema:
        return self if self.optional else replace(self, optional=True)

    def __str__(self) -> str:
        return f"Schema{{{self.name}:{self.type.value}}}" if self.name else f"Schema{{{self.type.value}}}"


def struct(
    fields: Mapping[str, Schema],
    *,
    name: str | None = None,
    version: int | None = None,
    optional: bool = False,
    doc: str | None = None,
    parameters: Mapping[str, str] | None = None,
    default: Any = None,
) -> Schema:
    """A STRUCT schema with these fields, in this order."""
    members = tuple(Field(key, index, schema) for index, (key, schema) in enumerate(fields.items()))
    return Schema(SchemaType.STRUCT, optional, default, name, version, doc, parameters or {}, members)


def array(items: Schema, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.ARRAY, optional, value_schema=items)


def mapping(keys: Schema, values: Schema, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.MAP, optional, key_schema=keys, value_schema=values)


def decimal(scale: int, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.BYTES, optional, name=DECIMAL_NAME, version=1, parameters={"scale": str(scale)})


INT8 = Schema(SchemaType.INT8)
INT16 = Schema(SchemaType.INT16)
INT32 = Schema(SchemaType.INT32)
INT64 = Schema(SchemaType.INT64)
FLOAT32 = Schema(SchemaType.FLOAT32)
FLOAT64 = Schema(SchemaType.FLOAT64)
BOOLEAN = Schema(SchemaType.BOOLEAN)
STRING = Schema(SchemaType.STRING)
BYTES = Schema(SchemaType.BYTES)
DATE = Schema(SchemaType.INT32, name=DATE_NAME, version=1)
TIME = Schema(SchemaType.INT32, name=TIME_NAME, version=1)
TIMESTAMP = Schema(SchemaType.INT64, name=TIMESTAMP_NAME, version=1)
OPTIONAL_STRING = STRING.as_optional()
OPTIONAL_BYTES = BYTES.as_optional()


class Struct:
    """A value of a STRUCT schema. `s["f"]` reads with the default, `get_without_default` as it was set.

    Where millions are read or made, names are slow: `values` has all of them at once, and `Struct.of` takes them so."""

    __slots__ = ("schema", "values")

    schema: Schema
    values: list[Any]
    """One for each field of the schema, in its order, as they were set: None where nothing was. It is the struct's own
    list. Read it; who changes it has to see to it that the values fit."""

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not SchemaType.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values = [None] * len(schema.fields)
        for name, value in (values or {}).items():
            self[name] = value

    @classmethod
    def of(cls, schema: Schema, values: list[Any]) -> Struct:
        """A struct of values that are known to fit, one for each field, None where nothing is set. Nothing is checked,
        and the list is taken as it is: it belongs to the struct from then on."""
        made = cls.__new__(cls)
        made.schema = schema
        made.values = values
        return made

    def _field(self, name: str) -> Field:
        found = self.schema.field(name)
        if found is None:
            raise DataError(f"{name} is not a valid field name")
        return found

    def __getitem__(self, name: str) -> Any:
        member = self._field(name)
        value = self.values[member.index]
        return member.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        return self.values[self._field(name).index]

    def __setitem__(self, name: str, value: Any) -> None:
        member = self._field(name)
        # An unset required field is reported by validate(): the struct may still be under construction.
        if value is not None:
            validate_value(member.schema, value, name)
        self.values[member.index] = value

    def __contains__(self, name: str) -> bool:
        return self.schema.field(name) is not None

    def validate(self) -> Struct:
        """Raises DataError when a required field is missing."""
        for member in self.schema.fields:
            value = self.values[member.index]
            if value is None and (member.schema.optional or member.schema.default is not None):
                continue
            validate_value(member.schema, value, member.name)
        return self

    def as_dict(self) -> dict[str, Any]:
        return {member.name: self[member.name] for member in self.schema.fields}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        set_fields = ((m.name, self.values[m.index]) for m in self.schema.fields)
        return "Struct{" + ",".join(f"{name}={value}" for name, value in set_fields if value is not None) + "}"


def validate_value(schema: Schema, value: Any, field_name: str | None = None) -> None:
    """Raises DataError when `value` is not one that `schema` describes."""
    if value is None:
        if schema.optional:
            return
        name = field_name or "null"
        raise DataError(f'Invalid value: null used for required field: "{name}", schema type: {schema.type.value}')
    if not _fits(schema, value):
        where = f' for field "{field_name}"' if field_name else ""
        raise DataError(f"Invalid value {value!r} of type {type(value).__name__}{where}, schema {schema}")
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        for item in value:
            validate_value(schema.value_schema, item, field_name)
    elif schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        for key, item in value.items():
            validate_value(schema.key_schema, key, field_name)
            validate_value(schema.value_schema, item, field_name)


def _fits(schema: Schema, value: Any) -> bool:
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        if isinstance(value, dt.datetime):
            # A datetime is a date in Python, but a Timestamp is no Date in Connect; without a zone it is no instant.
            return logical is dt.datetime and value.utcoffset() is not None
        return isinstance(value, logical)
    if schema.type in _BITS:
        limit = 1 << _BITS[schema.type]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if schema.type is SchemaType.STRUCT:
        return isinstance(value, Struct) and _same_struct(value.schema, schema)
    if schema.type is SchemaType.ARRAY:
        return isinstance(value, list | tuple)
    if schema.type is SchemaType.MAP:
        return isinstance(value, Mapping)
    return isinstance(value, _PLAIN[schema.type])


_of_struct: Final = attrgetter("fields", "name", "version", "doc", "parameters")


def _same_struct(one: Schema, other: Schema) -> bool:
    """Whether both describe the same structs; whether null or a default may stand in their place does not matter."""
    return one is other or _of_struct(one) == _of_struct(other)
