"""What schemas are made of: the schemas within, the keys of maps, the bits of integers."""

from __future__ import annotations

from typing import Final

from headgate.api import Schema, SchemaType

BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
"""Of the integers."""


def inner(schema: Schema) -> list[Schema]:
    """Those of a struct's fields; or of a map's keys and of its values; or of an array's items."""
    within = [member.schema for member in schema.fields]
    return within + [each for each in (schema.key_schema, schema.value_schema) if each is not None]


def has_text_keys(schema: Schema) -> bool:
    """Whether this is a map that the formats of a registry write as one: its keys are strings and never null."""
    keys = schema.key_schema
    return keys is not None and keys.type is SchemaType.STRING and not keys.optional
