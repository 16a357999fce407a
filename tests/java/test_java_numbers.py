"""Numbers as Java shows them; how it narrows and parses them is told by the tests of Cast."""

from __future__ import annotations

import math
import struct as binary

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.java.numbers import double_text, float32, widened


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e20, "-1.0E20"),
        (1e16, "1.0E16"),
        (1.2345e-5, "1.2345E-5"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number: float, expected: str) -> None:
    assert double_text(number) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back_from_its_text(number: float) -> None:
    shown = double_text(number)
    assert float(shown) == number
    assert ("E" in shown) == (number != 0 and not 1e-3 <= abs(number) < 1e7)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float32_reads_back_from_its_text(number: float) -> None:
    shown = double_text(widened(number))
    assert binary.pack("<f", float(shown)) == binary.pack("<f", number)
    assert float32(number) == number
