"""Types: what a statement sees of keys and values, as Arrow types, which Spark takes over as they are.

With a schema the type follows from it. Without one it is found in the values, and where they do not agree the rules are
those of Spark's own JSON reader: numbers widen, missing fields are null, and what has nothing in common is text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.pipeline.logical import scale_of
from headgate.pipeline.schemas import inner

NULL: Final = pa.null()
TEXT: Final = pa.string()
INSTANT: Final = pa.timestamp("us", "UTC")
TIME: Final = pa.time64("us")
DIGITS: Final = 38
"""Most that a decimal of Spark can have."""

PLAIN: Final[Mapping[SchemaType, pa.DataType]] = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: TEXT,
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL: Final = {DATE_NAME: pa.date32(), TIME_NAME: TIME, TIMESTAMP_NAME: INSTANT}


def type_of(schema: Schema) -> pa.DataType:
    """Of the values that the schema describes. Raises DataError."""
    if schema.name == DECIMAL_NAME:
        scale = scale_of(schema)
        if not 0 <= scale <= DIGITS:
            raise DataError(f"A Decimal of scale {scale} has no type in SQL, where it is 0 to {DIGITS}")
        return pa.decimal128(DIGITS, scale)
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is SchemaType.STRUCT:
        return pa.struct([(member.name, type_of(member.schema)) for member in schema.fields])
    if schema.type is SchemaType.ARRAY:
        return pa.list_(*map(type_of, inner(schema)))
    if schema.type is SchemaType.MAP:
        return pa.map_(*map(type_of, inner(schema)))
    return PLAIN[schema.type]


def type_of_values(values: Iterable[Any]) -> pa.DataType:
    """The one type for all of these, which have no schema. Raises DataError for what Connect has no type for."""
    return merged_all(map(_type_of_value, values))


def _type_of_value(value: Any) -> pa.DataType:
    match value:
        case None:
            return NULL
        case bool():
            return pa.bool_()
        case int():
            return _integer(value)
        case float():
            return pa.float64()
        case str():
            return TEXT
        case bytes() | bytearray() | memoryview():
            return pa.binary()
        case Decimal():
            return _decimal(value)
        case dt.datetime():
            return INSTANT
        case dt.date():
            return pa.date32()
        case dt.time():
            return TIME
        case Struct():
            return type_of(value.schema)
        case Mapping():
            return pa.struct([(str(name), _type_of_value(item)) for name, item in value.items()])
        case list() | tuple():
            return pa.list_(type_of_values(value))
    raise DataError(f"A value of the class {type(value).__name__} has no type in SQL")


def _integer(value: int) -> pa.DataType:
    if -(1 << 63) <= value < 1 << 63:
        return pa.int64()
    return pa.decimal128(DIGITS, 0) if abs(value) < 10**DIGITS else pa.float64()


def _decimal(value: Decimal) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return pa.float64()  # NaN and the infinities
    scale = max(-exponent, 0)
    fits = scale <= DIGITS and len(digits) + max(exponent, 0) <= DIGITS
    return pa.decimal128(DIGITS, scale) if fits else pa.float64()


# --- several types, one that holds all --------------------------------------------------------------------------------


def merged_all(types: Iterable[pa.DataType]) -> pa.DataType:
    return reduce(merged, types, NULL)


def merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type that holds the values of both; text when nothing else does."""
    if one.equals(other) or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if kinds.is_struct(one) and kinds.is_struct(other):
        return _joined_structs(one, other, merged)
    if kinds.is_list(one) and kinds.is_list(other):
        return pa.list_(merged(one.value_type, other.value_type))
    if kinds.is_map(one) and kinds.is_map(other):
        return pa.map_(merged(one.key_type, other.key_type), merged(one.item_type, other.item_type))
    if _is_number(one) and _is_number(other):
        return _merged_numbers(one, other)
    texts = {kinds.is_string(each) or kinds.is_binary(each) for each in (one, other)}
    return pa.binary() if texts == {True} else TEXT


