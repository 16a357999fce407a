"""What the tests with a schema registry share: converters that do not wait, and schemas with values that fit."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from hypothesis import strategies as st

from headgate.api import Schema, SchemaType, Struct
from headgate.api.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_NAME,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    mapping,
    struct,
)
from headgate.java.numbers import float32
from headgate.pipeline.converters.registry.converter import RegistryConverter

C = TypeVar("C", bound=RegistryConverter)


def configured(cls: type[C], url: str, *, is_key: bool = False, **settings: Any) -> C:
    """Keys with `_` for `.`; retries of the client are off."""
    made = cls()
    given = {key.replace("_", "."): str(value) for key, value in settings.items()}
    made.configure({"schema.registry.url": url, "max.retries": "0", **given}, is_key=is_key)
    return made


_kept: dict[tuple[Any, ...], RegistryConverter] = {}


def kept(cls: type[C], url: str, **settings: Any) -> C:
    """The same, but only one for each configuration: to make one takes longer than to use it."""
    key = (cls, url, *sorted(settings.items()))
    if key not in _kept:
        _kept.clear()
        _kept[key] = configured(cls, url, **settings)
    found = _kept[key]
    assert isinstance(found, cls)
    return found


LEAVES = [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES, DATE, TIME, TIMESTAMP, decimal(3)]
_NAMES = st.sampled_from(["a", "b", "c_d", "Zz9", "value", "key2"])
_MS = st.integers(-60_000_000_000_000, 250_000_000_000_000)


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Of this schema; null where that may be."""
    made = _values(schema)
    return st.none() | made if schema.optional else made


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    bits = {SchemaType.INT8: 7, SchemaType.INT16: 15, SchemaType.INT32: 31, SchemaType.INT64: 63}
    if schema.name == DECIMAL_NAME:
        return st.integers(-(10**12), 10**12).map(lambda number: Decimal(number).scaleb(-3))
    if schema.name == DATE.name:
        return st.dates()
    if schema.name == TIME.name:
        return st.integers(0, 86_399_999).map(lambda ms: (dt.datetime.min + dt.timedelta(milliseconds=ms)).time())
    if schema.name == TIMESTAMP.name:
        return _MS.map(lambda ms: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms))
    match schema.type:
        case kind if kind in bits:
            return st.integers(-(1 << bits[kind]), (1 << bits[kind]) - 1)
        case SchemaType.FLOAT32:
            return st.floats(-1e6, 1e6, width=32).map(lambda number: float32(number) + 0.0)
        case SchemaType.FLOAT64:
            return st.floats(-1e12, 1e12).map(lambda number: number + 0.0)
        case SchemaType.BOOLEAN:
            return st.booleans()
        case SchemaType.STRING:
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
        case SchemaType.BYTES:
            return st.binary(max_size=5)
        case SchemaType.ARRAY if schema.value_schema:
            return st.lists(values(schema.value_schema), max_size=3)
        case SchemaType.MAP if schema.key_schema and schema.value_schema:
            return st.dictionaries(values(schema.key_schema), values(schema.value_schema), max_size=3)
    members = {each.name: _or_unset(each.schema) for each in schema.fields}
    return st.fixed_dictionaries(members).map(lambda found: Struct(schema, found))


def _or_unset(schema: Schema) -> st.SearchStrategy[Any]:
    return values(schema) if schema.default is None else st.none() | values(schema)


def schemas(*, nulls_inside: bool = True, nested: bool = True) -> st.SearchStrategy[Schema]:
    """Structs. `nested`: arrays of arrays and so on."""
    leaf = st.sampled_from(LEAVES)
    item = st.tuples(leaf, st.booleans()).map(lambda each: replace(each[0], optional=each[1] and nulls_inside))

    def around(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
        lists = inner.map(array)
        maps = st.tuples(st.sampled_from([STRING, INT32, INT64, BOOLEAN]), inner).map(lambda each: mapping(*each))
        structs = st.dictionaries(_NAMES, inner | maps | lists, min_size=1, max_size=3).map(struct)
        return (lists | maps | structs) if nested else structs

    inner = st.recursive(item, around, max_leaves=5)
    return st.dictionaries(_NAMES, inner, min_size=1, max_size=4).map(struct)


def schemas_with_values(**options: bool) -> st.SearchStrategy[tuple[Schema, Any]]:
    return schemas(**options).flatmap(lambda schema: st.tuples(st.just(schema), _values(schema)))


def bare(value: Any) -> Any:
    """Without schemas, to compare what different schemas describe."""
    if isinstance(value, Struct):
        return {each.name: bare(value.get_without_default(each.name)) for each in value.schema.fields}
    if isinstance(value, list | tuple):
        return [bare(item) for item in value]
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    return value
