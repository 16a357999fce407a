"""Schemas of JsonConverter: Connect's schemas as JSON, in Apache's order of keys, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headgate.api import DataError, Field, Schema, SchemaType
from headgate.api.schema import DECIMAL_NAME
from headgate.java.numbers import wrap
from headgate.pipeline.converters.json_value import Options, from_tree, to_tree
from headgate.pipeline.schemas import inner

_NAMES: Final[Mapping[SchemaType, str]] = {
    **{kind: kind.value.lower() for kind in SchemaType},
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
}
_TYPES: Final[Mapping[str, SchemaType]] = {name: kind for kind, name in _NAMES.items()}


def schema_tree(schema: Schema, options: Options) -> dict[str, Any]:
    """The schema as JSON writes it. Raises DataError for a default that is no value of the schema."""
    tree: dict[str, Any] = {"type": _NAMES[schema.type]}
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        tree["items"] = schema_tree(schema.value_schema, options)
    elif schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        tree["keys"] = schema_tree(schema.key_schema, options)
        tree["values"] = schema_tree(schema.value_schema, options)
    elif schema.type is SchemaType.STRUCT:
        tree["fields"] = [{**schema_tree(member.schema, options), "field": member.name} for member in schema.fields]
    tree["optional"] = schema.optional
    for key, attribute in (("name", schema.name), ("version", schema.version), ("doc", schema.doc)):
        if attribute is not None:
            tree[key] = attribute
    if schema.parameters:
        tree["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        tree["default"] = to_tree(schema, schema.default, options)
    return tree


def schema_from_tree(tree: Any, options: Options) -> Schema | None:
    """The schema that this JSON describes; None for null. Raises DataError."""
    return None if tree is None else _schema(tree, options)


def has_decimal(schema: Schema) -> bool:
    """Whether numbers of this schema must be read digit by digit."""
    return schema.name == DECIMAL_NAME or any(map(has_decimal, inner(schema)))


def _schema(tree: Any, options: Options) -> Schema:
    name = tree.get("type") if isinstance(tree, dict) else None
    if not isinstance(name, str):
        raise DataError("Schema must contain 'type' field")
    if name not in _TYPES:
        raise DataError(f"Unknown schema type: {name}")
    kind = _TYPES[name]
    keys, values = None, None
    fields: tuple[Field, ...] = ()
    if kind is SchemaType.ARRAY:
        values = _part(tree, "items", "Array schema did not specify the element type", options)
    elif kind is SchemaType.MAP:
        keys = _part(tree, "keys", "Map schema did not specify the key type", options)
        values = _part(tree, "values", "Map schema did not specify the value type", options)
    elif kind is SchemaType.STRUCT:
        fields = _fields(tree, options)
    schema = Schema(
        kind,
        optional=tree.get("optional") is True,
        name=_text(tree, "name"),
        version=_version(tree.get("version")),
        doc=_text(tree, "doc"),
        parameters=_parameters(tree.get("parameters")),
        fields=fields,
        key_schema=keys,
        value_schema=values,
    )
    if "default" not in tree:
        return schema
    default = from_tree(schema, tree["default"], options)
    # Apache's converter reads no default of a struct either.
    if kind is SchemaType.STRUCT or (default is None and not schema.optional):
        raise DataError("Invalid default value")
    return replace(schema, default=default)


def _part(tree: Mapping[str, Any], key: str, missing: str, options: Options) -> Schema:
    if tree.get(key) is None:
        raise DataError(missing)
    return _schema(tree[key], options)


def _fields(tree: Mapping[str, Any], options: Options) -> tuple[Field, ...]:
    members = tree.get("fields")
    if not isinstance(members, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields: dict[str, Field] = {}
    for index, member in enumerate(members):
        name = member.get("field") if isinstance(member, dict) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        if name in fields:
            raise DataError(f"Cannot create field because of field name duplication {name}")
        fields[name] = Field(name, index, _schema(member, options))
    return tuple(fields.values())


def _text(tree: Mapping[str, Any], key: str) -> str | None:
    found = tree.get(key)
    return found if isinstance(found, str) else None


def _version(found: Any) -> int | None:
    return wrap(found, 32) if isinstance(found, int) and not isinstance(found, bool) else None


def _parameters(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    if not all(isinstance(value, str) for value in found.values()):
        raise DataError("Schema parameters must have string values.")
    return dict(found)