def _joined_structs(
    one: pa.StructType, other: pa.StructType, join: Callable[[pa.DataType, pa.DataType], pa.DataType]
) -> pa.StructType:
    """The fields of both, those that both have as `join` says."""
    members = {field.name: field.type for field in one}
    for field in other:
        members[field.name] = join(members.get(field.name, NULL), field.type)
    return pa.struct(list(members.items()))


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _merged_numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if kinds.is_integer(one) and kinds.is_integer(other):
        return max(one, other, key=lambda each: each.bit_width)
    if kinds.is_floating(one) or kinds.is_floating(other):
        return pa.float64()
    scales = [each.scale for each in (one, other) if kinds.is_decimal(each)]
    return pa.decimal128(DIGITS, max(scales))


def filled(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type, with what only the other one knows: further fields, and what stands where it has nothing but null."""
    if kinds.is_null(kind):
        return other
    if kinds.is_struct(kind) and kinds.is_struct(other):
        return _joined_structs(kind, other, filled)
    if kinds.is_list(kind) and kinds.is_list(other):
        return pa.list_(filled(kind.value_type, other.value_type))
    return kind


def usual(kind: pa.DataType) -> pa.DataType:
    """What Arrow finds in values by itself, as the type that we have for it: decimals as long as they can be, instants
    in microseconds of UTC."""
    if kinds.is_decimal(kind):
        return pa.decimal128(DIGITS, kind.scale)
    return INSTANT if kinds.is_timestamp(kind) else _rebuilt(kind, usual)


def nullable(kind: pa.DataType) -> pa.DataType:
    """The same, with fields that may all be null."""
    return _rebuilt(kind, nullable)


def _rebuilt(kind: pa.DataType, make: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with what `make` gives for those within; a plain one as it is."""
    if kinds.is_struct(kind):
        return pa.struct([(field.name, make(field.type)) for field in kind])
    if kinds.is_list(kind):
        return pa.list_(make(kind.value_type))
    return pa.map_(make(kind.key_type), make(kind.item_type)) if kinds.is_map(kind) else kind


def with_field(kind: pa.DataType, path: Sequence[str]) -> pa.DataType:
    """The type with this field, as null where nobody has it: what is null has all fields already, but not a list of
    them, which `*` asks for."""
    if not path:
        return kind
    if kinds.is_null(kind) and path[0] == "*":
        return pa.struct([])
    if kinds.is_list(kind):
        return pa.list_(with_field(kind.value_type, path))
    if not kinds.is_struct(kind):
        return kind
    name, *rest = path
    members = [(field.name, field.type) for field in kind]
    # Spark does not mind capitals in names.
    places = [place for place, (known, _) in enumerate(members) if known.lower() == name.lower()]
    if not places and name != "*":
        return pa.struct([*members, (name, NULL)])
    for place in places:
        members[place] = members[place][0], with_field(members[place][1], rest)
    return pa.struct(members)


def size(kind: pa.DataType) -> int:
    """How many fields it has, at all depths."""
    if kinds.is_struct(kind):
        return sum(1 + size(field.type) for field in kind)
    return size(kind.value_type) if kinds.is_list(kind) else 0


def same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are the same to Spark: it changes the units of times and the names inside lists and maps, and what
    it knows of nulls is no part of the type."""
    if kinds.is_struct(one) and kinds.is_struct(other):
        return one.num_fields == other.num_fields and all(
            mine.name == its.name and same(mine.type, its.type) for mine, its in zip(one, other, strict=True)
        )
    if kinds.is_list(one) and kinds.is_list(other):
        return same(one.value_type, other.value_type)
    if kinds.is_map(one) and kinds.is_map(other):
        return same(one.key_type, other.key_type) and same(one.item_type, other.item_type)
    if kinds.is_timestamp(one) and kinds.is_timestamp(other):
        return (one.tz is None) == (other.tz is None)
    if kinds.is_time(one) and kinds.is_time(other):
        return True
    return bool(one.equals(other))
