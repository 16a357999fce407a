"""What the tests of columns with a schema registry share: batches of values, and what becomes of them both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from registry_support import bare, schemas, values

from headgate.api import DataError, Schema, SchemaType
from headgate.pipeline.columns.objects import objects
from headgate.pipeline.converters.registry.converter import RegistryConverter

Shown = Callable[[Any], str]
"""A value, so that everything in it can be seen: which zero it is, and the order of maps."""


def exactly(value: Any) -> str:
    return repr(bare(value))


def by_records(
    converter: RegistryConverter, data: Sequence[bytes | None], shown: Shown = exactly
) -> dict[int, tuple[Schema | None, str]]:
    """What is read, with its schema, by row; those that fail are left out."""
    found = {}
    for row, each in enumerate(data):
        try:
            schema, value = converter.to_connect("t", each)
        except DataError:
            continue
        found[row] = schema, shown(value)
    return found


def by_columns(
    converter: RegistryConverter, data: Sequence[bytes | None], shown: Shown = exactly
) -> dict[int, tuple[Schema | None, str]]:
    """The same by columns; what is refused is left out."""
    # A slice, which must not make a difference.
    column = pa.array([b"before", None, *data, b"after"], pa.binary()).slice(2, len(data))
    found: dict[int, tuple[Schema | None, str]] = {}
    for group in converter.read_columns("t", column):
        group.values.data.validate(full=True)
        rows = group.rows.to_pylist()
        assert rows == sorted(rows)
        assert not found.keys() & set(rows)
        for row, value in zip(rows, objects(group.values), strict=True):
            found[row] = group.values.schema, shown(value)
    return found


@st.composite
def schemas_with_rows(draw: st.DrawFn, /, **options: bool) -> tuple[Schema, list[Any]]:
    """Schemas, some of them with defaults, and values of each; null among them, where that may be."""
    schema = draw(schemas(**options).flatmap(_with_defaults))
    schema = replace(schema, optional=draw(st.booleans()))
    return schema, draw(st.lists(values(schema), min_size=1, max_size=8))


@st.composite
def _with_defaults(draw: st.DrawFn, schema: Schema) -> Schema:
    fields = tuple(replace(each, schema=draw(_with_defaults(each.schema))) for each in schema.fields)
    items = None if schema.value_schema is None else draw(_with_defaults(schema.value_schema))
    made = replace(schema, fields=fields, value_schema=items)
    # A default that is a struct has another schema than its field: one without default.
    if made.type is SchemaType.STRUCT or draw(st.integers(0, 3)):
        return made
    return replace(made, default=draw(values(replace(made, optional=False))))


@st.composite
def damaged(draw: st.DrawFn, data: bytes | None) -> bytes | None:
    """Or as it was."""
    if not data:
        return data
    place = draw(st.integers(0, len(data) - 1))
    before, byte, after = data[:place], data[place], data[place + 1 :]
    match draw(st.sampled_from(["flip", "set", "cut", "append", "insert", "nothing"])):
        case "flip":
            return before + bytes([byte ^ 1 << draw(st.integers(0, 7))]) + after
        case "set":
            return before + draw(st.sampled_from([b"\0", b"\1", b"\2", b"\x7f", b"\x80", b"\xff"])) + after
        case "cut":
            return before
        case "append":
            return data + draw(st.binary(min_size=1, max_size=3))
        case "insert":
            return before + draw(st.binary(min_size=1, max_size=9)) + bytes([byte]) + after
    return data
