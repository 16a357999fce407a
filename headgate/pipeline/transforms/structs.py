"""Structs, and maps without a schema: what a transform must be given, or else the record fails; what it makes of them.

Structs are read and made as lists of values, in the order of their fields: by name and one by one takes far longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.api import DataError, Field, Schema, Struct
from headgate.api import schema as schemas
from headgate.pipeline.text import java_class


def require_map(value: Any, purpose: str) -> Mapping[str, Any]:
    # A dict needs no look at what a Mapping is.
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}")


def require_struct(value: Any, purpose: str) -> Struct:
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")


def values_of(value: Struct, *, replace_null: bool) -> list[Any]:
    """A new list; with `replace_null`, a default stands where nothing was set."""
    if not replace_null or None not in value.values:
        return value.values.copy()
    return [
        member.schema.default if item is None else item
        for item, member in zip(value.values, value.schema.fields, strict=True)
    ]


def struct_of(schema: Schema, values: list[Any]) -> Struct:
    """Takes the list as it is, with values that fit. Raises DataError where a required one is null."""
    if None in values:
        for item, member in zip(values, schema.fields, strict=True):
            if item is None and not member.schema.optional:
                schemas.validate_value(member.schema, None, member.name)
    return Struct.of(schema, values)


def rebuilt(
    schema: Schema, fields: Iterable[tuple[str, Schema]], *, optional: bool = False, default: Any = None
) -> Schema:
    """A STRUCT schema with the name, version, doc and parameters of another one. Raises DataError."""
    members: dict[str, Schema] = {}
    for name, member in fields:
        if not name:
            raise DataError("fieldName cannot be null.")
        if name in members:
            raise DataError(f"Cannot create field because of field name duplication {name}")
        members[name] = member
    return schemas.struct(
        members,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        optional=optional,
        default=default,
    )


def member_of(schema: Schema, name: str) -> Field:
    """Raises DataError when there is none."""
    found = schema.field(name)
    if found is None:
        raise DataError(f"Field does not exist: {name}")
    return found


def members_of(schema: Schema) -> list[tuple[str, Schema]]:
    if schema.type is not schemas.SchemaType.STRUCT:
        raise DataError("Cannot list fields on non-struct type")
    return [(member.name, member.schema) for member in schema.fields]
