"""Columns become the JSON that each value has for itself."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import TEXTS, any_values, typed_values

from headgate.api import DataError, Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.java.json import dumps
from headgate.pipeline.columns.as_json import as_json, quoted
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.converters.json_value import Options, to_tree

PLAIN: Final = Options()
NUMERIC: Final = Options(numeric_decimals=True)
KEPT: Final = Options(replace_null=False)
WITH_DEFAULT: Final = replace(s.STRING, default='"')
POINT: Final = s.struct({"a": s.INT32, "b": WITH_DEFAULT})
LINE: Final = s.struct({"from": POINT, "to": POINT.as_optional(), "via": s.array(POINT.as_optional())})


def written(values: Values, options: Options = PLAIN) -> list[str | None]:
    made = as_json(values, options)
    made.validate(full=True)
    assert made.type == pa.string()
    return list(made.to_pylist())


def one_by_one(values: Values, options: Options) -> list[str | Exception | None]:
    return [None if item is None else _one(values.schema, item, options) for item in objects(values)]


def _one(schema: Schema | None, item: Any, options: Options) -> str | Exception:
    try:
        return dumps(to_tree(schema, item, options)).decode()
    except DataError as error:
        return error


@given(any_values() | typed_values(lacking=True), st.builds(Options, st.booleans(), st.booleans()))
def test_the_json_is_that_of_each(values: Values, options: Options) -> None:
    expected = one_by_one(values, options)
    wrong = [isinstance(each, Exception) for each in expected]
    if any(wrong):
        with pytest.raises(NotByColumns) as refused:
            as_json(values, options)
        assert refused.value.rows is not None
        assert refused.value.rows.to_pylist() == wrong
    else:
        assert written(values, options) == expected


@given(st.lists(st.none() | TEXTS), st.integers(0, 3), TEXTS, TEXTS)
def test_texts_between_others(texts: list[str | None], first: int, head: str, tail: str) -> None:
    column = pa.array(texts, pa.string()).slice(first)
    expected = [None if each is None else f"{head}{dumps(each).decode()}{tail}" for each in column.to_pylist()]
    assert quoted(column, head, tail).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (Values(pa.array([{"a": 1, "b": {"c": "x"}}, None])), ['{"a":1,"b":{"c":"x"}}', None]),
        (Values(pa.array([{'q"': None, "é": [1.5, None]}])), ['{"q\\"":null,"é":[1.5,null]}']),
        (Values(pa.array([{}, None], pa.struct([]))), ["{}", None]),
        (Values(pa.array(["\n", "😀", "é"])), ['"\\n"', '"\\uD83D\\uDE00"', '"é"']),
        (Values(pa.array([1e20, float("nan"), -0.0, 7.0])), ["1.0E20", '"NaN"', "-0.0", "7.0"]),
        (Values(pa.array([b"", b"a", b"ab", b"abc"]).slice(1)), ['"YQ=="', '"YWI="', '"YWJj"']),
        (Values(pa.array([True, None, False])), ["true", None, "false"]),
        (Values(pa.nulls(2)), [None, None]),
    ],
)
def test_values_without_schema(values: Values, expected: list[str | None]) -> None:
    assert written(values) == expected


@pytest.mark.parametrize(
    ("schema", "items", "options", "expected"),
    [
        (
            POINT,
            [Struct(POINT, {"a": 1}), Struct(POINT, {"a": 2, "b": "x"})],
            PLAIN,
            ['{"a":1,"b":"\\""}', '{"a":2,"b":"x"}'],
        ),
        (s.mapping(s.STRING, s.INT8), [{"a": 1, "b": 2}, {}], PLAIN, ['{"a":1,"b":2}', "{}"]),
        (s.mapping(s.INT8, s.OPTIONAL_STRING), [{1: "x", 2: None}, {}], PLAIN, ['[[1,"x"],[2,null]]', "[]"]),
        (s.array(s.FLOAT32), [[1.1, 1e10]], PLAIN, ["[1.1,1.0E10]"]),
        (s.decimal(2), [Decimal("1.28"), Decimal("-1.29"), Decimal("0.00")], PLAIN, ['"AIA="', '"/38="', '"AA=="']),
        (s.decimal(2), [Decimal("1.28"), Decimal("0.00")], NUMERIC, ["1.28", "0.00"]),
        (s.DATE, [dt.date(1970, 1, 2), dt.date(1, 1, 1)], PLAIN, ["1", "-719162"]),
        (s.TIME, [dt.time(0, 0, 1, 5000)], PLAIN, ["1005"]),
        (s.TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 1, 5000, dt.UTC)], PLAIN, ["1005"]),
    ],
)
def test_values_of_a_schema(schema: Schema, items: list[Any], options: Options, expected: list[str]) -> None:
    assert written(values_of(schema, items), options) == expected


def point(a: int | None, b: str | None = None) -> Struct:
    return Struct.of(POINT, [a, b])


def test_only_rows_that_lack_something_are_refused() -> None:
    lines: list[list[Any]] = [
        [point(1), None, []],
        [point(None), None, []],
        [point(1), point(2, "x"), [None, point(None)]],
        [point(1), point(2, "x"), [None]],
        [None, None, []],
    ]
    values = values_of(LINE.as_optional(), [None, *(Struct.of(LINE, line) for line in lines)])
    with pytest.raises(NotByColumns) as refused:
        as_json(values, PLAIN)
    assert refused.value.rows is not None
    assert refused.value.rows.to_pylist() == [False, False, True, True, False, True]
    rest = values.where(pa.array([True, True, False, False, True, False]))
    assert written(rest)[2] == '{"from":{"a":1,"b":"\\""},"to":{"a":2,"b":"x"},"via":[null]}'
    with pytest.raises(NotByColumns):  # without defaults, the fields of all others lack something
        as_json(rest, KEPT)


@pytest.mark.parametrize(
    "values",
    [
        Values(pa.array([Decimal(1)])),
        Values(pa.array([1], pa.date32())),
        Values(pa.array([1], pa.int8())),
        values_of(s.mapping(replace(s.STRING, name=s.DATE_NAME), s.INT8), [{dt.date(1970, 1, 1): 1}]),
    ],
)
def test_what_is_of_no_usual_type_is_refused(values: Values) -> None:
    with pytest.raises(NotByColumns):
        as_json(values, PLAIN)
