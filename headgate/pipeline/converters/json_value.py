"""Values of JsonConverter: Connect's values as trees that JSON can write, and back."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headgate.api import LOW, STRING, DataError, Key, Schema, SchemaType, Struct, one_of_any_case
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, validate_value
from headgate.java.json import MISSING, plain
from headgate.java.numbers import float32, widened, wrap
from headgate.pipeline import logical
from headgate.pipeline.schemas import BITS, SCALARS
from headgate.pipeline.text import java_class

_MAX_DIGITS: Final = 1100
_BYTES: Final = (bytes, bytearray, memoryview)

DECIMAL_FORMAT: Final = Key(
    "decimal.format",
    STRING,
    default="BASE64",
    validator=one_of_any_case("NUMERIC", "BASE64"),
    importance=LOW,
    doc="How decimals are written. Both are understood when reading.",
)


@dataclass(frozen=True, slots=True)
class Options:
    """Of one JsonConverter."""

    numeric_decimals: bool = False
    replace_null: bool = True
    """Whether a null stands for the default, where there is one."""


# --- to JSON ----------------------------------------------------------------------------------------------------------


def to_tree(schema: Schema | None, value: Any, options: Options) -> Any:
    """What JSON writes for this value. Raises DataError."""
    if value is None:
        if schema is None:
            return None
        if schema.default is not None and options.replace_null:
            return to_tree(schema, schema.default, options)
        if schema.optional:
            return None
        raise DataError("Conversion error: null value for field that is required and has no default value")
    if schema is None:
        return _schemaless_tree(value, options)
    to_base = _TO_BASE.get(schema.name or "")
    if to_base is not None:
        return to_base(schema, value, options)
    return _typed_tree(schema, value, options)


def _schemaless_tree(value: Any, options: Options) -> Any:
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, _BYTES):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list | tuple):
        return [to_tree(None, item, options) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: to_tree(None, item, options) for key, item in value.items()}
        return [[to_tree(None, key, options), to_tree(None, item, options)] for key, item in value.items()]
    if isinstance(value, Struct):
        raise DataError("Mismatching schema.")
    raise DataError(f"Java class class {java_class(value)} does not have corresponding schema type.")


def _typed_tree(schema: Schema, value: Any, options: Options) -> Any:
    kind = schema.type
    if kind in BITS:
        if isinstance(value, int) and not isinstance(value, bool) and wrap(value, BITS[kind]) == value:
            return value
    elif kind in SCALARS:
        if kind is SchemaType.FLOAT32 and isinstance(value, float):
            return widened(value)
        if isinstance(value, SCALARS[kind]):
            return value
    elif kind is SchemaType.BYTES:
        if isinstance(value, _BYTES):
            return base64.b64encode(value).decode("ascii")
        raise DataError(f"Invalid type for bytes type: class {java_class(value)}")
    elif kind is SchemaType.ARRAY:
        if isinstance(value, list | tuple):
            return [to_tree(schema.value_schema, item, options) for item in value]
    elif kind is SchemaType.MAP:
        if isinstance(value, Mapping):
            return _map_tree(schema, value, options)
    elif isinstance(value, Struct):
        return _struct_tree(schema, value, options)
    raise DataError(f"Invalid type for {kind.value}: class {java_class(value)}")


def _map_tree(schema: Schema, value: Mapping[Any, Any], options: Options) -> Any:
    keys, items = schema.key_schema, schema.value_schema
    assert keys is not None  # Schema insists
    pairs = [[to_tree(keys, key, options), to_tree(items, item, options)] for key, item in value.items()]
    if keys.type is not SchemaType.STRING:
        return pairs
    return {"null" if key is None else key: item for key, item in pairs}


def _struct_tree(schema: Schema, value: Struct, options: Options) -> dict[str, Any]:
    if value.schema is not schema and value.schema != schema:
        raise DataError("Mismatching schema.")
    tree = {}
    for member, item in zip(schema.fields, value.values, strict=True):
        try:
            tree[member.name] = to_tree(member.schema, item, options)
        except DataError as error:
            error.within(member.name)
            raise
    return tree


def _decimal_tree(schema: Schema, value: Any, options: Options) -> Any:
    if not isinstance(value, Decimal):
        raise DataError(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
    if options.numeric_decimals:
        return value
    return base64.b64encode(logical.bytes_of_decimal(schema, value)).decode("ascii")


def _temporal_tree(name: str, kind: type, number: Callable[[Any], int]) -> Callable[[Schema, Any, Options], int]:
    def tree(schema: Schema, value: Any, options: Options) -> int:
        if not isinstance(value, dt.date | dt.time):
            raise DataError(f"Invalid type for {name}, expected Date but was class {java_class(value)}")
        # A datetime is a date in Python; as a Date it would lose its time.
        if not isinstance(value, kind) or (kind is dt.date and isinstance(value, dt.datetime)):
            raise DataError(f"Invalid type for {name}, expected {kind.__name__} but was {type(value).__name__}")
        return number(value)

    return tree


_TO_BASE: Final[Mapping[str, Callable[[Schema, Any, Options], Any]]] = {
    DECIMAL_NAME: _decimal_tree,
    DATE_NAME: _temporal_tree("Date", dt.date, logical.days_of),
    TIME_NAME: _temporal_tree("Time", dt.time, logical.ms_of_time),
    TIMESTAMP_NAME: _temporal_tree("Timestamp", dt.datetime, logical.ms_of),
}

# --- from JSON --------------------------------------------------------------------------------------------------------


def from_tree(schema: Schema | None, node: Any, options: Options) -> Any:
    """The value that the schema makes of this node. Lenient as Jackson is: text for a number is 0. Raises DataError."""
    if schema is None:
        return None if node is MISSING else plain(node)
    if node is None:
        if schema.default is not None and options.replace_null:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.type.value} field")
    from_base = _FROM_BASE.get(schema.name or "")
    if from_base is not None:
        return from_base(schema, node)
    return _READ[schema.type](schema, node, options)


def node_type(node: Any) -> str:
    """Jackson's name for the kind of a node."""
    if node is None:
        return "NULL"
    if isinstance(node, bool):
        return "BOOLEAN"
    if isinstance(node, int | float | Decimal):
        return "NUMBER"
    if isinstance(node, str):
        return "STRING"
    return "OBJECT" if isinstance(node, dict) else "ARRAY" if isinstance(node, list) else "MISSING"


