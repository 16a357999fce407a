"""Columns of numbers as text, as Java writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.java.numbers import double_text, widened
from headgate.pipeline.columns.pieces import Mask, Piece, Pieces

_ENDS: Final = pa.array(["", ".0"])
_HUNDREDTHS: Final = pa.array([f".{number:02}".rstrip("0") if number else ".0" for number in range(100)])


def float_pieces(data: pa.Array, show: Callable[[float], str] = double_text) -> Pieces:
    """Of 32 or 64 bits. What `show` says of those that Java writes as powers of ten, or that are no numbers. Anything
    where there is null."""
    numbers = _raw(data)
    money = _hundredths(numbers)
    if money is not None:
        return money
    size = np.abs(numbers)
    plain = (size >= 1e-3) & (size < 1e7) | (size == 0)
    text = data.cast(pa.string())
    if not plain.all():
        narrow = data.type == pa.float32()
        text = mended(text, ~plain, data, (lambda item: show(widened(item))) if narrow else show)
    return [Piece(text), Piece(_ENDS, (np.floor(numbers) == numbers) & plain)]


def _hundredths(numbers: NDArray[Any]) -> Pieces | None:
    """Of numbers none of which has more than two digits behind the point, as money has: integers are written sooner.
    With so few digits in all, no other number of so few is the same float."""
    most = 1e6 if numbers.dtype == np.float32 else 1e9
    with np.errstate(all="ignore"):
        parts = np.rint(numbers.astype(np.float64) * 100)
        same = (parts / 100).astype(numbers.dtype) == numbers
        # An integer cannot say that it is zero with a minus.
        if not (same & (np.abs(parts) < most) & (~np.signbit(numbers) | (numbers <= -1))).all():
            return None
    units = np.trunc(parts / 100)
    rest = np.abs(parts - units * 100).astype(np.int32)
    return [Piece(pa.array(units.astype(np.int64)).cast(pa.string())), Piece(_HUNDREDTHS, rest)]


def mended(text: pa.Array, odd: Mask, column: pa.Array, show: Callable[[Any], str]) -> pa.Array:
    """The text, with what `show` says of the odd ones."""
    found = pa.array(odd)
    if column.null_count:
        found = pc.and_(found, column.is_valid())
    return pc.replace_with_mask(text, found, pa.array(list(map(show, column.filter(found).to_pylist())), pa.string()))


def _raw(data: pa.Array) -> NDArray[Any]:
    """Anything where there is null."""
    kind = np.float32 if data.type == pa.float32() else np.float64
    return np.frombuffer(data.buffers()[1], kind)[data.offset : data.offset + len(data)]
