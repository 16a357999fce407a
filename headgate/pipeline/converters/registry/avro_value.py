"""Avro's values of Connect's, and back: functions made once for each schema, since each record needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.java.numbers import wrap
from headgate.pipeline import logical
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.avro_schema import AvroOptions
from headgate.pipeline.schemas import BITS, SCALARS, has_text_keys, inner

Step = Callable[[Any], Any]

_UNNAMED: Final = {**SCALARS, SchemaType.BYTES: bytes, SchemaType.ARRAY: list}


def _same(value: Any) -> Any:
    return value


def has_unions(schema: Schema) -> bool:
    """Whether values of this schema can only be told apart by the names of their types."""
    return schema.name == names.UNION or any(map(has_unions, inner(schema)))


# --- to Avro ----------------------------------------------------------------------------------------------------------


def encoder(schema: Schema) -> Step:
    """From a value of this schema to what fastavro writes. It raises DataError."""
    step = _encoder(schema)

    def encode(value: Any) -> Any:
        if value is None:
            value = schema.default
            if value is None:
                if schema.optional:
                    return None
                raise DataError(f"Found null value for non-optional schema {schema}")
        return step(value)

    return encode


def _encoder(schema: Schema) -> Step:
    to_base = logical.to_base(schema)
    if to_base is not None:
        return to_base
    match schema.type:
        case SchemaType.STRUCT if schema.name == names.UNION:
            return _union_encoder(schema)
        case SchemaType.BYTES:
            return bytes
        case SchemaType.ARRAY:
            (item,) = map(encoder, inner(schema))
            return lambda value: list(map(item, value))
        case SchemaType.MAP:
            return _map_encoder(schema)
        case SchemaType.STRUCT:
            return _struct_encoder(schema)
    return _same


def _map_encoder(schema: Schema) -> Step:
    key, item = map(encoder, inner(schema))
    if has_text_keys(schema):
        return lambda value: {name: item(each) for name, each in value.items()}
    return lambda value: [{"key": key(name), "value": item(each)} for name, each in value.items()]


def _struct_encoder(schema: Schema) -> Step:
    parts = [(member.name, encoder(member.schema)) for member in schema.fields]

    def encode(value: Struct) -> dict[str, Any]:
        made = {}
        for (name, step), each in zip(parts, value.values, strict=True):
            try:
                made[name] = step(each)
            except DataError as error:
                error.within(name)
                raise
        return made

    return encode


def _union_encoder(schema: Schema) -> Step:
    parts = [(_branch(member.schema), _encoder(member.schema)) for member in schema.fields]

    def encode(value: Struct) -> tuple[str, Any] | None:
        for (branch, step), each in zip(parts, value.values, strict=True):
            if each is not None:
                return branch, step(each)
        if schema.optional:
            return None
        raise DataError(f"No field of {value} is set, and the union has no null")

    return encode


def _branch(schema: Schema) -> str:
    """What fastavro calls the type of this member of a union."""
    if schema.type is SchemaType.STRUCT:
        if schema.name is None:
            raise DataError("A struct in a union needs a name")
        return schema.name
    if names.is_enum(schema):
        return schema.parameters[names.ENUM]
    return "array" if schema.type is SchemaType.MAP and not has_text_keys(schema) else names.TYPES[schema.type]


# --- from Avro --------------------------------------------------------------------------------------------------------


def decoder(schema: Schema, options: AvroOptions) -> Step:
    """From what fastavro read to a value of this schema. It raises DataError."""
    step = _decoder(schema, options)
    if step is _same:
        return _same
    # In a schema with unions, names of types stand beside the values of optional records, too.
    return lambda value: None if value is None else step(value[1] if type(value) is tuple and _plain(schema) else value)


def _plain(schema: Schema) -> bool:
    return schema.name != names.UNION


def _decoder(schema: Schema, options: AvroOptions) -> Step:
    of_base = logical.of_base(schema)
    if of_base is not None:
        return of_base
    match schema.type:
        case SchemaType.STRUCT if schema.name == names.UNION:
            return _union_decoder(schema, options)
        case SchemaType.INT8 | SchemaType.INT16:
            bits = BITS[schema.type]
            return lambda value: wrap(value, bits)
        case SchemaType.STRING if names.is_enum(schema):
            return str
        case SchemaType.BYTES:
            return bytes
        case SchemaType.ARRAY:
            (items,) = inner(schema)
            item = decoder(items, options)
            return _same if item is _same else lambda value: list(map(item, value))
        case SchemaType.MAP:
            return _map_decoder(schema, options)
        case SchemaType.STRUCT:
            return _struct_decoder(schema, options)
    return _same


def _map_decoder(schema: Schema, options: AvroOptions) -> Step:
    key, item = (decoder(each, options) for each in inner(schema))
    if not has_text_keys(schema):
        return lambda value: {key(each["key"]): item(each["value"]) for each in value}
    return _same if item is _same else lambda value: {name: item(each) for name, each in value.items()}


def _struct_decoder(schema: Schema, options: AvroOptions) -> Step:
    parts = [(member.name, decoder(member.schema, options)) for member in schema.fields]
    if len(parts) > 1 and all(step is _same for _, step in parts):
        get = itemgetter(*(name for name, _ in parts))
        return lambda value: Struct.of(schema, list(get(value)))

    def decode(value: Any) -> Struct:
        values = []
        for name, step in parts:
            try:
                values.append(step(value[name]))
            except DataError as error:
                error.within(name)
                raise
        return Struct.of(schema, values)

    return decode


def _union_decoder(schema: Schema, options: AvroOptions) -> Step:
    parts = [(member, _decoder(member.schema, options)) for member in schema.fields]

    def decode(value: Any) -> Struct:
        named, plain = value if isinstance(value, tuple) else (None, value)
        for member, step in parts:
            if member.name == names.member_name(named, options.enhanced) if named else _is_a(member.schema, plain):
                values = [None] * len(parts)
                values[member.index] = step(plain)
                return Struct.of(schema, values)
        raise DataError(f"Did not find matching union field for data: {plain!r}")

    return decode


def _is_a(schema: Schema, value: Any) -> bool:
    """Whether a value of no named type is one of this member of a union."""
    kind = schema.type
    if kind in BITS:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and (kind is SchemaType.INT64 or wrap(value, 32) == value)
    if kind is SchemaType.MAP:
        return isinstance(value, Mapping if has_text_keys(schema) else list)
    # Structs and enums have names.
    return kind in _UNNAMED and isinstance(value, _UNNAMED[kind]) and not names.is_enum(schema)
