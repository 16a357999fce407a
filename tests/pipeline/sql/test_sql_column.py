"""Keys and values as columns, and columns as another type wants them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import DataError, Struct
from headgate.api import schema as schemas
from headgate.pipeline.sql.column import Side, column, conformed

NOON = dt.datetime(2024, 5, 6, 12, 0, tzinfo=dt.UTC)
ITEM = schemas.struct({"sku": schemas.STRING, "n": schemas.INT32})
ORDER = schemas.struct(
    {
        "id": schemas.INT32,
        "note": schemas.struct({"text": schemas.STRING}, optional=True),
        "items": schemas.array(ITEM),
        "counts": schemas.mapping(schemas.STRING, schemas.INT64),
        "price": schemas.decimal(2),
        "at": schemas.TIMESTAMP,
        "day": schemas.DATE,
        "time": schemas.TIME,
        "size": schemas.Schema(schemas.SchemaType.STRING, default="M"),
    }
)


def order() -> Struct:
    values = {
        "id": 1,
        "items": [Struct(ITEM, {"sku": "x", "n": 2})],
        "counts": {"a": 1},
        "price": Decimal("1.50"),
        "at": NOON,
        "day": NOON.date(),
        "time": dt.time(1, 2),
    }
    return Struct(ORDER, values)


def bare(*values: Any) -> pa.Array:
    array, side = column([None] * len(values), values)
    assert side.typed in (False, None)
    return array


def test_structs_become_structs_with_their_defaults() -> None:
    array, side = column([ORDER, None], [order(), None])
    assert side == Side(True, ORDER)
    (row, nothing) = array.to_pylist()
    assert nothing is None
    assert row == {
        "id": 1,
        "note": None,
        "items": [{"sku": "x", "n": 2}],
        "counts": [("a", 1)],
        "price": Decimal("1.50"),
        "at": NOON,
        "day": NOON.date(),
        "time": dt.time(1, 2),
        "size": "M",
    }


def test_primitives_stay_what_they_are() -> None:
    array, side = column([schemas.OPTIONAL_STRING] * 2, ["a", "\ud800"])
    assert array.to_pylist() == ["a", "?"]
    assert side == Side(True, schemas.OPTIONAL_STRING)


def test_maps_without_schema_become_structs_ragged_or_not() -> None:
    array = bare({"b": 1, "a": "x"}, None, {"a": "y", "c": [{"d": 1}, {"e": 2.5}]})
    assert [field.name for field in array.type] == ["b", "a", "c"]
    assert array.to_pylist() == [
        {"b": 1, "a": "x", "c": None},
        None,
        {"b": None, "a": "y", "c": [{"d": 1, "e": None}, {"d": None, "e": 2.5}]},
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "a", 2.5, True, None], ["1", "a", "2.5", "true", None]),
        ([{"x": 1}, "text", [1, None]], ['{"x":1}', "text", "[1,null]"]),
        ([True, 1], ["true", "1"]),
        ([1.5, 2**60], [1.5, float(2**60)]),
        ([2**70, 1], [Decimal(2**70), Decimal(1)]),
        ([dt.date(2024, 1, 1), "x"], ['"2024-01-01"', "x"]),
        ([b"bytes", "text"], [b"bytes", b"text"]),
    ],
)
def test_where_values_do_not_agree_they_are_text(values: list[Any], expected: list[Any]) -> None:
    assert bare(*values).to_pylist() == expected


def test_dates_and_decimals_without_schema() -> None:
    array = bare({"at": NOON, "day": NOON.date(), "n": Decimal("1.5")})
    assert array.to_pylist() == [{"at": NOON, "day": NOON.date(), "n": Decimal("1.5")}]
    assert array.type.field("n").type == pa.decimal128(38, 1)


def test_two_versions_of_a_schema_share_a_column() -> None:
    old = schemas.struct({"id": schemas.INT32})
    new = schemas.struct({"id": schemas.INT64, "name": schemas.STRING})
    array, side = column([old, new], [Struct(old, {"id": 1}), Struct(new, {"id": 2, "name": "x"})])
    assert array.to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": "x"}]
    assert side == Side(True, None)
    mixed, side = column([old, None], [Struct(old, {"id": 1}), {"other": 2}])
    assert mixed.to_pylist() == [{"other": None, "id": 1}, {"other": 2, "id": None}]
    assert side.typed


def test_nothing_but_null_says_nothing() -> None:
    array, side = column([None, schemas.STRING], [None, None])
    assert array.type == pa.null()
    assert side == Side()
    assert Side().joined(Side(True, ORDER)) == Side(True, ORDER)
    assert Side(True, ORDER).joined(Side()) == Side(True, ORDER)
    assert Side(True, ORDER).joined(Side(True, ITEM)) == Side(True)
    assert Side(False).joined(Side(True, ITEM)) == Side(True)


def test_what_no_type_holds_is_said() -> None:
    with pytest.raises(DataError, match="class object"):
        bare(object())
    with pytest.raises(DataError, match="do not fit"):
        column([schemas.decimal(2)], [Decimal(10) ** 37])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([{"a": 1}, None], pa.struct([("b", pa.string()), ("a", pa.float64())]), [{"b": None, "a": 1.0}, None]),
        ([1, None], pa.int32(), [1, None]),
        ([2**60], pa.float64(), [float(2**60)]),
        ([1], pa.string(), ["1"]),
        ([{"a": 1}], pa.string(), ['{"a":1}']),
        ([None], pa.struct([("a", pa.int64())]), [None]),
        ([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int32()), ("b", pa.null())])), [[{"a": 1, "b": None}]]),
        ([{"a": 1}], pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
        ([{}, {}], pa.struct([]), [{}, {}]),
        ([{"a": {"x": 1}}, {"a": None}], pa.struct([("a", pa.struct([]))]), [{"a": {}}, {"a": None}]),
    ],
)
def test_a_column_as_another_type_wants_it(values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    made = conformed(pa.array(values), kind, "value")
    assert made.type == kind
    assert made.to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["x"], pa.int32()), ([2**40], pa.int32()), ([1.5], pa.int64()), ([True], pa.int64()), (["x"], pa.struct([]))],
)
def test_a_value_that_cannot_be_of_the_type_is_named_by_its_field(values: list[Any], kind: pa.DataType) -> None:
    given = pa.array([{"price": value} for value in values])
    with pytest.raises(DataError, match=r"^value\.price: "):
        conformed(given, pa.struct([("price", kind)]), "value")


def test_a_slice_of_a_column_is_conformed_as_a_slice() -> None:
    given = pa.array([{"a": 1}, {"a": 2}, None, {"a": 3}]).slice(1)
    made = conformed(given, pa.struct([("a", pa.float64()), ("b", pa.string())]), "value")
    assert made.to_pylist() == [{"a": 2.0, "b": None}, None, {"a": 3.0, "b": None}]
