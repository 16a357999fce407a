"""Columns of source tasks: what fits the schema is taken, whatever its type of Arrow; what does not is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import Schema
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, arrow_type
from headgate.pipeline.columns.given import given
from headgate.pipeline.columns.objects import objects

POINT = s.struct({"x": s.INT32, "y": s.OPTIONAL_STRING})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.int64()),
        (pa.array([1.5], pa.float32()), pa.float64()),
        (pa.array(["a"], pa.large_string()), pa.string()),
        (pa.array([b"a"], pa.binary(1)), pa.binary()),
        (pa.array([[1], None], pa.large_list(pa.uint8())), pa.list_(pa.int64())),
        (pa.array([{"a": 1, "b": None}]), pa.struct({"a": pa.int64(), "b": pa.null()})),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string()),
        (pa.array([True]), pa.bool_()),
    ],
)
def test_without_schema_there_are_few_types(column: pa.Array, expected: pa.DataType) -> None:
    found = given(column, None)
    assert found.data.type == expected
    assert found.data.to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("column", "schema"),
    [
        (pa.array([1, None], pa.int64()), s.INT8.as_optional()),
        (pa.array([1.5], pa.float32()), s.FLOAT64),
        (pa.array(["a"], pa.large_string()), s.STRING),
        (pa.array([b"a"], pa.large_binary()), s.BYTES),
        (pa.array([{"y": "b", "x": 1, "z": 5}, None]), POINT.as_optional()),
        (pa.array([{"x": 1}]), POINT),
        (pa.array([[1, 2], None, []], pa.list_(pa.int64())), s.array(s.INT16, optional=True)),
        (pa.array([[1, 2], None, []], pa.list_(pa.int64()))[1:], s.array(s.INT16, optional=True)),
        (pa.array([1000], pa.timestamp("us", "UTC")), s.TIMESTAMP),
        (pa.array([dt.date(2020, 1, 1)]), s.DATE),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), s.mapping(s.STRING, s.INT32)),
        (pa.nulls(2), s.OPTIONAL_STRING),
    ],
)
def test_with_a_schema_columns_become_its_type(column: pa.Array, schema: Schema) -> None:
    found = given(column, schema)
    found.data.validate(full=True)
    assert (found.data.type, found.schema) == (arrow_type(schema), schema)
    assert [item is None for item in objects(found)] == [item is None for item in column.to_pylist()]


def test_fields_are_found_by_their_names() -> None:
    assert [item and item.values for item in objects(given(pa.array([{"y": "b", "x": 1}]), POINT))] == [[1, "b"]]


def test_bytes_become_text_with_a_mark_for_what_is_none() -> None:
    assert given(pa.array([b"a", b"\xff", None]), s.STRING).data.to_pylist() == ["a", "\ufffd", None]


@pytest.mark.parametrize(
    ("column", "schema"),
    [
        (pa.array([300]), s.INT8),
        (pa.array([1.0]), s.INT8),
        (pa.array([1]), s.FLOAT64),
        (pa.array([1.5]), s.FLOAT32),
        (pa.array([1]), s.STRING),
        (pa.array(["a"]), s.BYTES),
        (pa.array([1]), s.BOOLEAN),
        (pa.array([1500], pa.timestamp("us", "UTC")), s.TIMESTAMP),
        (pa.array([1], pa.timestamp("ms")), s.TIMESTAMP),
        (pa.array([Decimal("1.5")]), s.decimal(3)),
        (pa.array([{"x": "a"}]), POINT),
        (pa.array([["a"]]), s.array(s.INT16)),
    ],
)
def test_what_is_not_of_its_schema_is_refused(column: pa.Array, schema: Schema) -> None:
    with pytest.raises(NotByColumns):
        given(column, schema)


@pytest.mark.parametrize("value", [dt.date(2020, 1, 1), Decimal(1), dt.timedelta(1), {"a": [dt.time(1)]}])
def test_what_needs_a_schema_is_refused_without_one(value: Any) -> None:
    with pytest.raises(NotByColumns):
        given(pa.array([value]), None)
