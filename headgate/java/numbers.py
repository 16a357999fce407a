"""Numbers as Java shows, narrows and parses them: integers wrap, floats are cut, text has no blanks or underscores."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?\d{1,100}")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,10})?")
_FLOAT: Final = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX: Final = re.compile(r"([+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_BLANKS: Final = "".join(map(chr, range(33)))
_ALL_ZERO: Final = 64
"""Multiples of 10**64 are multiples of 2**64: they wrap to zero."""
_SMALLEST_NORMAL_32: Final = 2.0**-126


def double_text(value: float) -> str:
    """As Double.toString: `1.0`, `1.0E20`, `NaN`."""
    # Within these bounds Java and Python agree; outside Java counts in powers of ten.
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0.0:
        return repr(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    shown, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = shown.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    if len(digits) == 1:
        # Java takes the nearest number of two digits where one would do: 4.9E-324, not 5.0E-324.
        two = f"{abs(value):.1e}"
        digits, exponent = two[0] + two[2], int(two[4:])
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:]}E{exponent}"


def decimal_text(value: Decimal) -> str:
    """As BigDecimal.toString, which has no negative zero."""
    return str(abs(value) if value.is_zero() else value)


def widened(value: float) -> float:
    """The double whose text is the text of this float: 1.1, though its exact value is 1.10000002384185791015625."""
    single = float32(value)
    if not math.isfinite(single) or single == 0.0:
        return single
    # Six digits always survive, and shorter numbers show fewer; only subnormal ones may need less than six.
    for precision in range(2 if abs(single) < _SMALLEST_NORMAL_32 else 6, 9):
        candidate = float(f"{single:.{precision}g}")
        if float32(candidate) == single:
            return candidate
    return float(f"{single:.9g}")


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


def float32(value: float) -> float:
    """The nearest number that a float of 32 bits can hold."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float32_of(value: int | Decimal) -> float:
    """The float nearest to the exact value, which is not always the one nearest to its double."""
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