def _read_integer(schema: Schema, node: Any, options: Options) -> int:
    if node_type(node) != "NUMBER" or (isinstance(node, Decimal) and node.adjusted() > _MAX_DIGITS):
        return 0  # so many zeros in front of the point leave no bit below
    return wrap(int(node), BITS[schema.type])


def _read_float(schema: Schema, node: Any, options: Options) -> float:
    value = float(node) + 0.0 if node_type(node) == "NUMBER" else 0.0
    return float32(value) if schema.type is SchemaType.FLOAT32 else value


def _read_bytes(schema: Schema, node: Any, options: Options) -> bytes | None:
    if not isinstance(node, str):
        return None
    try:
        return binascii.a2b_base64(node, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise DataError("Invalid bytes field") from error


def _read_array(schema: Schema, node: Any, options: Options) -> list[Any]:
    items = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    return [from_tree(schema.value_schema, item, options) for item in items]


def _read_map(schema: Schema, node: Any, options: Options) -> dict[Any, Any]:
    keys, items = schema.key_schema, schema.value_schema
    assert keys is not None  # Schema insists
    if keys.type is SchemaType.STRING:
        if not isinstance(node, dict):
            raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {node_type(node)}")
        return {key: from_tree(items, item, options) for key, item in node.items()}
    if not isinstance(node, list):
        raise DataError(
            f"Maps with non-string fields should be encoded as JSON array of tuples, but found {node_type(node)}"
        )
    result: dict[Any, Any] = {}
    for entry in node:
        if not isinstance(entry, list):
            raise DataError(f"Found invalid map entry instead of array tuple: {node_type(entry)}")
        if len(entry) != 2:
            raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
        result[from_tree(keys, entry[0], options)] = from_tree(items, entry[1], options)
    return result


def _read_struct(schema: Schema, node: Any, options: Options) -> Struct:
    if not isinstance(node, dict):
        raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(node)}")
    result = Struct(schema)
    for member in schema.fields:
        try:
            value = from_tree(member.schema, node.get(member.name), options)
        except DataError as error:
            error.within(member.name)
            raise
        if value is None:
            validate_value(member.schema, None, member.name)
        else:
            result[member.name] = value
    return result


_READ: Final[Mapping[SchemaType, Callable[[Schema, Any, Options], Any]]] = {
    **dict.fromkeys(BITS, _read_integer),
    SchemaType.FLOAT32: _read_float,
    SchemaType.FLOAT64: _read_float,
    SchemaType.BOOLEAN: lambda _, node, __: node is True,
    SchemaType.STRING: lambda _, node, __: node if isinstance(node, str) else None,
    SchemaType.BYTES: _read_bytes,
    SchemaType.ARRAY: _read_array,
    SchemaType.MAP: _read_map,
    SchemaType.STRUCT: _read_struct,
}


def _read_decimal(schema: Schema, node: Any) -> Decimal:
    if node_type(node) == "NUMBER":
        return Decimal(repr(node)) if isinstance(node, float) else Decimal(node)
    if not isinstance(node, str):
        raise DataError(
            f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {node_type(node)}"
        )
    try:
        return logical.decimal_of_bytes(schema, binascii.a2b_base64(node, strict_mode=True))
    except (binascii.Error, ValueError, DataError) as error:
        raise DataError("Invalid bytes for Decimal field") from error


def _integer(node: Any) -> bool:
    return isinstance(node, int) and not isinstance(node, bool)


def _read_int32(name: str, build: Callable[[int], Any]) -> Callable[[Schema, Any], Any]:
    def read(schema: Schema, node: Any) -> Any:
        if not _integer(node) or wrap(node, 32) != node:
            raise DataError(
                f"Invalid type for {name}, underlying representation should be integer but was {node_type(node)}"
            )
        return build(node)

    return read


def _read_timestamp(schema: Schema, node: Any) -> dt.datetime:
    if not _integer(node):
        raise DataError(
            f"Invalid type for Timestamp, underlying representation should be integral but was {node_type(node)}"
        )
    return logical.datetime_of(wrap(node, 64))


_FROM_BASE: Final[Mapping[str, Callable[[Schema, Any], Any]]] = {
    DECIMAL_NAME: _read_decimal,
    DATE_NAME: _read_int32("Date", logical.date_of),
    TIME_NAME: _read_int32("Time", logical.time_of),
    TIMESTAMP_NAME: _read_timestamp,
}
