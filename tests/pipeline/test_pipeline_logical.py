"""Logical types keep their value through what they are stored as."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import DataError, Schema, SchemaType
from headgate.api.schema import DECIMAL_NAME, decimal
from headgate.pipeline import logical


@pytest.mark.parametrize(
    ("number", "scale", "data"),
    [
        ("123.45", 2, b"\x30\x39"),
        ("0", 0, b"\x00"),
        ("-1", 0, b"\xff"),
        ("127", 0, b"\x7f"),
        ("128", 0, b"\x00\x80"),
        ("-128", 0, b"\x80"),
        ("-129", 0, b"\xff\x7f"),
        ("1E+3", -3, b"\x01"),
    ],
)
def test_a_decimal_is_stored_as_its_shortest_unscaled_value(number: str, scale: int, data: bytes) -> None:
    assert logical.bytes_of_decimal(decimal(scale), Decimal(number)) == data
    assert logical.decimal_of_bytes(decimal(scale), data) == Decimal(number)


@given(st.integers(-(10**40), 10**40), st.integers(-5, 30))
def test_decimals_survive_with_their_scale(unscaled: int, scale: int) -> None:
    digits = tuple(map(int, str(abs(unscaled))))
    number = Decimal((int(unscaled < 0), digits, -scale))
    read = logical.decimal_of_bytes(decimal(scale), logical.bytes_of_decimal(decimal(scale), number))
    assert read.as_tuple() == number.as_tuple()


def test_a_decimal_must_have_the_scale_of_its_schema() -> None:
    message = "Decimal value has mismatching scale for given Decimal schema. Schema has scale 2, value has scale 3."
    with pytest.raises(DataError, match=message):
        logical.bytes_of_decimal(decimal(2), Decimal("1.234"))


@pytest.mark.parametrize("parameters", [{}, {"scale": "x"}])
def test_a_decimal_schema_without_scale_is_reported(parameters: dict[str, str]) -> None:
    schema = Schema(SchemaType.BYTES, name=DECIMAL_NAME, parameters=parameters)
    with pytest.raises(DataError, match="scale parameter"):
        logical.decimal_of_bytes(schema, b"\x01")


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_a_decimal_that_is_no_number_is_reported(number: str) -> None:
    with pytest.raises(DataError, match="not a number"):
        logical.bytes_of_decimal(decimal(0), Decimal(number))


@given(st.dates(), st.times(), st.datetimes(timezones=st.just(dt.UTC)))
def test_dates_times_and_timestamps_survive_to_the_millisecond(date: dt.date, time: dt.time, at: dt.datetime) -> None:
    assert logical.date_of(logical.days_of(date)) == date
    whole = time.replace(microsecond=time.microsecond // 1000 * 1000)
    assert logical.time_of(logical.ms_of_time(time)) == whole
    assert logical.datetime_of(logical.ms_of(at)) == at.replace(microsecond=at.microsecond // 1000 * 1000)


def test_a_timestamp_of_another_zone_is_the_same_instant() -> None:
    there = dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert logical.ms_of(there) == 1577836800000


@pytest.mark.parametrize("ms", [-1, 86_400_000])
def test_a_time_lies_within_its_day(ms: int) -> None:
    with pytest.raises(DataError, match="greater than 0 and less than 86400000"):
        logical.time_of(ms)


def test_what_python_has_no_date_for_is_reported() -> None:
    with pytest.raises(DataError, match="out of range"):
        logical.date_of(10**8)
    with pytest.raises(DataError, match="out of range"):
        logical.datetime_of(1 << 62)
