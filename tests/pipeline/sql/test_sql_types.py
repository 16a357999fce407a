"""The types that a statement sees, of schemas and of values without one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import DataError, Schema
from headgate.api import schema as schemas
from headgate.pipeline.sql.types import filled, merged, merged_all, same, size, type_of, type_of_values, with_field

I64, F64, TEXT, NULL = pa.int64(), pa.float64(), pa.string(), pa.null()


def struct(**members: pa.DataType) -> pa.StructType:
    return pa.struct(list(members.items()))


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (schemas.INT8, pa.int8()),
        (schemas.INT64, I64),
        (schemas.FLOAT32, pa.float32()),
        (schemas.BOOLEAN, pa.bool_()),
        (schemas.OPTIONAL_STRING, TEXT),
        (schemas.BYTES, pa.binary()),
        (schemas.decimal(2), pa.decimal128(38, 2)),
        (schemas.DATE, pa.date32()),
        (schemas.TIME, pa.time64("us")),
        (schemas.TIMESTAMP, pa.timestamp("us", "UTC")),
        (schemas.array(schemas.INT32), pa.list_(pa.int32())),
        (schemas.mapping(schemas.STRING, schemas.INT32), pa.map_(TEXT, pa.int32())),
        (schemas.struct({"b": schemas.INT32, "a": schemas.STRING}, name="X"), struct(b=pa.int32(), a=TEXT)),
    ],
)
def test_a_schema_has_one_type(schema: Schema, kind: pa.DataType) -> None:
    assert type_of(schema) == kind


def test_a_decimal_that_spark_cannot_hold_is_said() -> None:
    with pytest.raises(DataError, match="scale 40"):
        type_of(schemas.decimal(40))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None], NULL),
        ([1, None], I64),
        ([1, 2.5], F64),
        ([2**63], pa.decimal128(38, 0)),
        ([10**40], F64),
        ([Decimal("1.5"), Decimal("2.25"), 3], pa.decimal128(38, 2)),
        ([Decimal("NaN")], F64),
        ([True, 1], TEXT),
        ([1, "a"], TEXT),
        (["a", b"b"], pa.binary()),
        ([{"a": 1}, {"b": "x"}, {"a": 2.5}], struct(a=F64, b=TEXT)),
        ([{"a": {"x": 1}}, {"a": "text"}], struct(a=TEXT)),
        ([[], [1], [None]], pa.list_(I64)),
        ([[{"a": 1}], [{"b": 1}]], pa.list_(struct(a=I64, b=I64))),
        ([{1: 2}], struct(**{"1": I64})),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        ([dt.date(2024, 1, 1)], pa.date32()),
        ([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], TEXT),
        ([dt.time(1)], pa.time64("us")),
    ],
)
def test_values_without_schema_have_the_type_that_holds_all(values: list[Any], kind: pa.DataType) -> None:
    assert type_of_values(values) == kind


def test_a_value_of_an_unknown_class_is_said() -> None:
    with pytest.raises(DataError, match="class object"):
        type_of_values([{"a": object()}])


def test_merging_does_not_depend_on_the_order() -> None:
    kinds = [NULL, I64, pa.int8(), F64, TEXT, pa.bool_(), pa.decimal128(38, 3), struct(a=I64), pa.list_(I64)]
    for one in kinds:
        for other in kinds:
            assert merged(one, other) == merged(other, one)
    assert merged_all([]) == NULL


def test_a_remembered_type_fills_gaps_and_changes_nothing() -> None:
    met = struct(a=I64, b=struct(c=TEXT), d=pa.list_(struct(x=I64)))
    assert filled(struct(a=TEXT), met) == struct(a=TEXT, b=struct(c=TEXT), d=pa.list_(struct(x=I64)))
    assert filled(NULL, met) == met
    assert filled(struct(d=pa.list_(NULL), b=NULL), met) == struct(d=pa.list_(struct(x=I64)), b=struct(c=TEXT), a=I64)
    assert filled(TEXT, met) == TEXT


def test_a_named_field_is_added_where_it_is_missing() -> None:
    kind = struct(a=struct(b=I64), list=pa.list_(struct(x=I64)), text=TEXT)
    assert with_field(kind, ["A", "B"]) == kind
    assert with_field(kind, ["text", "x"]) == kind
    assert with_field(kind, ["a", "new"]).field("a").type == struct(b=I64, new=NULL)
    assert with_field(kind, ["list", "y"]).field("list").type == pa.list_(struct(x=I64, y=NULL))
    assert with_field(kind, ["new", "deeper"]) == struct(**{field.name: field.type for field in kind}, new=NULL)
    assert with_field(NULL, ["a"]) == NULL
    assert with_field(NULL, ["*"]) == pa.struct([])
    assert with_field(kind, ["*"]) == kind
    assert size(kind) == 5


def test_types_that_are_the_same_to_spark() -> None:
    assert same(pa.list_(pa.field("element", I64, nullable=False)), pa.list_(I64))
    assert same(pa.time64("ns"), pa.time64("us"))
    assert same(pa.timestamp("us", "UTC"), pa.timestamp("us", "Etc/UTC"))
    assert not same(pa.timestamp("us"), pa.timestamp("us", "UTC"))
    assert same(struct(a=I64), pa.struct([pa.field("a", I64, nullable=False)]))
    assert not same(struct(a=I64), struct(b=I64))
    assert not same(pa.int32(), I64)
