"""The converters of numbers, and BooleanConverter."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import ConfigError, DataError, Schema
from headgate.api import schema as s
from headgate.pipeline.converters.boolean import BooleanConverter
from headgate.pipeline.converters.numbers import (
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    ShortConverter,
)

CASES: list[tuple[type[NumberConverter], Any, bytes, Schema]] = [
    (ShortConverter, 2, b"\x00\x02", s.INT16),
    (IntegerConverter, -3, b"\xff\xff\xff\xfd", s.INT32),
    (LongConverter, 4, b"\x00\x00\x00\x00\x00\x00\x00\x04", s.INT64),
    (FloatConverter, 5.0, b"\x40\xa0\x00\x00", s.FLOAT32),
    (DoubleConverter, 1.0, b"\x3f\xf0\x00\x00\x00\x00\x00\x00", s.FLOAT64),
]


def configured(cls: type[Any]) -> Any:
    made = cls()
    made.configure({"converter.type": "key"}, is_key=True)
    return made


@pytest.mark.parametrize(("cls", "value", "data", "schema"), CASES)
def test_numbers_both_ways(cls: type[NumberConverter], value: Any, data: bytes, schema: Schema) -> None:
    converter = configured(cls)
    for given_schema in (None, schema, schema.as_optional(), s.STRING):
        assert converter.from_connect("t", given_schema, value) == data
    assert converter.to_connect("t", data) == (schema.as_optional(), value)
    assert converter.from_connect_header("t", "h", schema, value) == data
    assert converter.to_connect_header("t", "h", data) == (schema.as_optional(), value)


@pytest.mark.parametrize("cls", [case[0] for case in CASES])
def test_null_both_ways(cls: type[NumberConverter]) -> None:
    assert configured(cls).from_connect("t", None, None) is None
    assert configured(cls).to_connect("t", None) == (cls.schema, None)


@pytest.mark.parametrize(
    ("cls", "schema", "value", "message"),
    [
        (ShortConverter, None, 40000, "Failed to serialize to short (was class java.lang.Long): "),
        (IntegerConverter, s.INT16, 2, "Failed to serialize to integer (was class java.lang.Short): "),
        (IntegerConverter, None, "x", "Failed to serialize to integer (was class java.lang.String): "),
        (IntegerConverter, None, True, "Failed to serialize to integer (was class java.lang.Boolean): "),
        (LongConverter, s.INT32, 2, "Failed to serialize to long (was class java.lang.Integer): "),
        (LongConverter, None, 1.0, "Failed to serialize to long (was class java.lang.Double): "),
        (FloatConverter, s.FLOAT64, 1.0, "Failed to serialize to float (was class java.lang.Double): "),
        (FloatConverter, None, 1, "Failed to serialize to float (was class java.lang.Long): "),
        (DoubleConverter, None, [], "Failed to serialize to double (was class java.util.ArrayList): "),
    ],
)
def test_other_values(cls: type[NumberConverter], schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError) as error:
        configured(cls).from_connect("t", schema, value)
    assert str(error.value) == message


@pytest.mark.parametrize("cls", [case[0] for case in CASES])
@pytest.mark.parametrize("data", [b"", b"\x01", b"\x00" * 9])
def test_bytes_of_another_length(cls: type[NumberConverter], data: bytes) -> None:
    with pytest.raises(DataError, match=f"^Failed to deserialize {cls.word}: $"):
        configured(cls).to_connect("t", data)


def test_a_float_too_large_is_infinite() -> None:
    assert configured(FloatConverter).from_connect("t", None, 1e300) == b"\x7f\x80\x00\x00"
    assert configured(FloatConverter).to_connect("t", b"\x7f\x80\x00\x00")[1] == math.inf


@given(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))
def test_what_was_written_is_read_again(number: float, whole: int) -> None:
    double, long = configured(DoubleConverter), configured(LongConverter)
    assert double.to_connect("t", double.from_connect("t", None, number))[1] == number
    assert long.to_connect("t", long.from_connect("t", None, whole))[1] == whole


@pytest.mark.parametrize(("value", "data"), [(True, b"\x01"), (False, b"\x00"), (None, None)])
def test_booleans_both_ways(value: bool | None, data: bytes | None) -> None:
    converter = configured(BooleanConverter)
    assert converter.from_connect("t", None, value) == data
    assert converter.from_connect_header("t", "h", s.BOOLEAN, value) == data
    assert converter.to_connect("t", data) == (s.BOOLEAN.as_optional(), value)
    assert converter.to_connect_header("t", "h", data) == (s.BOOLEAN.as_optional(), value)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x00\x01"])
def test_bytes_that_are_no_boolean(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^Failed to deserialize boolean: $"):
        configured(BooleanConverter).to_connect("t", data)


def test_values_that_are_no_boolean() -> None:
    converter = configured(BooleanConverter)
    with pytest.raises(DataError, match=r"^Invalid schema type for BooleanConverter: STRING$"):
        converter.from_connect("t", s.STRING, True)
    with pytest.raises(DataError, match=r"^BooleanConverter is not compatible with objects of type class java.lang.L"):
        converter.from_connect("t", None, 1)


@pytest.mark.parametrize("cls", [ShortConverter, BooleanConverter])
def test_wrong_config(cls: type[Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"^Invalid value x for configuration converter.type: String must be one of: "
    ):
        cls().configure({"converter.type": "x"})
