from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.spark.sink.columns import Columns, Evolution, column_type
from headgate.connectors.spark.sink.ddl import parse

ADD, FAIL, IGNORE = Evolution.ADD, Evolution.FAIL, Evolution.IGNORE
NONE = pa.schema([])
NOON = dt.datetime(2030, 1, 31, 12, tzinfo=dt.UTC)


def columns(ddl: str, evolution: Evolution = FAIL) -> Columns:
    return Columns(parse(ddl), evolution)


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def one(kind: str, value: Any, given: pa.DataType | None = None) -> Any:
    """What becomes of a value in a column of this type; the complaint where it does not fit."""
    fitted = columns(f"c {kind}").fit(pa.table({"c": pa.array([value], given)}))
    return str(fitted.refused[0]) if fitted.refused else fitted.rows.to_pylist()[0]["c"]


@pytest.mark.parametrize(
    ("kind", "value", "given", "expected"),
    [
        ("INT", 7, pa.int64(), 7),
        ("BIGINT", 7.0, None, 7),
        ("TINYINT", -128, None, -128),
        ("DOUBLE", 7, None, 7.0),
        ("FLOAT", 0.5, None, 0.5),
        ("DECIMAL(10,2)", 19.99, None, Decimal("19.99")),
        ("DECIMAL(10,2)", "1e3", None, Decimal("1000.00")),
        ("DECIMAL(3,1)", 42, None, Decimal("42.0")),
        ("DECIMAL(4,1)", Decimal("3.20"), None, Decimal("3.2")),
        ("DATE", "2032-02-29", None, dt.date(2032, 2, 29)),
        ("TIMESTAMP", "2030-01-31T12:00:00Z", None, NOON),
        ("TIMESTAMP", "2030-01-31T14:00:00+02:00", None, NOON),
        ("TIMESTAMP", "2030-01-31 12:00:00", None, NOON),
        ("TIMESTAMP", int(NOON.timestamp() * 1000), None, NOON),
        ("TIMESTAMP", NOON, pa.timestamp("ms", "UTC"), NOON),
        ("TIMESTAMP_NTZ", "2030-01-31T12:00:00", None, NOON.replace(tzinfo=None)),
        ("INT", dt.time(0, 0, 1), pa.time32("ms"), 1000),
        ("ARRAY<INT>", [1, None], None, [1, None]),
        ("MAP<STRING, DOUBLE>", {"a": 1, "b": None}, None, [("a", 1.0), ("b", None)]),
        ("MAP<STRING, INT>", [("a", 1)], pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        ("STRUCT<x: INT, y: STRING>", {"x": 1}, None, {"x": 1, "y": None}),
        ("ARRAY<STRUCT<x: INT>>", [{"x": 1}, None], None, [{"x": 1}, None]),
        ("STRING", None, None, None),
        ("STRUCT<x: INT>", None, pa.struct([pa.field("x", pa.int64())]), None),
    ],
)
def test_a_value_that_means_the_same_fits(kind: str, value: Any, given: pa.DataType | None, expected: Any) -> None:
    assert one(kind, value, given) == expected


@pytest.mark.parametrize(
    ("kind", "value", "complaint"),
    [
        ("INT", 2**31, "A value of type BIGINT does not fit a column of type INT: 2147483648 (field c)"),
        ("INT", 1.5, "A value of type DOUBLE does not fit a column of type INT: 1.5 (field c)"),
        ("INT", "1", "A value of type STRING does not fit a column of type INT (field c)"),
        ("INT", True, "A value of type BOOLEAN does not fit a column of type INT (field c)"),
        ("BOOLEAN", 1, "A value of type BIGINT does not fit a column of type BOOLEAN (field c)"),
        ("STRING", 1, "A value of type BIGINT does not fit a column of type STRING (field c)"),
        ("STRING", b"x", "A value of type BINARY does not fit a column of type STRING (field c)"),
        (
            "DOUBLE",
            2**53 + 1,
            "A value of type BIGINT does not fit a column of type DOUBLE: 9007199254740993 (field c)",
        ),
        ("DECIMAL(4,2)", 19.999, "A value of type DOUBLE does not fit a column of type DECIMAL(4,2): 19.999 (field c)"),
        ("DECIMAL(4,2)", 100, "A value of type BIGINT does not fit a column of type DECIMAL(4,2): 100 (field c)"),
        ("DATE", "2031-02-29", "A value of type STRING does not fit a column of type DATE: 2031-02-29 (field c)"),
        ("TIMESTAMP", "noon", "A value of type STRING does not fit a column of type TIMESTAMP: noon (field c)"),
        ("ARRAY<INT>", [1, 2**40], "A value of type BIGINT does not fit a column of type INT (field c)"),
        ("ARRAY<INT>", 1, "A value of type BIGINT does not fit a column of type ARRAY<INT> (field c)"),
        ("STRUCT<x: INT>", {"x": "a"}, "A value of type STRING does not fit a column of type INT (field c.x)"),
        ("STRUCT<x: INT>", {"y": 1}, "There is no field y in a column of type STRUCT<x: INT> (field c)"),
        ("STRUCT<x: INT NOT NULL>", {"x": None}, "Field x may not be null, and there is no value for it (field c)"),
        ("MAP<INT, INT>", {"a": 1}, "A map with text for keys does not fit a column of type MAP<INT, INT> (field c)"),
    ],
)
def test_a_value_that_would_change_does_not(kind: str, value: Any, complaint: str) -> None:
    assert one(kind, value) == complaint


def test_one_row_that_does_not_fit_leaves_the_others() -> None:
    fitted = columns("id INT, tags ARRAY<INT>").fit(
        table(*({"id": 2**40 if row == 7 else row, "tags": [row] if row != 3 else [2**40]} for row in range(20)))
    )
    assert sorted(fitted.refused) == [3, 7]
    assert fitted.rows.column("id").to_pylist() == fitted.kept.to_pylist() == [n for n in range(20) if n not in (3, 7)]
    assert fitted.rows.column("tags").to_pylist() == [[n] for n in range(20) if n not in (3, 7)]


def test_rows_of_a_slice_are_its_own() -> None:
    whole = table({"tags": [2**40], "s": {"x": 2**40}}, {"tags": [1, 2], "s": {"x": 1}}, {"tags": None, "s": None})
    fitted = columns("tags ARRAY<INT>, s STRUCT<x: INT>").fit(whole.slice(1, 2))
    assert fitted.rows.to_pylist() == [{"tags": [1, 2], "s": {"x": 1}}, {"tags": None, "s": None}]


def test_a_column_that_may_not_be_null_needs_a_value() -> None:
    fitted = columns("id INT NOT NULL, name STRING").fit(table({"id": 1, "name": "a"}, {"id": None, "name": "b"}))
    assert fitted.rows.to_pylist() == [{"id": 1, "name": "a"}]
    assert str(fitted.refused[1]) == "Column id may not be null, and there is no value for it"
    assert list(columns("id INT NOT NULL, name STRING").fit(table({"name": "a"})).refused) == [0]


def test_a_field_without_a_column_is_refused_added_or_left_out() -> None:
    rows = table({"id": 1, "more": None}, {"id": 2, "more": {"x": [1.5]}})
    refused = columns("id BIGINT").fit(rows)
    assert (refused.rows.to_pylist(), list(refused.refused)) == ([{"id": 1}], [1])
    assert str(refused.refused[1]).startswith("There is no column more.")
    ignored = columns("id BIGINT", IGNORE).fit(rows)
    assert (ignored.rows.to_pylist(), ignored.refused) == ([{"id": 1}, {"id": 2}], {})
    added = columns("id BIGINT", ADD).fit(rows)
    assert added.columns.schema == parse("id BIGINT, more STRUCT<x: ARRAY<DOUBLE>>")
    assert added.rows.to_pylist() == rows.to_pylist()


def test_fields_are_added_where_they_are_and_rows_of_before_have_none() -> None:
    before = columns("s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>", ADD)
    old = before.fit(table({"s": {"x": 1}, "l": [{"x": 1}]}))
    new = old.columns.fit(table({"s": {"x": 2, "y": "a"}, "l": [{"x": 2, "y": "b"}], "z": True}))
    assert new.columns.schema == parse("s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<x: INT, y: STRING>>, z BOOLEAN")
    assert new.columns.complete([old.rows, new.rows]).to_pylist() == [
        {"s": {"x": 1, "y": None}, "l": [{"x": 1, "y": None}], "z": None},
        {"s": {"x": 2, "y": "a"}, "l": [{"x": 2, "y": "b"}], "z": True},
    ]


def test_a_column_that_differs_in_capitals_only_is_not_added() -> None:
    fitted = columns("id BIGINT", ADD).fit(table({"ID": 1}))
    assert fitted.columns.schema == parse("id BIGINT")
    assert "Spark does not tell them apart" in str(fitted.refused[0])


def test_until_something_is_written_columns_are_what_comes() -> None:
    forming = Columns(NONE, forming=True)
    first = forming.fit(table({"id": 1, "name": None, "s": {"x": None}, "l": []}))
    assert first.columns.schema == parse("id BIGINT")
    second = first.columns.fit(table({"id": 2, "name": "a", "s": {"x": 1}, "l": ["b"]}))
    assert second.columns.schema == parse("id BIGINT, name STRING, s STRUCT<x: BIGINT>, l ARRAY<STRING>")
    third = second.columns.written().fit(table({"id": 3, "late": 1}))
    assert (third.columns.schema, list(third.refused)) == (second.columns.schema, [0])
    assert second.columns.complete([first.rows, second.rows]).column("name").to_pylist() == [None, "a"]


def test_rows_without_any_value_are_rows_as_soon_as_there_are_columns() -> None:
    fitted = Columns(NONE, forming=True).fit(table({"a": None}, {"a": None}))
    assert (len(fitted.refused), fitted.rows.num_rows) == (2, 0)
    known = columns("b INT")
    fitted = known.fit(table({"a": None}, {"a": None}))
    assert known.complete([fitted.rows]).to_pylist() == [{"b": None}, {"b": None}]


def test_a_column_of_unknown_type_has_that_of_its_values() -> None:
    fitted = Columns(parse("id BIGINT"), unknown=frozenset({"region"})).fit(table({"id": 1, "region": "01"}))
    assert (fitted.columns.schema, fitted.refused) == (parse("id BIGINT, region STRING"), {})
    assert list(fitted.columns.fit(table({"id": 1, "other": 1})).refused) == [0]


def test_required_columns_need_values_whatever_their_types_say() -> None:
    keyed = Columns(parse("id BIGINT, name STRING"), required=("id",))
    fitted = keyed.fit(table({"id": None, "name": "a"}, {"id": 1, "name": None}))
    assert (fitted.rows.to_pylist(), list(fitted.refused)) == ([{"id": 1, "name": None}], [0])
    assert keyed.only(["id"]).fit(table({"id": 2})).rows.to_pylist() == [{"id": 2}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.null(), None),
        (pa.list_(pa.null()), None),
        (pa.struct([]), None),
        (pa.time32("ms"), pa.int32()),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.struct([pa.field("a", pa.null()), pa.field("b", pa.int8())]), pa.struct([pa.field("b", pa.int8())])),
        (pa.map_(pa.string(), pa.time32("ms")), pa.map_(pa.string(), pa.int32())),
    ],
)
def test_what_column_values_make(given: pa.DataType, expected: pa.DataType | None) -> None:
    assert column_type(given) == expected


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, width=32)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), max_size=8), st.sampled_from(Evolution))
def test_each_row_is_kept_or_refused_and_what_is_kept_has_the_columns(
    rows: list[dict[str, Any]], evolution: Evolution
) -> None:
    """Row by row, as without a schema; by neighbours it must be the same."""
    start = columns("a INT, b STRUCT<x: DOUBLE>, c ARRAY<STRING>", evolution)
    now, kept = start, []
    for row in rows:
        try:
            made = pa.Table.from_pylist([row], schema=None if row else NONE)
        except pa.ArrowException:  # a list of this and that: the pipeline refuses it before
            continue
        fitted = now.fit(made)
        assert len(fitted.refused) + fitted.rows.num_rows == made.num_rows
        now = fitted.columns
        kept.append(fitted.rows)
    whole = now.complete(kept)
    assert whole.schema == now.schema
    whole.validate(full=True)
    assert evolution is ADD or now.schema == start.schema
