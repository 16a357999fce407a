"""Text that shows its type: the rules of SimpleHeaderConverter and InsertHeader."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api import DataError, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.values import parse, show


@pytest.mark.parametrize(
    ("source", "schema", "value"),
    [
        ("1", s.INT8, 1),
        ("-128", s.INT8, -128),
        ("128", s.INT16, 128),
        ("300", s.INT16, 300),
        ("70000", s.INT32, 70000),
        ("5000000000", s.INT64, 5000000000),
        ("9223372036854775808", s.decimal(0), Decimal("9223372036854775808")),
        ("1e400", s.decimal(-400), Decimal("1e400")),
        ("+5", s.INT8, 5),
        ("007", s.INT8, 7),
        (" 12", s.INT8, 12),
        ("1.0", s.INT8, 1),
        ("1.0E5", s.INT32, 100000),
        ("1.5", s.FLOAT32, 1.5),
        ("-.5", s.FLOAT32, -0.5),
        ("0.1", s.FLOAT32, 0.10000000149011612),
        ("3.4e39", s.FLOAT64, 3.4e39),
        ("true", s.BOOLEAN, True),
        (" false ", s.BOOLEAN, False),
        ("null", None, None),
        ("2020-01-01", s.DATE, dt.date(2020, 1, 1)),
        ("14:34:54.346Z", s.TIME, dt.time(14, 34, 54, 346000)),
        ("14\\:34\\:54.346Z", s.TIME, dt.time(14, 34, 54, 346000)),
        ("2020-01-01T00:00:00.000Z", s.TIMESTAMP, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("[1,2]", s.array(s.INT8), [1, 2]),
        ("[ 1 , 300 ]", s.array(s.INT16), [1, 300]),
        ("[1.5,1]", s.array(s.FLOAT32), [1.5, 1.0]),
        ("[1.5,3.4e39]", s.array(s.FLOAT64), [1.5, 3.4e39]),
        ("[1,]", s.array(s.INT8), [1]),
        ("[1]x", s.array(s.INT8), [1]),
        ('["a","b"]', s.array(s.STRING), ["a", "b"]),
        ('["2020-01-01"]', s.array(s.DATE), [dt.date(2020, 1, 1)]),
        ('{"a":1,"b":300}', s.mapping(s.STRING, s.INT16), {"a": 1, "b": 300}),
        ("{1:2,3:4}", s.mapping(s.INT8, s.INT8), {1: 2, 3: 4}),
        ('{"a":{"b":[1]}}', s.mapping(s.STRING, s.mapping(s.STRING, s.array(s.INT8))), {"a": {"b": [1]}}),
        ('{"a":1 "b":2}', s.mapping(s.STRING, s.INT8), {"a": 1, "b": 2}),
    ],
)
def test_text_is_read_as_the_smallest_type_that_fits(source: str, schema: Schema | None, value: Any) -> None:
    assert parse(source) == (schema, value)


@pytest.mark.parametrize(
    ("source", "value"),
    [("[]", []), ("[null]", [None]), ('[1,"a"]', [1, "a"]), ("{}", {}), ('{"a":null}', {"a": None}), ("[[]]", [[]])],
)
def test_lists_and_maps_of_no_one_type_have_no_schema(source: str, value: Any) -> None:
    assert parse(source) == (None, value)


@pytest.mark.parametrize(
    "source",
    [
        *("", " ", "abc", " abc ", '"abc"', '"1"', "True", "true x", "nullx", "12abc", "0x1F", "1_000", "1e", ".5"),
        *("-", "NaN", "-Infinity", "1e99999999999", "2020-1-1", "2020-13-01", "2020-01-01T00:00:00Z", "a:b", "]"),
        *("[1,null]", "[1,2", "[1,", "[,1]", "[1 2]", "[abc]", "{a:1}", '{"a" 1}', '{"a":1', '{"a":', "{null:1}"),
        *("{[1]:2}", "\\[1]", "\\", " [", " {true"),
    ],
)
def test_anything_else_is_the_text_itself(source: str) -> None:
    assert parse(source) == (s.STRING, source)


@pytest.mark.parametrize(("source", "value"), [("1:2", 1), ("1,2", 1)])
def test_a_leading_number_wins_over_what_follows_its_delimiter(source: str, value: int) -> None:
    """Apache's parser has it so."""
    assert parse(source) == (s.INT8, value)


@pytest.mark.parametrize("source", ["[" * 5000, "[" * 5000 + "]" * 5000, '{"a":' * 5000])
def test_lists_and_maps_without_end_are_text_too(source: str) -> None:
    assert parse(source) == (s.STRING, source)


@given(st.text(st.sampled_from('[]{}:,"\\ 1.5eatrunl-020Z'), max_size=12))
def test_no_text_is_too_odd(source: str) -> None:
    schema, value = parse(source)
    assert schema is not None or value is None or isinstance(value, list | dict)


POINT = s.struct({"a": s.INT32, "b": s.OPTIONAL_STRING})


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("x y", None, "x y"),
        (12, None, "12"),
        (1e20, None, "1.0E20"),
        (1.1, s.FLOAT32, "1.1"),
        (True, None, "true"),
        (Decimal("1.50"), None, "1.50"),
        (b"\x01\x02", None, "AQI="),
        ([1, 'a"b\\', None, 1.5], None, '[1,"a\\"b\\\\",null,1.5]'),
        ({"k": b"\x01\x02"}, None, '{"k":"AQI="}'),
        (Struct(POINT, {"a": 1}), None, '{"a":1,"b":null}'),
        (dt.date(2020, 1, 1), None, "2020-01-01"),
        (dt.time(14, 34, 54, 346000), None, "14:34:54.346Z"),
        (dt.datetime(2019, 8, 23, 14, 34, 54, 346000, tzinfo=dt.UTC), None, "2019-08-23T14:34:54.346Z"),
        (dt.date(1970, 1, 1), None, "00:00:00.000Z"),
    ],
)
def test_values_are_shown_as_apache_shows_them(value: Any, schema: Schema | None, expected: str) -> None:
    assert show(value, schema) == expected


def test_a_value_without_type_is_refused() -> None:
    with pytest.raises(DataError, match=r"Failed to serialize unexpected value type builtins\.object"):
        show(object())


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(st.recursive(st.integers(-(2**63), 2**63 - 1) | st.booleans(), lambda inner: st.lists(inner, max_size=3)))
def test_what_was_shown_is_read_back(value: Any) -> None:
    assert parse(show(value))[1] == value
