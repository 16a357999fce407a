"""JSON values of Connect's, and back, where a JSON Schema in a registry differs from JsonConverter's envelope.

Maps whose keys are not strings are lists of objects with `key` and `value`, and a `oneOf` is a struct of which one
field is set. The rest is JsonConverter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headgate.api import DataError, Field, Schema, SchemaType, Struct
from headgate.pipeline.converters.json_value import Options, from_tree, node_type, to_tree
from headgate.pipeline.schemas import BITS, has_text_keys

ONE_OF: Final = "io.confluent.connect.json.OneOf"
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)


def to_json(schema: Schema, value: Any, options: Options) -> Any:
    """What JSON writes for this value. Raises DataError."""
    if value is None:
        value = schema.default
    if value is None:
        if schema.optional:
            return None
        raise DataError("Conversion error: null value for field that is required and has no default value")
    match schema.type:
        case SchemaType.ARRAY if items := schema.value_schema:
            return [to_json(items, item, options) for item in value]
        case SchemaType.MAP if (keys := schema.key_schema) and (values := schema.value_schema):
            if has_text_keys(schema):
                return {key: to_json(values, item, options) for key, item in value.items()}
            return [
                {"key": to_json(keys, key, options), "value": to_json(values, item, options)}
                for key, item in value.items()
            ]
        case SchemaType.STRUCT:
            return _struct_json(schema, value, options)
    return to_tree(schema, value, options)


def _struct_json(schema: Schema, value: Struct, options: Options) -> Any:
    pairs = zip(schema.fields, value.values, strict=True)
    if schema.name == ONE_OF:
        for member, each in pairs:
            if each is not None:
                return to_json(member.schema, each, options)
        return to_json(schema, None, options)
    return {member.name: _of_field(to_json, member, each, options) for member, each in pairs}


def _of_field(convert: Callable[[Schema, Any, Options], Any], member: Field, value: Any, options: Options) -> Any:
    try:
        return convert(member.schema, value, options)
    except DataError as error:
        error.within(member.name)
        raise


def from_json(schema: Schema, node: Any, options: Options) -> Any:
    """The value that the schema makes of this node. Raises DataError."""
    if node is not None:
        match schema.type:
            case SchemaType.ARRAY if schema.value_schema:
                return _array(schema.value_schema, node, options)
            case SchemaType.MAP if schema.key_schema and schema.value_schema:
                return _map(schema, schema.key_schema, schema.value_schema, node, options)
            case SchemaType.STRUCT:
                return _struct(schema, node, options)
    return from_tree(schema, node, options)


def _array(items: Schema, node: Any, options: Options) -> list[Any]:
    if not isinstance(node, list):
        raise DataError(f"Arrays should be encoded as JSON arrays, but found {node_type(node)}")
    return [from_json(items, item, options) for item in node]


def _map(schema: Schema, keys: Schema, values: Schema, node: Any, options: Options) -> dict[Any, Any]:
    if has_text_keys(schema):
        if not isinstance(node, dict):
            raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {node_type(node)}")
        return {key: from_json(values, item, options) for key, item in node.items()}
    if not isinstance(node, list):
        raise DataError(
            f"Maps with non-string fields should be encoded as JSON array of objects, but found {node_type(node)}"
        )
    if not all(isinstance(entry, dict) and entry.keys() == {"key", "value"} for entry in node):
        raise DataError("Found invalid map entry, expected an object of key and value")
    return {from_json(keys, each["key"], options): from_json(values, each["value"], options) for each in node}


def _struct(schema: Schema, node: Any, options: Options) -> Struct:
    if schema.name == ONE_OF:
        for member in schema.fields:
            if _is_a(member.schema, node):
                return Struct(schema, {member.name: from_json(member.schema, node, options)})
        raise DataError(f"Did not find matching oneof field for data: {node_type(node)}")
    if not isinstance(node, dict):
        raise DataError(f"Structs should be encoded as JSON objects, but found {node_type(node)}")
    values = [_of_field(from_json, each, node.get(each.name), options) for each in schema.fields]
    return Struct.of(schema, values)


def _is_a(schema: Schema, node: Any) -> bool:
    """Whether this node is one of that member of a oneOf."""
    if schema.type is SchemaType.STRUCT and schema.name != ONE_OF:
        return isinstance(node, Mapping) and {each.name for each in schema.fields} >= node.keys()
    if schema.type is SchemaType.MAP:
        return isinstance(node, dict if has_text_keys(schema) else list)
    if isinstance(node, bool):
        return schema.type is SchemaType.BOOLEAN
    if isinstance(node, int):
        return schema.type in BITS or schema.type in _FLOATS
    if isinstance(node, float | Decimal):
        return schema.type in _FLOATS or schema.type is SchemaType.BYTES
    if isinstance(node, str):
        return schema.type in (SchemaType.STRING, SchemaType.BYTES)
    return isinstance(node, list) and schema.type is SchemaType.ARRAY
