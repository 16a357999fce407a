"""Column: keys or values of a batch, of one type; and a column that has to become that of another type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.types as kinds

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.sql.types import merged_all, type_of, type_of_values, usual
from headgate.pipeline.transforms.structs import values_of

_type_of: Final = SchemaCache(type_of)


@dataclass(frozen=True, slots=True)
class Side:
    """What is known of the keys, or of the values, of a batch."""

    typed: bool | None = None
    """Whether they have schemas; None: there is nothing but null."""
    schema: Schema | None = None
    """The one schema of all that are not null, if there is one."""

    def joined(self, other: Side) -> Side:
        if self.typed is None or other.typed is None:
            return other if self.typed is None else self
        same = self.schema is not None and self.schema == other.schema
        return Side(self.typed or other.typed, self.schema if same else None)


def column(schemas: Sequence[Schema | None], values: Sequence[Any]) -> tuple[pa.Array, Side]:
    """The values as one column. Raises DataError for a value that has no type in SQL."""
    present = [(schema, value) for schema, value in zip(schemas, values, strict=True) if value is not None]
    known = _distinct([schema for schema, _ in present])
    if not known or known == [None]:
        return _found(values), Side(False) if known else Side()
    if len(known) == 1:
        schema = known[0]
        assert schema is not None
        to_plain = plain(schema)
        items = values if to_plain is None else [None if value is None else to_plain(value) for value in values]
        return _array(items, _type_of(schema)), Side(True, schema)
    bare = [value for schema, value in present if schema is None]
    kind = merged_all([type_of_values(bare), *(_type_of(schema) for schema in known if schema is not None)])
    return _shaped_array(values, kind), Side(True)


def _distinct(schemas: Sequence[Schema | None]) -> list[Schema | None]:
    by_id = {id(schema): schema for schema in schemas}
    found: list[Schema | None] = []
    for schema in by_id.values():
        if schema not in found:
            found.append(schema)
    return found


def _found(values: Sequence[Any]) -> pa.Array:
    """Arrow finds the type where all agree. The rest goes through our rules."""
    try:
        array = pa.array(values)
        kind = usual(array.type)
        return array if kind.equals(array.type) else pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError, ValueError):
        return _shaped_array(values, type_of_values(values))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return _shaped_array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"Values do not fit the type {kind} that they have in SQL: {error}") from error


def _shaped_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([shaped(value, kind) for value in values], kind)
    except (pa.ArrowException, OverflowError, ArithmeticError) as error:
        raise DataError(f"Values do not fit the type {kind} that they have in SQL: {error}") from error


def plain(schema: Schema) -> Callable[[Any], Any] | None:
    """How a value of this schema is given to Arrow; None: as it is."""
    if schema.type is SchemaType.STRUCT:
        inner = [plain(member.schema) for member in schema.fields]
        if not any(inner):
            return lambda value: tuple(values_of(value, replace_null=True))
        return lambda value: tuple(
            item if item is None or each is None else each(item)
            for item, each in zip(values_of(value, replace_null=True), inner, strict=True)
        )
    items = plain(schema.value_schema) if schema.value_schema is not None else None
    if schema.type is SchemaType.ARRAY and items is not None:
        return lambda value: [None if item is None else items(item) for item in value]
    if schema.type is SchemaType.MAP:
        keys = plain(schema.key_schema) if schema.key_schema is not None else None
        return lambda value: [
            (keys(key) if keys else key, items(item) if items and item is not None else item)
            for key, item in value.items()
        ]
    return None


# --- a value as a type wants it ---------------------------------------------------------------------------------------


def shaped(value: Any, kind: pa.DataType) -> Any:
    """A value of any shape as Arrow takes it for this type: fields that the type does not have are left out, those that
    the value does not have are null, and what is no text becomes its text where text is wanted. Raises DataError."""
    if value is None:
        return None
    if kinds.is_string(kind):
        return _text(value)
    if kinds.is_struct(kind) and isinstance(value, Mapping | Struct):
        members = value.as_dict() if isinstance(value, Struct) else {str(name): item for name, item in value.items()}
        return {field.name: shaped(members.get(field.name), field.type) for field in kind}
    if kinds.is_list(kind) and isinstance(value, list | tuple):
        return [shaped(item, kind.value_type) for item in value]
    if kinds.is_map(kind):
        pairs = _pairs(value)
        return [(shaped(key, kind.key_type), shaped(item, kind.item_type)) for key, item in pairs]
    if kinds.is_floating(kind) and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    if kinds.is_decimal(kind) and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    if kinds.is_binary(kind) and isinstance(value, str):
        return value.encode(errors="replace")
    if not _is(value, kind):
        raise DataError(f"{_text(value)[:100]} is no {kind}")
    return value


def _pairs(value: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(value, Struct):
        value = value.as_dict()
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return value  # a map out of Arrow
    raise DataError(f"{_text(value)[:100]} is no map")


def _is(value: Any, kind: pa.DataType) -> bool:
    if isinstance(value, bool):
        return bool(kinds.is_boolean(kind))
    if isinstance(value, int):
        return bool(kinds.is_integer(kind))
    if isinstance(value, dt.datetime):
        return bool(kinds.is_timestamp(kind))
    for cls, fits in ((dt.date, kinds.is_date), (dt.time, kinds.is_time)):
        if isinstance(value, cls):
            return bool(fits(kind))
    return isinstance(value, bytes | bytearray | memoryview) and bool(kinds.is_binary(kind))


def _text(value: Any) -> str:
    """Text as it is; anything else as JSON."""
    if isinstance(value, str):
        # Half a surrogate pair, which JSON can say and UTF-8 cannot: "?", as in Java.
        return value if value.isascii() else value.encode(errors="replace").decode()
    return orjson.dumps(_tree(value), option=orjson.OPT_UTC_Z).decode()


def _tree(value: Any) -> Any:
    match value:
        case Struct():
            return _tree(value.as_dict())
        case Mapping():
            return {str(name): _tree(item) for name, item in value.items() if item is not None}
        case list() | tuple():
            return [_tree(item) for item in value]
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode(errors="replace")
        case Decimal():
            return float(value)
        case int() if not -(1 << 63) <= value < 1 << 64:
            return float(value)
    return value


# --- a column as another type wants it --------------------------------------------------------------------------------


def conformed(array: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    """The same values as a column of this type. Raises DataError, which names the field, for one that cannot be."""
    given = array.type
    if given.equals(kind):
        return array
    if kinds.is_null(given):
        return pa.nulls(len(array), kind)
    if kinds.is_struct(given) and kinds.is_struct(kind) and kind.num_fields:
        parts = dict(zip((field.name for field in given), array.flatten(), strict=True))
        made = [
            conformed(parts[field.name], field.type, f"{where}.{field.name}")
            if field.name in parts
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(made, fields=list(kind), mask=array.is_null())
    if _widens(given, kind):
        return array.cast(kind, safe=False)
    try:
        return _shaped_array(array.to_pylist(), kind)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _widens(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Arrow's own cast does what `shaped` does."""
    if kinds.is_integer(given) and kinds.is_integer(kind):
        return bool(kind.bit_width >= given.bit_width)
    return bool(kinds.is_float64(kind) and (kinds.is_integer(given) or kinds.is_floating(given)))
