"""Protobuf files of Connect's schemas, as Confluent's ProtobufConverter maps them."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from headgate.api import DataError, Schema, SchemaType
from headgate.api.schema import DECIMAL_NAME
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.schemas import BITS, inner

_KEY_TYPES: Final = (*BITS, SchemaType.BOOLEAN, SchemaType.STRING)


def protobuf_file(schema: Schema, options: names.ProtobufOptions) -> tuple[Any, str]:
    """A FileDescriptorProto, and the full name of the schema's message in it. Raises DataError."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"Protobuf data is a message: a schema of type {schema.type.value} has to be put in a struct")
    builder = _Builder(schema, options)
    return builder.file, builder.full_name


def file_text(file: Any) -> str:
    """As the registry takes it. The same for the same schema, always, so that it has one id."""
    return base64.b64encode(file.SerializeToString(deterministic=True)).decode("ascii")


class _Builder:
    def __init__(self, schema: Schema, options: names.ProtobufOptions) -> None:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

        self._options = options
        self._field_proto: Any = FieldDescriptorProto
        self._defined: dict[str, tuple[Schema, str]] = {}
        self._nameless = 0
        package, _, simple = self._name_of(schema).rpartition(".")
        self.file: Any = FileDescriptorProto(syntax="proto3", package=package or None)
        self.full_name = f"{package}.{simple}" if package else _checked(simple)
        self.file.name = f"{self.full_name}.proto"
        self._defined[schema.name or ""] = (schema, f".{self.full_name}")
        self._message(self.file.message_type.add(name=_checked(simple)), schema, f".{self.full_name}")

    def _name_of(self, schema: Schema) -> str:
        if schema.name:
            return schema.name
        self._nameless += 1
        return f"{names.DEFAULT_NAME}{self._nameless}"

    def _message(self, message: Any, schema: Schema, scope: str) -> None:
        members = [member for member in schema.fields if not names.is_union(member.schema)]
        unions = [member.schema for member in schema.fields if names.is_union(member.schema)]
        flat = [*members, *(member for union in unions for member in union.fields)]
        numbers = _numbers([member.schema for member in flat])
        for member in members:
            self._field(message, member.name, member.schema, next(numbers), scope)
        for index, union in enumerate(unions):
            name = (union.name or "").removeprefix(names.UNION).rpartition(".")[2]
            message.oneof_decl.add(name=_checked(name))
            for member in union.fields:
                made = self._field(message, member.name, member.schema, next(numbers), scope, in_oneof=True)
                made.oneof_index = index
        # Those that proto3 makes for `optional` must come after the real ones.
        for made in message.field:
            if made.proto3_optional:
                made.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{made.name}")

    def _field(self, message: Any, name: str, schema: Schema, number: int, scope: str, in_oneof: bool = False) -> Any:
        made = message.field.add(name=_checked(name), number=number, label=self._field_proto.LABEL_OPTIONAL)
        inner = schema
        if schema.type is SchemaType.ARRAY and schema.value_schema:
            inner = schema.value_schema
            if inner.type in (SchemaType.ARRAY, SchemaType.MAP):
                raise DataError(f"Field {name} is an array of {inner.type.value}s, which Protobuf does not have")
        if schema.type in (SchemaType.ARRAY, SchemaType.MAP):
            if in_oneof:
                raise DataError(f"Field {name} of a oneof is repeated, which Protobuf does not have")
            made.label = self._field_proto.LABEL_REPEATED
        self._type(message, made, inner, scope, single=inner is schema and not in_oneof)
        return made

    def _type(self, message: Any, made: Any, schema: Schema, scope: str, *, single: bool) -> None:
        if schema.name is not None and schema.name in names.LOGICAL:
            self._use(made, names.LOGICAL[schema.name])
            if schema.name == DECIMAL_NAME:
                known = {"scale": "scale", names.PRECISION: "precision"}
                self._params(made, {known[key]: text for key, text in schema.parameters.items() if key in known})
        elif schema.type is SchemaType.STRUCT:
            made.type = self._field_proto.TYPE_MESSAGE
            made.type_name = self._nested(message, made.name, schema, scope)
        elif schema.type is SchemaType.MAP:
            made.type = self._field_proto.TYPE_MESSAGE
            made.type_name = self._entry(message, made.name, schema, scope)
        elif names.ENUM in schema.parameters:
            made.type = self._field_proto.TYPE_ENUM
            made.type_name = self._enum(message, schema, scope)
            made.proto3_optional = single and schema.optional and self._options.optional
        else:
            if single and schema.optional and self._options.wrapper:
                self._use(made, names.WRAPPERS[schema.type])
            else:
                made.type = getattr(self._field_proto, names.SCALARS[schema.type])
                made.proto3_optional = single and schema.optional and self._options.optional
            if schema.type in (SchemaType.INT8, SchemaType.INT16):
                self._params(made, {names.CONNECT_TYPE: schema.type.value.lower()})

    def _use(self, made: Any, message_type: str) -> None:
        made.type = self._field_proto.TYPE_MESSAGE
        made.type_name = f".{message_type}"
        self._import(names.FILES[message_type])

    def _import(self, file: str) -> None:
        if file not in self.file.dependency:
            self.file.dependency.append(file)

    def _params(self, made: Any, params: dict[str, str]) -> None:
        from confluent_kafka.schema_registry.confluent import meta_pb2

        self._import(names.META_FILE)
        known: Any = meta_pb2  # its names are made at run time
        made.options.Extensions[known.field_meta].params.update(params)

    # --- types within the message -------------------------------------------------------------------------------------

    def _nested(self, message: Any, field: str, schema: Schema, scope: str) -> str:
        known = self._defined.get(schema.name) if schema.name else None
        if known is not None and known[0].fields == schema.fields:
            return known[1]
        simple = _checked(self._name_of(schema).rpartition(".")[2])
        # A message and a field of one name cannot stand in one message.
        full = f"{scope}.{_free(message, simple if simple != field else f'{simple}Message')}"
        if schema.name and known is None:
            self._defined[schema.name] = (schema, full)
        self._message(message.nested_type.add(name=full.rpartition(".")[2]), schema, full)
        return full

    def _entry(self, message: Any, field: str, schema: Schema, scope: str) -> str:
        keys, values = inner(schema)
        if SchemaType.ARRAY in (keys.type, values.type) or SchemaType.MAP in (keys.type, values.type):
            raise DataError(f"Map {field} has arrays or maps in it, which Protobuf does not have")
        simple = names.camel(field) + names.ENTRY
        full = f"{scope}.{simple}"
        entry = message.nested_type.add(name=simple)
        # Protobuf has maps with such keys only; others are the same bytes, but a list of messages by type.
        entry.options.map_entry = _is_map_key(keys)
        # Types of keys and values stand beside the entry, where protoc would have them.
        self._type(message, entry.field.add(name="key", number=1, label=1), keys, scope, single=False)
        self._type(message, entry.field.add(name="value", number=2, label=1), values, scope, single=False)
        return full

    def _enum(self, message: Any, schema: Schema, scope: str) -> str:
        name = schema.name or schema.parameters[names.ENUM]
        if not name:
            raise DataError(f"An enum of Protobuf needs a name: {schema}")
        simple = _checked(name.rpartition(".")[2])
        prefix = f"{names.ENUM}."
        numbers = {
            key.removeprefix(prefix): int(text) for key, text in schema.parameters.items() if key.startswith(prefix)
        }
        full = f"{scope}.{simple}"
        known = next((each for each in message.enum_type if each.name == simple), None)
        if known is not None:
            if {each.name: each.number for each in known.value} != numbers:
                raise DataError(f"Two different enums have the name {simple} in one message")
            return full
        if 0 not in numbers.values():
            raise DataError(f"Enum {simple} has no symbol of number 0, which proto3 needs")
        made = message.enum_type.add(name=simple)
        for symbol, number in sorted(numbers.items(), key=lambda each: each[1]):
            made.value.add(name=_checked(symbol), number=number)
        made.options.allow_alias = len(set(numbers.values())) < len(numbers)
        return full


def _is_map_key(schema: Schema) -> bool:
    if schema.name in names.LOGICAL or names.ENUM in schema.parameters:
        return False
    return schema.type in _KEY_TYPES


def _numbers(schemas: list[Schema]) -> Any:
    """The number of each field: the one it was read with, else the next that is free."""
    given = [int(schema.parameters[names.TAG]) if names.TAG in schema.parameters else None for schema in schemas]
    taken = {number for number in given if number is not None}
    following = 1
    for number in given:
        if number is None:
            while following in taken:
                following += 1
            number = following
            following += 1
        yield number


def _free(message: Any, simple: str) -> str:
    taken = {each.name for each in message.nested_type} | {each.name for each in message.field}
    number, name = 1, simple
    while name in taken:
        number += 1
        name = f"{simple}{number}"
    return name


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise DataError(f"{name!r} is no name in Protobuf, where letters, digits and _ are allowed")
    return name
