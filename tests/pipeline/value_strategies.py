"""Connect schemas with values that fit, shapes of values without schema, and columns of both, drawn by Hypothesis."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from headgate.api import Schema, SchemaType, Struct
from headgate.api import schema as schemas
from headgate.api.frame import Values
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.pipeline.columns.objects import values_of

Drawn = st.SearchStrategy[Any]

_DIGITS: Final = 38
_COUNTS: Final = st.integers(0, 5)
_SIZES: Final = st.integers(0, 3)
_NULL: Final = st.sampled_from([False, False, True])
_YES: Final = st.booleans()
_RARELY: Final = st.sampled_from([False] * 6 + [True])
_KINDS: Final = st.sampled_from(["plain", "plain", "struct", "struct", "array", "map"])

# --- plain values -----------------------------------------------------------------------------------------------------

NAMES: Final = ("a", "b", "c", "id", "a.b", 'q"\\', "é😀", "", "\x1f", "null")
_FIELDS: Final = st.lists(st.sampled_from(NAMES), unique=True, max_size=4)
TEXTS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["", "null", "true", "12", '"', "\\", "\n\t\b\f\r\x00\x1f", "a, b=c", "é", "€", "😀", "\uffff", "\x7f\u2028"]
)
BYTES: Final = st.binary(max_size=8) | st.sampled_from([b"", b"\xff", b"\xed\xa0\x80", b"\xc3", "é😀".encode()])


def integers(bits: int) -> Drawn:
    half = 1 << (bits - 1)
    return st.integers(-100, 100) | st.integers(-half, half - 1) | st.sampled_from([-half, half - 1])


def floats(width: int) -> Drawn:
    """Of 32 bits or 64, NaN and infinities among them. Java writes some as powers of ten."""
    edges = [0.0, -0.0, 1.0, -1.5, 1e-3, 9.99e-4, 1e7, 9999999.5, 2.0**22 + 0.25, 2.0**53, 2.0**63, 1e-300, 5e-324]
    whole = st.integers(-10_000, 10_000)
    cents = whole.map(lambda found: found / 100)
    chosen = st.sampled_from(edges) | cents | whole.map(float)
    return st.floats(width=64) | chosen if width == 64 else st.floats(width=32) | chosen.map(_narrow)


def _narrow(value: float) -> float:
    return float(np.float32(value))


def decimals(scale: int) -> Drawn:
    most = 10**_DIGITS - 1
    unscaled = (
        st.integers(-1000, 1000) | st.integers(-most, most) | st.sampled_from([most, -most, 127, 128, -128, -129])
    )
    return unscaled.map(lambda found: Decimal((int(found < 0), tuple(map(int, str(abs(found)))), -scale)))


DATES: Final = st.dates() | st.sampled_from([dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1582, 10, 4)])
TIMES: Final = st.integers(0, 86_399_999).map(lambda ms: (dt.datetime.min + dt.timedelta(milliseconds=ms)).time())
TIMESTAMPS: Final = (
    st.datetimes() | st.sampled_from([dt.datetime.min, dt.datetime(1969, 12, 31, 23, 59, 59, 999000)])
).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=dt.UTC))

# --- with schemas -----------------------------------------------------------------------------------------------------

_PLAIN: Final[Mapping[SchemaType, Drawn]] = {
    SchemaType.INT8: integers(8),
    SchemaType.INT16: integers(16),
    SchemaType.INT32: integers(32),
    SchemaType.INT64: integers(64),
    SchemaType.FLOAT32: floats(32),
    SchemaType.FLOAT64: floats(64),
    SchemaType.BOOLEAN: st.booleans(),
    SchemaType.STRING: TEXTS,
    SchemaType.BYTES: BYTES,
}
_LOGICAL: Final[Mapping[str, Drawn]] = {DATE_NAME: DATES, TIME_NAME: TIMES, TIMESTAMP_NAME: TIMESTAMPS}
_DECIMALS: Final = {scale: decimals(scale) for scale in (0, 1, 2, 8, _DIGITS)}
_TEMPORAL_SCHEMAS: Final = (schemas.DATE, schemas.TIME, schemas.TIMESTAMP)
LOGICAL_SCHEMAS: Final = st.sampled_from([*_TEMPORAL_SCHEMAS, *map(schemas.decimal, _DECIMALS)])
PLAIN_SCHEMAS: Final = st.sampled_from([Schema(kind) for kind in _PLAIN]) | LOGICAL_SCHEMAS
_KEYS: Final = st.just(schemas.STRING) | PLAIN_SCHEMAS


@st.composite
def schemas_of(draw: st.DrawFn, depth: int = 2, *, defaults: bool = True) -> Schema:
    """Any, with structs, arrays and maps up to this depth; optional or not, most of them without default."""
    return _schema(draw, depth, defaults=defaults)


def _schema(draw: st.DrawFn, depth: int, *, defaults: bool) -> Schema:
    kind = draw(_KINDS) if depth else "plain"
    if kind == "struct":
        fields = {name: _schema(draw, depth - 1, defaults=defaults) for name in draw(_FIELDS)}
        schema = schemas.struct(fields, name="Order" if draw(_RARELY) else None)
    elif kind == "array":
        schema = schemas.array(_schema(draw, depth - 1, defaults=defaults))
    elif kind == "map":
        schema = schemas.mapping(draw(_KEYS), _schema(draw, depth - 1, defaults=defaults))
    else:
        schema = draw(PLAIN_SCHEMAS)
        if schema.name is None and draw(_RARELY):
            schema = replace(schema, name="Kind", version=3, doc="ä", parameters={"p": "q"})
    if draw(_YES):
        schema = schema.as_optional()
    if defaults and draw(_RARELY):
        schema = replace(schema, default=_value(draw, replace(schema, optional=False), lacking=False))
    return schema


@st.composite
def fitting(draw: st.DrawFn, schema: Schema, *, lacking: bool = False) -> Any:
    """A value of the schema: None where it is optional, or anywhere (`lacking`), as records that are wrong have it. In
    structs also where a field has a default."""
    return _value(draw, schema, lacking=lacking)


def _value(draw: st.DrawFn, schema: Schema, *, lacking: bool) -> Any:
    """Drawn without a strategy for each schema: to make those takes longer than to draw from them."""
    if (schema.optional or lacking) and draw(_NULL):
        return None
    if schema.name == DECIMAL_NAME:
        return draw(_DECIMALS[int(schema.parameters["scale"])])
    if schema.name in _LOGICAL:
        return draw(_LOGICAL[schema.name or ""])
    if schema.type is SchemaType.STRUCT:
        return Struct.of(schema, [_member(draw, member.schema, lacking=lacking) for member in schema.fields])
    if schema.value_schema is None:
        return draw(_PLAIN[schema.type])
    items = [_value(draw, schema.value_schema, lacking=lacking) for _ in range(draw(_SIZES))]
    if schema.key_schema is None:
        return items
    keys = replace(schema.key_schema, optional=False)
    return {_value(draw, keys, lacking=False): item for item in items}


def _member(draw: st.DrawFn, schema: Schema, *, lacking: bool) -> Any:
    return None if schema.default is not None and draw(_NULL) else _value(draw, schema, lacking=lacking)


# --- without --------------------------------------------------------------------------------------------------------

_SHAPES: Final[Mapping[pa.DataType, Drawn]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    pa.int64(): integers(64),
    pa.float64(): floats(64),
    pa.string(): TEXTS,
    pa.binary(): BYTES,
}
_PLAIN_SHAPES: Final = st.sampled_from(list(_SHAPES))
_JSON_SHAPES: Final = st.sampled_from([each for each in _SHAPES if each != pa.binary()])


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2, *, binary: bool = True) -> pa.DataType:
    """What Values without schema can be: JSON has no `binary`."""
    return _shape(draw, depth, _PLAIN_SHAPES if binary else _JSON_SHAPES)


def _shape(draw: st.DrawFn, depth: int, plain: st.SearchStrategy[pa.DataType]) -> pa.DataType:
    kind = draw(_KINDS) if depth else "plain"
    if kind == "struct":
        return pa.struct([pa.field(name, _shape(draw, depth - 1, plain)) for name in draw(_FIELDS)])
    return draw(plain) if kind == "plain" else pa.list_(_shape(draw, depth - 1, plain))


@st.composite
def of_shape(draw: st.DrawFn, shape: pa.DataType) -> Any:
    """A value of it, or None."""
    return _shaped(draw, shape)


def _shaped(draw: st.DrawFn, shape: pa.DataType) -> Any:
    if draw(_NULL):
        return None
    if pa.types.is_struct(shape):
        return {each.name: _shaped(draw, each.type) for each in shape}
    if pa.types.is_list(shape):
        return [_shaped(draw, shape.value_type) for _ in range(draw(_SIZES))]
    return draw(_SHAPES[shape])


# --- columns ----------------------------------------------------------------------------------------------------------


@st.composite
def typed_values(draw: st.DrawFn, schema: Schema | None = None, *, lacking: bool = False, depth: int = 2) -> Values:
    """Of the schema or any."""
    found = draw(schemas_of(depth)) if schema is None else schema
    items = [_member(draw, found, lacking=lacking) for _ in range(draw(_COUNTS))]
    return _cut(draw, values_of(found, items))


@st.composite
def plain_values(draw: st.DrawFn, shape: pa.DataType | None = None, *, depth: int = 2, binary: bool = True) -> Values:
    """Of the shape or any, without schema."""
    found = draw(shapes(depth, binary=binary)) if shape is None else shape
    return _cut(draw, Values(pa.array([_shaped(draw, found) for _ in range(draw(_COUNTS))], found)))


def any_values(*, lacking: bool = False) -> st.SearchStrategy[Values]:
    return plain_values() | typed_values(lacking=lacking)


def _cut(draw: st.DrawFn, made: Values) -> Values:
    """Some of them from the middle of others, with something left in the fields of structs that are null."""
    if draw(_YES):
        made = replace(made, data=covered(made.data))
    first = draw(_COUNTS) if draw(_YES) else 0
    return replace(made, data=made.data.slice(min(first, len(made)), max(1, draw(_COUNTS))))


def covered(data: pa.Array) -> pa.Array:
    """The same, but structs that are null have fields that are not, as masks leave them."""
    if not pa.types.is_struct(data.type) or not data.type.num_fields:
        return data
    null = data.is_null()
    places = pa.array(np.maximum.accumulate(np.where(null, 0, np.arange(len(data)))), pa.int64())
    fields = [covered(data.field(place)).take(places) for place in range(data.type.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(data.type), mask=null)
