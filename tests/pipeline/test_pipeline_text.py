"""The text of values is that of Java's toString."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from headgate.api import Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.text import java_class, text

POINT = s.struct({"a": s.INT32, "b": s.OPTIONAL_STRING, "f": s.FLOAT32.as_optional()})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        (None, "null"),
        (1.0, "1.0"),
        ([1, None, "x", True, 1.0, 1e20], "[1, null, x, true, 1.0, 1.0E20]"),
        ((), "[]"),
        ({"a": 1, "b": "x"}, "{a=1, b=x}"),
        ({1: {"n": []}, None: 2.5}, "{1={n=[]}, null=2.5}"),
        (Struct(POINT, {"a": 1}), "Struct{a=1}"),
        (Struct(POINT, {"a": 1, "b": "x", "f": 1.1}), "Struct{a=1,b=x,f=1.1}"),
        (Decimal("123.40"), "123.40"),
        (Decimal("1E+3"), "1E+3"),
        (Decimal("0E-10"), "0E-10"),
        (Decimal("-0.0"), "0.0"),
        (dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC), "Tue Nov 14 22:13:20 UTC 2023"),
        (dt.datetime(2023, 11, 14, 22, 13, 20), "Tue Nov 14 22:13:20 UTC 2023"),
        (dt.date(1970, 1, 2), "Fri Jan 02 00:00:00 UTC 1970"),
        (dt.date(1582, 10, 14), "Thu Oct 04 00:00:00 UTC 1582"),  # Java's calendar is Julian before
        (dt.date(1, 1, 1), "Mon Jan 03 00:00:00 UTC 1"),
        (dt.time(1, 2, 3), "Thu Jan 01 01:02:03 UTC 1970"),
        (b"caf\xc3\xa9", "café"),
        ([b"x"], "[x]"),
    ],
)
def test_the_text_is_javas(value: Any, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.1, "1.1"),
        (0.1, "0.1"),
        (16777216.0, "1.6777216E7"),
        (1e10, "1.0E10"),
        (1e-45, "1.4E-45"),
        (3.4028235e38, "3.4028235E38"),
        (1e300, "Infinity"),
        (math.nan, "NaN"),
        (0.0, "0.0"),
    ],
)
def test_a_float32_shows_no_more_digits_than_it_has(number: float, expected: str) -> None:
    assert text(number, s.FLOAT32) == expected
    assert text([number], s.array(s.FLOAT32)) == f"[{expected}]"


def test_null_is_null_in_whatever_it_is() -> None:
    assert text([None], s.array(s.FLOAT32.as_optional())) == "[null]"
    assert text({"a": None}, s.mapping(s.STRING, s.array(s.INT8, optional=True))) == "{a=null}"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("x", "java.lang.String"),
        (1, "java.lang.Long"),
        (1 << 63, "java.math.BigInteger"),
        (True, "java.lang.Boolean"),
        (1.5, "java.lang.Double"),
        (b"", "[B"),
        ([], "java.util.ArrayList"),
        ({}, "java.util.HashMap"),
        (Decimal(1), "java.math.BigDecimal"),
        (dt.time(), "java.util.Date"),
        (Struct(POINT), "org.apache.kafka.connect.data.Struct"),
        (None, "null"),
        (Schema, "builtins.type"),
    ],
)
def test_error_messages_name_the_java_class(value: Any, name: str) -> None:
    assert java_class(value) == name
