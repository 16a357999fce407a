"""Numbers as Java narrows and parses them: integers wrap, floats are cut, text has no blanks or underscores."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from headgate.pipeline.text import float32

_INTEGER: Final = re.compile(r"[+-]?\d{1,100}")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?")
_FLOAT: Final = re.compile(
    r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII
)  # fmt: skip
_HEX: Final = re.compile(r"([+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_BLANKS: Final = "".join(map(chr, range(33)))
_ALL_ZERO: Final = 64
"""Multiples of 10**64 are multiples of 2**64: they wrap to zero."""


def wrap(value: int, bits: int) -> int:
    """As a Java cast to an integer of so many bits."""
    half = 1 << (bits - 1)
    return ((value + half) & ((half << 1) - 1)) - half


def cut(value: float, bits: int) -> int:
    """As a Java cast of a double: towards zero, at most what an int or long holds, and only then wrapped."""
    if math.isnan(value):
        return 0
    half = 1 << (63 if bits == 64 else 31)
    whole = int(max(-half, min(value, half - 1))) if math.isinf(value) else max(-half, min(int(value), half - 1))
    return wrap(whole, bits)


def cut_decimal(value: Decimal, bits: int = 64) -> int:
    """As BigDecimal.longValue and its like: towards zero, then wrapped."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= _ALL_ZERO or value.adjusted() < 0:
        return 0
    return wrap(int(value), bits)


def float32_of(value: int | Decimal) -> float:
    """The FLOAT32 nearest to the exact value, which is not always the one nearest to its FLOAT64."""
    double = float(value)
    if double != value and math.isfinite(double):
        # Between two doubles: the one with the odd last bit cannot be mistaken for the middle of two floats.
        low = double if double < value else math.nextafter(double, -math.inf)
        high = math.nextafter(low, math.inf)
        double = low if _odd(low) else high
    return float32(double)


def _odd(value: float) -> bool:
    # The mantissa as an integer of 53 bits.
    return int(math.frexp(value)[0] * (1 << 53)) % 2 == 1


def parse_integer(text: str, bits: int) -> int:
    """As Integer.parseInt and its like. Raises ValueError."""
    half = 1 << (bits - 1)
    if _INTEGER.fullmatch(text) is None or not -half <= (found := int(text)) < half:
        raise ValueError(text)
    return found


def parse_double(text: str) -> float:
    """As Double.parseDouble. Raises ValueError."""
    text = text.strip(_BLANKS)
    if hexadecimal := _HEX.fullmatch(text):
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    if _FLOAT.fullmatch(text) is None:
        raise ValueError(text)
    return float(text if text[-1] in "yN" else text.rstrip("fFdD"))


def parse_float(text: str) -> float:
    """As Float.parseFloat. Raises ValueError."""
    double = parse_double(text)
    try:
        return float32_of(parse_decimal(text.strip(_BLANKS).rstrip("fFdD")))
    except ValueError:
        return float32(double)


def parse_decimal(text: str) -> Decimal:
    """As new BigDecimal. Raises ValueError."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(text) from None
