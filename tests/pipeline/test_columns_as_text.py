"""Columns become the text that each value has for itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from numpy.typing import NDArray
from value_strategies import any_values, floats, typed_values

from headgate.api import Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.as_text import as_text
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.text import text

PLACE = s.struct({"city": s.STRING, "zip": s.OPTIONAL_STRING}, optional=True)
ORDER = s.struct({"note": s.OPTIONAL_STRING, "id": s.INT64, "place": PLACE, "tags": s.array(s.OPTIONAL_STRING)})


def shown(values: Values) -> list[str | None]:
    made = as_text(values)
    made.validate(full=True)
    assert made.type == pa.string()
    return list(made.to_pylist())


def one_by_one(values: Values) -> list[str | None]:
    return [None if item is None else text(item, values.schema) for item in objects(values)]


@given(any_values() | typed_values(lacking=True))
def test_the_text_is_that_of_each(values: Values) -> None:
    assert shown(values) == one_by_one(values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (Values(pa.array([{"a": 1, "b": {"c": "x"}}, None])), ["{a=1, b={c=x}}", None]),
        (Values(pa.array([{"a": None, "b": [1.5, None]}])), ["{a=null, b=[1.5, null]}"]),
        (Values(pa.array([{}, None], pa.struct([]))), ["{}", None]),
        (Values(pa.array([[], [[]], None])), ["[]", "[[]]", None]),
        (Values(pa.array([True, None, False])), ["true", None, "false"]),
        (Values(pa.array([b"caf\xc3\xa9", b"\xff", None])), ["café", "\ufffd", None]),
        (Values(pa.nulls(2)), [None, None]),
        (Values(pa.array([], pa.string())), []),
        (Values(pa.array(["x", "y", "z"]).slice(1, 1)), ["y"]),
    ],
)
def test_values_without_schema(values: Values, expected: list[str | None]) -> None:
    assert shown(values) == expected


@pytest.mark.parametrize(
    ("schema", "items", "expected"),
    [
        (
            ORDER,
            [
                Struct(ORDER, {"id": 1, "place": Struct(PLACE, {"city": "Ulm"}), "tags": ["a", None]}),
                Struct(ORDER, {"note": "n", "id": 2, "tags": []}),
            ],
            ["Struct{id=1,place=Struct{city=Ulm},tags=[a, null]}", "Struct{note=n,id=2,tags=[]}"],
        ),
        (PLACE, [Struct(PLACE), Struct(PLACE, {"zip": "8"}), None], ["Struct{}", "Struct{zip=8}", None]),
        (s.mapping(s.INT8, s.FLOAT32.as_optional()), [{1: 1.1, 2: None}, {}], ["{1=1.1, 2=null}", "{}"]),
        (s.decimal(8), [Decimal("0.00000001"), Decimal("12.34000000")], ["1E-8", "12.34000000"]),
        (s.DATE.as_optional(), [dt.date(1582, 10, 14), None], ["Thu Oct 04 00:00:00 UTC 1582", None]),
        (s.TIME, [dt.time(1, 2, 3, 4000)], ["Thu Jan 01 01:02:03 UTC 1970"]),
        (
            s.TIMESTAMP,
            [dt.datetime(2023, 11, 14, 22, 13, 20, 123000, dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 0, dt.UTC)],
            ["Tue Nov 14 22:13:20 UTC 2023", "Wed Dec 31 23:59:59 UTC 1969"],
        ),
    ],
)
def test_values_of_a_schema(schema: Schema, items: list[Any], expected: list[str | None]) -> None:
    assert shown(values_of(schema, items)) == expected


def test_more_rows_than_are_joined_at_a_time() -> None:
    items = [{"a": row if row % 3 else None, "b": f"x{row}", "c": row % 2 == 0, "d": row / 100} for row in range(9000)]
    values = Values(pa.array(items))
    assert shown(values) == one_by_one(values)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("most", [10.0, 9999.99, 9999999.99, 99999999.0])
def test_numbers_with_two_digits_behind_the_point(kind: type, most: float) -> None:
    hundredths: NDArray[Any] = np.round(np.linspace(0, most, 500), 2).astype(kind)
    for numbers in (hundredths, np.concatenate([hundredths, -hundredths - 1]), -hundredths):
        values = Values(pa.array(numbers), s.FLOAT32 if kind is np.float32 else s.FLOAT64)
        assert shown(values) == one_by_one(values)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_at_the_borders_of_what_arrow_and_java_write_alike(kind: type) -> None:
    """Powers of two are nearer to the number below than to the one above, and those who look for few digits forget."""
    powers = 2.0 ** np.arange(-12, 26, dtype=kind)
    tens = 10.0 ** np.arange(-4, 9, dtype=kind)
    edges = np.concatenate([powers, tens, kind(5) * tens])
    near = np.concatenate([edges, np.nextafter(edges, kind(0)), np.nextafter(edges, kind(np.inf))])
    numbers = pa.array(np.concatenate([near, -near, [0.0, -0.0, np.nan, np.inf, -np.inf]]).astype(kind))
    values = Values(numbers, s.FLOAT32 if kind is np.float32 else s.FLOAT64)
    assert shown(values) == one_by_one(values)


@given(floats(32))
def test_any_float32(number: float) -> None:
    values = values_of(s.FLOAT32, [number])
    assert shown(values) == one_by_one(values)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5], pa.float32()),
        pa.array([Decimal(1)]),
        pa.array([1], pa.int32()),
        pa.array([1], pa.timestamp("ns")),
        pa.array(["x"]).dictionary_encode(),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1]], pa.large_list(pa.int64())),
    ],
)
def test_what_has_no_schema_and_is_of_no_known_shape_is_refused(column: pa.Array) -> None:
    with pytest.raises(NotByColumns):
        as_text(Values(column))
