"""Connect's schemas of Protobuf messages, whoever described them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headgate.api import DataError, Field, Schema, SchemaType
from headgate.api.schema import DATE, TIME, TIMESTAMP, decimal
from headgate.pipeline.converters.registry import protobuf_names as names

_INT32: Final = (5, 15, 17)
# By FieldDescriptor's numbers of types, which are part of Protobuf itself.
_SCALARS: Final[Mapping[int, SchemaType]] = {
    1: SchemaType.FLOAT64,
    2: SchemaType.FLOAT32,
    8: SchemaType.BOOLEAN,
    9: SchemaType.STRING,
    12: SchemaType.BYTES,
    **dict.fromkeys(_INT32, SchemaType.INT32),
    **dict.fromkeys((3, 4, 6, 7, 13, 16, 18), SchemaType.INT64),
}
_ENUM: Final = 14
_LOGICAL: Final[Mapping[str, Schema]] = {
    "google.type.Date": DATE,
    "google.type.TimeOfDay": TIME,
    "google.protobuf.Timestamp": TIMESTAMP,
}
_SHORT: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}


def connect_schema(descriptor: Any, options: names.ProtobufOptions, around: tuple[str, ...] = ()) -> Schema:
    """Of one message. Raises DataError."""
    if descriptor.full_name in around:
        raise DataError(f"Message {descriptor.full_name} contains itself, which no schema of Connect can")
    around = (*around, descriptor.full_name)
    marked = names.optional_fields(descriptor)
    members: dict[str, Schema] = {}
    for oneof in real_oneofs(descriptor):
        fields = {each.name: _field(each, options, True, around) for each in oneof.fields}
        union = Schema(SchemaType.STRUCT, True, name=names.UNION + oneof.name, fields=_fields(fields))
        members[f"{oneof.name}_{oneof.index}"] = union
    for each in descriptor.fields:
        if each.containing_oneof is None or each.name in marked:
            members[each.name] = _field(each, options, each.name in marked, around)
    name = descriptor.full_name if options.enhanced else descriptor.name
    return Schema(SchemaType.STRUCT, name=name, fields=_fields(members))


def real_oneofs(descriptor: Any) -> list[Any]:
    """Without those that stand for a field that is `optional`."""
    marked = names.optional_fields(descriptor)
    return [each for each in descriptor.oneofs if not any(field.name in marked for field in each.fields)]


def _fields(members: Mapping[str, Schema]) -> tuple[Field, ...]:
    return tuple(Field(name, index, schema) for index, (name, schema) in enumerate(members.items()))


def _field(field: Any, options: names.ProtobufOptions, marked: bool, around: tuple[str, ...]) -> Schema:
    schema = _type(field, options, around)
    if field.is_repeated and schema.type is not SchemaType.MAP:
        schema = Schema(SchemaType.ARRAY, True, value_schema=schema.as_optional())
    optional = schema.optional or marked or not options.nullable or field.message_type is not None
    return replace(schema, optional=optional, parameters={**schema.parameters, names.TAG: str(field.number)})


def _type(field: Any, options: names.ProtobufOptions, around: tuple[str, ...]) -> Schema:
    if field.type == _ENUM:
        symbols = {f"{names.ENUM}.{each.name}": str(each.number) for each in field.enum_type.values}
        name = field.enum_type.name
        return Schema(SchemaType.STRING, name=name, parameters={names.ENUM: name, **symbols})
    if field.message_type is None:
        short = _SHORT.get(_params(field).get(names.CONNECT_TYPE, "")) if field.type in _INT32 else None
        return Schema(short or _SCALARS[field.type])
    message = field.message_type
    if message.full_name == "confluent.type.Decimal":
        return _decimal(_params(field))
    if message.full_name in _LOGICAL:
        return _LOGICAL[message.full_name]
    if options.wrapper and message.full_name in names.UNWRAPPED:
        short = _SHORT.get(_params(field).get(names.CONNECT_TYPE, ""))
        return Schema(short or names.UNWRAPPED[message.full_name])
    if field.is_repeated and names.is_entry(message):
        keys, values = (_field(each, options, False, around) for each in message.fields)
        name = names.snake(message.name.removesuffix(names.ENTRY))
        return Schema(SchemaType.MAP, name=name, key_schema=keys, value_schema=values)
    return connect_schema(message, options, around)


def _decimal(params: Mapping[str, str]) -> Schema:
    scale, precision = params.get("scale", "0"), params.get("precision")
    made = decimal(int(scale) if scale.lstrip("-").isdigit() else 0)
    if precision is None or not precision.isdigit():
        return made
    return replace(made, parameters={**made.parameters, names.PRECISION: precision})


def _params(field: Any) -> Mapping[str, str]:
    from confluent_kafka.schema_registry.confluent import meta_pb2

    known: Any = meta_pb2  # its names are made at run time
    options = field.GetOptions()
    if not options.HasExtension(known.field_meta):
        return {}
    found: Mapping[str, str] = options.Extensions[known.field_meta].params
    return found
