"""Frames by lot: of any schema or shape, with what is rare in fact. Hypothesis draws the Random; strategies for each
schema would take a hundred times as long."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.api import Schema, SchemaType, Struct
from headgate.api import schema as schemas
from headgate.api.frame import HEADERS, Frame, HeaderColumns, Values
from headgate.java.numbers import float32
from headgate.pipeline.columns.objects import values_of

NAMES: Final = ("", "a", "b", "c", "id", "a.b", "é😀", 'q"')
TEXTS: Final = [
    "", "x", "é😀", "true", "TRUE", "12", "-7", "+5", "007", "128", "-129", "1.5", "1e3", "0x1p3", "NaN", " 1", "٣",
    "-0", "9223372036854775808", "123456789012345678901", "1.1754943508222875e-38", "16777217.000000001", "null",
    "\n\t\x00", "2023-11-14 22:13:20.123", "2023-11-14", "20231114", "2023-13-45 25:61:61.999", "999999999999-01-01",
    "0001-01-01 00:00:00.000", "Tue 10 o'clock PM", "9999-12-31 23:59:59.999", "1582-10-10 00:00:00.000",
]  # fmt: skip
BYTES: Final = [b"", b"x", b"\xff\x00", b'{"a":1}', "é".encode()]
FLOATS: Final = [
    0.0, -0.0, 1.0, -1.5, 0.001, 9.99e-4, 1e7, 9999999.5, 2.0**31, -(2.0**31) - 1, 2.0**53, 2.0**63, -(2.0**63), 1e300,
    5e-324, math.nan, math.inf, -math.inf, 0.1, 3.4028235677973366e38, 1700000000123.0, 0.30000001192092896,
]  # fmt: skip
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EDGES_MS: Final = [0, 1, -1, 1700000000123, 86_400_000, -86_400_001, -62135596800000, 253402300799999, -12219292800000]


def _integer(rng: Random, bits: int) -> int:
    half = 1 << (bits - 1)
    return rng.choice([0, 1, -1, rng.randint(-100, 100), rng.randint(-half, half - 1), -half, half - 1])


def _float(rng: Random) -> float:
    return rng.choice(
        [rng.choice(FLOATS), rng.uniform(-2000, 2000), float(rng.randint(-300, 300)), rng.random() * 1e-5]
    )


def _int64(rng: Random) -> int:
    return rng.choice([_integer(rng, 64), rng.choice(EDGES_MS), rng.randint(0, 2_000_000_000_000)])


def _text(rng: Random) -> str:
    return rng.choice(TEXTS) if rng.random() < 0.9 else "".join(chr(rng.choice([65, 233, 0x1F600])) for _ in range(3))


def _decimal(rng: Random, scale: int) -> Decimal:
    unscaled = rng.choice([0, rng.randint(-999, 999), _integer(rng, 100), 10**38 - 1, 1 - 10**38])
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _moment(rng: Random) -> dt.datetime:
    ms = rng.choice([rng.choice(EDGES_MS), rng.randint(0, 2_000_000_000_000)])
    return EPOCH + dt.timedelta(milliseconds=ms)


_PLAIN: Final[Mapping[SchemaType, Callable[[Random], Any]]] = {
    SchemaType.INT8: lambda rng: _integer(rng, 8),
    SchemaType.INT16: lambda rng: _integer(rng, 16),
    SchemaType.INT32: lambda rng: _integer(rng, 32),
    SchemaType.INT64: _int64,
    SchemaType.FLOAT32: lambda rng: float32(_float(rng)),
    SchemaType.FLOAT64: _float,
    SchemaType.BOOLEAN: lambda rng: rng.random() < 0.5,
    SchemaType.STRING: _text,
    SchemaType.BYTES: lambda rng: rng.choice(BYTES),
}
_LOGICAL: Final[Mapping[str, Callable[[Random], Any]]] = {
    schemas.DATE_NAME: lambda rng: _moment(rng).date(),
    schemas.TIME_NAME: lambda rng: _moment(rng).time(),
    schemas.TIMESTAMP_NAME: _moment,
}
_SHAPES: Final[Mapping[pa.DataType, Callable[[Random], Any]]] = {
    pa.null(): lambda rng: None,
    pa.bool_(): _PLAIN[SchemaType.BOOLEAN],
    pa.int64(): _int64,
    pa.float64(): _float,
    pa.string(): _text,
    pa.binary(): _PLAIN[SchemaType.BYTES],
}


def a_schema(rng: Random, depth: int, *, struct: bool = False) -> Schema:
    kinds = ["plain", "logical", "plain", "logical", "struct", "struct", "array", "map"]
    kind = "struct" if struct else rng.choice(kinds[: 8 if depth else 4])
    if kind == "struct":
        names = rng.sample(NAMES if rng.random() < 0.1 else NAMES[1:], rng.randint(0, 5))
        more = {"name": "n", "version": 2, "doc": "d"} if rng.random() < 0.3 else {}
        schema = schemas.struct({name: a_schema(rng, depth - 1) for name in names}, **more)  # type: ignore[arg-type]
    elif kind == "array":
        schema = schemas.array(a_schema(rng, depth - 1))
    elif kind == "map":
        schema = schemas.mapping(rng.choice([schemas.STRING, schemas.INT32, schemas.DATE]), a_schema(rng, depth - 1))
    elif kind == "logical":
        schema = rng.choice(
            [schemas.DATE, schemas.TIME, schemas.TIMESTAMP, schemas.decimal(rng.choice([0, 2, 20, 38]))]
        )
    else:
        schema = Schema(rng.choice(list(_PLAIN)), name="kind" if rng.random() < 0.1 else None)
    if rng.random() < 0.5:
        schema = schema.as_optional()
    if rng.random() < (0.05 if struct else 0.2):
        schema = replace(schema, default=fitting(rng, replace(schema, optional=False), lacking=False))
    return schema


def fitting(rng: Random, schema: Schema, *, lacking: bool, member: bool = False) -> Any:
    """A value of the schema, or None; with `lacking`, also where it must not be. A member of a struct may be unset."""
    if (lacking or schema.optional or (member and schema.default is not None)) and rng.random() < 0.2:
        return None
    if schema.name == schemas.DECIMAL_NAME:
        return _decimal(rng, int(schema.parameters["scale"]))
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return logical(rng)
    if schema.type is SchemaType.STRUCT:
        return Struct.of(schema, [fitting(rng, each.schema, lacking=lacking, member=True) for each in schema.fields])
    if schema.value_schema is None:
        return _PLAIN[schema.type](rng)
    items = [fitting(rng, schema.value_schema, lacking=lacking) for _ in range(rng.randint(0, 3))]
    if schema.key_schema is None:
        return items
    return {fitting(rng, schema.key_schema, lacking=False): item for item in items}


def a_shape(rng: Random, depth: int, *, map_: bool = False) -> pa.DataType:
    kind = "map" if map_ else rng.choice(["plain", "plain", "map", "list"][: 4 if depth else 2])
    if kind == "map":
        names = rng.sample(NAMES, rng.randint(0, 5))
        return pa.struct([pa.field(name, a_shape(rng, depth - 1)) for name in names])
    return pa.list_(a_shape(rng, depth - 1)) if kind == "list" else rng.choice(list(_SHAPES))


def shaped(rng: Random, shape: pa.DataType, nulls: float) -> Any:
    if rng.random() < nulls:
        return None
    if pa.types.is_struct(shape):
        return {each.name: shaped(rng, each.type, nulls) for each in shape}
    if pa.types.is_list(shape):
        return [shaped(rng, shape.value_type, nulls) for _ in range(rng.randint(0, 3))]
    return _SHAPES[shape](rng)


def some_values(rng: Random, count: int) -> Values:
    """Most of them structs or maps. They may be from the middle of others, and may have something left in the fields of
    structs that are null."""
    nested = rng.random() < 0.8
    if rng.random() < 0.5:
        schema, lacking = a_schema(rng, 2, struct=nested), rng.random() < 0.3
        made = values_of(schema, [fitting(rng, schema, lacking=lacking) for _ in range(count + 2)])
    else:
        shape, nulls = a_shape(rng, 2, map_=nested), rng.choice([0, 0.2, 0.2, 0.8])
        made = Values(pa.array([shaped(rng, shape, nulls) for _ in range(count + 2)], shape))
    data = covered(made.data) if rng.random() < 0.3 else made.data
    return Values(data.slice(rng.randint(0, 2), count), made.schema)


def covered(data: pa.Array) -> pa.Array:
    """The same, but structs that are null have fields that are not, as masks leave them."""
    if not pa.types.is_struct(data.type) or not data.type.num_fields:
        return data
    null = np.asarray(data.is_null())
    places = np.maximum.accumulate(np.where(null, 0, np.arange(len(data))))
    fields = [covered(data.field(place)).take(pa.array(places)) for place in range(data.type.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(data.type), mask=pa.array(null))


def a_frame(rng: Random) -> Frame:
    """Of a source or a sink, with some rows of a batch."""
    count = rng.choice([0, 1, 2, 3, 5, 8])

    def column(kind: pa.DataType, draw: Callable[[], Any], *, nulls: bool = False) -> pa.Array:
        return pa.array([None if nulls and rng.random() < 0.3 else draw() for _ in range(count + 1)], kind).slice(1)

    sink = rng.random() < 0.5
    topics = rng.choice([["t"], ["t", "t2", "é"]])
    times = rng.choice([[1700000000123, 1700000000456], [*EDGES_MS, 2**62, -(2**62)]])
    partitions = rng.choice([0, 1, 1]) if not sink else 0
    return Frame(
        pa.array(sorted(rng.sample(range(20), count)), pa.int64()),
        column(pa.string(), lambda: rng.choice(topics)),
        pa.nulls(count, pa.int32()) if partitions else column(pa.int32(), lambda: rng.randint(0, 9), nulls=not sink),
        column(pa.int64(), lambda: rng.choice(times), nulls=rng.random() < 0.3),
        some_values(rng, count),
        some_values(rng, count),
        HeaderColumns(
            column(HEADERS, lambda: _some_headers(rng), nulls=True) if rng.random() < 0.5 else None,
            tuple((rng.choice("hj"), some_values(rng, count)) for _ in range(rng.randint(0, 1))),
        ),
        column(pa.int64(), lambda: rng.randint(0, 2**63 - 1)) if sink else None,
    )


def _some_headers(rng: Random) -> list[dict[str, Any]]:
    return [{"key": rng.choice("hié"), "value": rng.choice([None, *BYTES])} for _ in range(rng.randint(0, 3))]
