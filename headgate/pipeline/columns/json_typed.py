"""JSON of a known Connect schema by columns: what it looks like, and what becomes of it, as `from_tree` has it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from headgate.api import Schema, SchemaType
from headgate.api.frame import NotByColumns, arrow_type
from headgate.api.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.java.dates.civil import DAY_MS
from headgate.pipeline.columns.json_groups import JsonGroups, Kinds
from headgate.pipeline.columns.json_layout import (
    JsonLayout,
    JsonMember,
    ListOf,
    MapOf,
    Node,
    Settled,
    StructOf,
    struct_column,
)
from headgate.pipeline.columns.json_samples import Differ, is_spaced, kind_of, quoted
from headgate.pipeline.columns.json_scalars import (
    BASE64,
    BOOLEAN,
    TEXT,
    decimal_base64,
    decimal_number,
    integer,
    number,
)
from headgate.pipeline.columns.json_texts import Mask, Texts
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.converters.json_value import Options
from headgate.pipeline.logical import days_of, ms_of
from headgate.pipeline.schemas import BITS

_RANGES: Final[Mapping[str | None, tuple[int, int]]] = {
    DATE_NAME: (days_of(dt.date.min), days_of(dt.date.max)),
    TIME_NAME: (0, DAY_MS - 1),
    TIMESTAMP_NAME: (ms_of(dt.datetime.min), ms_of(dt.datetime.max)),
}
_OTHERS: Final = {SchemaType.BOOLEAN: BOOLEAN, SchemaType.STRING: TEXT, SchemaType.BYTES: BASE64}


def typed_groups(schema: Schema, options: Options) -> JsonGroups:
    """Reads texts of this schema. Raises NotByColumns when there is something in it that columns do not know."""
    _Sample(options, ascii_only=True).node(schema, None)
    return JsonGroups(Kinds(partial(_layouts, schema, options)), schema)


def _layouts(schema: Schema, options: Options, texts: Sequence[str]) -> set[JsonLayout]:
    """Those that these texts have, as far as they are of this schema."""
    found = set()
    for text in texts:
        try:
            node = _Sample(options, ascii_only=text.isascii()).node(schema, orjson.loads(text))
        except (orjson.JSONDecodeError, Differ, NotByColumns):
            continue
        if layout := JsonLayout.of(node, spaced=is_spaced(text)):
            found.add(layout)
    return found


@dataclass(frozen=True, slots=True)
class _Sample:
    options: Options
    ascii_only: bool

    def node(self, schema: Schema, value: Any) -> Node:
        """The kind of values that look like this one; where it is null, as JsonConverter writes them. Raises
        NotByColumns, and Differ."""
        kind = self._kind(schema, value)
        if schema.default is not None and self.options.replace_null:
            return Settled(kind, partial(_with_default, _default(schema)))
        return kind if schema.optional else Settled(kind, _required)

    def _kind(self, schema: Schema, value: Any) -> Node:
        column = arrow_type(schema)
        if pa.types.is_decimal(column):
            numeric = self.options.numeric_decimals if value is None else not isinstance(value, str)
            return decimal_number(column) if numeric else decimal_base64(column)
        if schema.name in _RANGES:
            return integer(column, *_RANGES[schema.name])
        if schema.type is SchemaType.STRUCT:
            return self._struct(schema, value)
        if schema.type is SchemaType.ARRAY and schema.value_schema:
            return ListOf(self.node(schema.value_schema, _first(value if isinstance(value, list) else ())))
        if schema.type is SchemaType.MAP and schema.value_schema:
            if column.key_type != pa.string():
                raise NotByColumns("a map whose keys are no strings")
            return MapOf(self.node(schema.value_schema, _first(value.values() if isinstance(value, dict) else ())))
        if schema.type in BITS:
            half = 1 << (BITS[schema.type] - 1)
            return integer(column, -half, half - 1)
        return _OTHERS.get(schema.type) or number(column)

    def _struct(self, schema: Schema, value: Any) -> StructOf:
        """Fields that the schema does not know are read and forgotten."""
        known = {member.name: member.schema for member in schema.fields}
        given = value if isinstance(value, dict) else dict.fromkeys(known)
        members = []
        for name, item in given.items():
            member = known.get(name)
            node = self.node(member, item) if member else kind_of(item, ascii_only=self.ascii_only)
            members.append(JsonMember(name, quoted(name, ascii_only=self.ascii_only), node))
        missing = {name: self._missing(member) for name, member in known.items() if name not in given}
        return StructOf(tuple(members), partial(_chosen, list(known), missing))

    def _missing(self, schema: Schema) -> pa.Array:
        if schema.default is not None and self.options.replace_null:
            return _default(schema)
        if not schema.optional:
            raise NotByColumns("a required field is missing")
        return pa.nulls(1, arrow_type(schema))


def _first(items: Iterable[Any]) -> Any:
    return next((item for item in items if item is not None), None)


def _default(schema: Schema) -> pa.Array:
    found = values_of(schema, [schema.default])
    if repr(objects(found)) != repr([schema.default]):
        raise NotByColumns("a default of another scale")
    return found.data


def _with_default(default: pa.Array, texts: Texts, column: pa.Array) -> pa.Array:
    if column.null_count == 0:
        return column
    places = np.where(texts.said_null, len(column), np.arange(len(column)))
    return pa.concat_arrays([column, default]).take(pa.array(places))


def _required(texts: Texts, column: pa.Array) -> pa.Array:
    if column.null_count:
        texts.refuse(texts.said_null)
    return column


def _chosen(
    names: Sequence[str], missing: Mapping[str, pa.Array], columns: Mapping[str, pa.Array], null: Mask
) -> pa.Array:
    everywhere = pa.array(np.zeros(len(null), np.int64))
    made = {name: missing[name].take(everywhere) if name in missing else columns[name] for name in names}
    return struct_column(made, null)
