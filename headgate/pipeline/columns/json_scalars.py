"""Scalars of JSON: which texts are one, and how they become a column.

No pattern admits a text that `JsonConverter` and these columns would read differently; what a pattern cannot tell, such
as whether a number has too many digits, is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.columns.binary import from_base64, to_decimals
from headgate.pipeline.columns.json_texts import Mask, Texts

_MINUS, _T = b"-t"
_WHOLE: Final = "0|-?[1-9][0-9]*"
_ANY_WHOLE: Final = "-?(?:0|[1-9][0-9]*)"
_POWER: Final = "[eE][+-]?[0-9]{1,3}"
_STRING: Final = (
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD](?:[0-7][0-9a-fA-F]{2}|'
    r'[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))))*"'
)
"""Half a surrogate pair is a matter of its own."""
_BASE64: Final = '"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"'
_LARGEST: Final = 2**63 - 1
_LONGEST_INTEGER: Final = len(str(-_LARGEST))
_LONGEST_FLOAT: Final = 100
"""Whether a longer one is refused is a matter of its own, too."""
_LONGEST_DECIMAL: Final = 38
"""That Arrow is certain to have room for."""
_STORED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, slots=True)
class Scalar:
    pattern: str
    """Of texts that are not null."""
    read: Callable[[Texts, Mask], pa.Array]
    """From texts that match, and which of them are null."""


# --- as they are ------------------------------------------------------------------------------------------------------


def _integers(texts: Texts, null: Mask) -> pa.Array:
    try:
        return texts.strings(null).cast(pa.int64())
    except pa.ArrowInvalid:
        pass  # one has more than 64 bits
    large = ~null & (texts.ends - texts.starts > _LONGEST_INTEGER)
    exact = texts.strings(null | large).cast(pa.decimal128(38, 0))
    large |= _is(pc.or_(pc.less(exact, -_LARGEST - 1), pc.greater(exact, _LARGEST)))
    texts.refuse(large)
    return texts.strings(null | large).cast(pa.int64())


def _numbers(texts: Texts, null: Mask) -> pa.Array:
    long = ~null & (texts.ends - texts.starts > _LONGEST_FLOAT)
    texts.refuse(long)
    return texts.strings(null | long).cast(pa.float64())


def _floats(texts: Texts, null: Mask) -> pa.Array:
    column = _numbers(texts, null)
    # What is too small for a float becomes one as well. Java has none, where it reads digit by digit.
    values = _stored(column, np.float64)
    texts.refuse((values == 0.0) & np.signbit(values) & ~null)
    return column


def _strings(texts: Texts, null: Mask) -> pa.Array:
    column = texts.unquoted().strings(null)
    if not texts.escaped:
        return column
    escaped = pc.match_substring(column, "\\").fill_null(False)
    found = '","'.join(column.filter(escaped).to_pylist())
    return pc.replace_with_mask(column, escaped, pa.array(orjson.loads(f'["{found}"]'), pa.string()))


NULL: Final = Scalar("null", lambda texts, _: pa.nulls(len(texts)))
BOOLEAN: Final = Scalar("true|false", lambda texts, null: pa.array(texts.first == _T, mask=null))
INTEGER: Final = Scalar(_WHOLE, _integers)
FLOAT: Final = Scalar(rf"{_ANY_WHOLE}(?:\.[0-9]+(?:{_POWER})?|{_POWER})", _floats)
TEXT: Final = Scalar(_STRING, _strings)

# --- as a schema has it -----------------------------------------------------------------------------------------------


def integer(kind: pa.DataType, low: int, high: int) -> Scalar:
    """One within these bounds, in a column of this type."""
    return Scalar(_WHOLE, partial(_within, kind, low, high))


def number(kind: pa.DataType) -> Scalar:
    """With a point or without, as a float."""
    pattern = rf"{_ANY_WHOLE}(?:\.[0-9]+)?(?:{_POWER})?"
    # There is no minus zero then.
    return Scalar(pattern, lambda texts, null: pc.add(_numbers(texts, null), 0.0).cast(kind))


def decimal_number(kind: pa.DataType) -> Scalar:
    """With as many digits behind the point as the decimals of this type have: another scale would be another value."""
    pattern = rf"{_ANY_WHOLE}\.[0-9]{{{kind.scale}}}" if kind.scale else _WHOLE
    return Scalar(pattern, partial(_decimals, kind))


def decimal_base64(kind: pa.DataType) -> Scalar:
    return Scalar(_BASE64, partial(_unscaled, kind))


def _within(kind: pa.DataType, low: int, high: int, texts: Texts, null: Mask) -> pa.Array:
    column = _integers(texts, null)
    values = _stored(column, np.int64)
    outside = ((values < low) | (values > high)) & ~null
    if outside.any():
        texts.refuse(outside)
        column = pc.if_else(pa.array(outside), pa.scalar(None, pa.int64()), column)
    return column.cast(_STORED[kind.bit_width]).view(kind)


def _decimals(kind: pa.DataType, texts: Texts, null: Mask) -> pa.Array:
    long = ~null & (texts.ends - texts.starts > _LONGEST_DECIMAL)
    column = texts.strings(null | long).cast(kind)
    texts.refuse(long | ((texts.first == _MINUS) & _is(pc.equal(column, pa.scalar(Decimal(0), kind)))))
    return column


def _bytes(texts: Texts, null: Mask) -> pa.Array:
    return from_base64(texts.unquoted().strings(null))


def _unscaled(kind: pa.DataType, texts: Texts, null: Mask) -> pa.Array:
    column = to_decimals(_bytes(texts, null), kind)
    texts.refuse(_is(column.is_null()) & ~null)
    return column


BASE64: Final = Scalar(_BASE64, _bytes)


def _is(mask: pa.Array) -> Mask:
    """Where it is true, and not null."""
    return mask.fill_null(False).to_numpy(zero_copy_only=False)


def _stored(column: pa.Array, kind: type) -> Any:
    """The values of numbers; anything where there is null."""
    return np.frombuffer(column.buffers()[1], kind)[: len(column)]
