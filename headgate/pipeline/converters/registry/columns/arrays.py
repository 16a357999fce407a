"""Arrow arrays of what cursors have read: one item for each row, null where the row is not live."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Words
from headgate.pipeline.converters.registry.columns.words import WORD, parts

_NOT_ASCII: Final = 0x80
_BITS: Final = 64
# Above this half, a number of 128 bits may have more than the 38 digits that Arrow has room for.
_HIGHEST: Final = 10**38 >> 64


def array(
    cursors: Cursors,
    kind: pa.DataType,
    *buffers: npt.NDArray[Any] | pa.Buffer | None,
    children: list[pa.Array] | None = None,
) -> pa.Array:
    """The buffers are those that Arrow has for this type, without the first, which says what is null."""
    live = cursors.live
    null = None if live is None else pa.py_buffer(np.packbits(live, bitorder="little"))
    given = [null, *(None if each is None else pa.py_buffer(each) for each in buffers)]
    return pa.Array.from_buffers(kind, len(cursors), given, 0 if live is None else -1, children=children)


def booleans(cursors: Cursors, values: Bytes | Words) -> pa.Array:
    """Of 0 and 1."""
    cursors.refuse(values > 1)
    return array(cursors, pa.bool_(), np.packbits(values != 0, bitorder="little"))


def integers(cursors: Cursors, kind: pa.DataType, values: Longs, within: tuple[int, int] | None) -> pa.Array:
    """Those outside of the limits are refused; without limits, the highest bits go where there is no room for them."""
    if within is not None:
        wrong = (values < within[0]) | (values > within[1])
        if wrong.any():
            cursors.refuse(wrong)
            values = np.where(wrong, within[0], values)
    return array(cursors, kind, values.astype(f"<i{kind.bit_width // 8}", copy=False))


def choices(cursors: Cursors, names: pa.Array, values: Longs) -> pa.Array:
    """The names that have these numbers."""
    wrong = values.view(np.uint64) >= len(names)
    if wrong.any():
        cursors.refuse(wrong)
        values = np.where(wrong, 0, values)
    return array(cursors, names.type, *names.take(pa.array(values)).buffers()[1:])


def slices(cursors: Cursors, starts: Longs, lengths: Longs) -> pa.Array:
    """These parts of the data, as binary."""
    return array(cursors, pa.binary(), *parts(cursors.source.data, starts, lengths).buffers()[1:])


def texts(cursors: Cursors, starts: Longs, lengths: Longs) -> pa.Array:
    """The same, as strings; what is no UTF-8 is refused."""
    copied = parts(cursors.source.data, starts, lengths)
    _, offsets, data = copied.buffers()
    if data is not None and data.size and np.frombuffer(data, np.uint8).max() >= _NOT_ASCII:
        try:
            copied.cast(pa.string())
        except pa.ArrowInvalid:
            wrong = np.array([not _is_text(each) for each in copied.to_pylist()])
            cursors.refuse(wrong)
            return texts(cursors, starts, np.where(wrong, 0, lengths))
    return array(cursors, pa.string(), offsets, data)


def decimals(cursors: Cursors, kind: pa.DataType, starts: Longs, lengths: Longs) -> pa.Array:
    """Of the numbers in these parts, the highest byte first."""
    cursors.refuse((lengths < 1) | (lengths > 2 * WORD))
    first = _big_endian(cursors, starts)
    # The number is at the upper end of the words; behind it are bytes that belong to others.
    if not len(lengths) or lengths.max() <= WORD:
        low = first >> _BITS - 8 * lengths
        high = low >> _BITS - 1
    else:
        second = _big_endian(cursors, starts + WORD)
        others = 2 * _BITS - 8 * lengths
        high = first >> others
        # Numpy moves bits by any number of places.
        both = (second.view(np.uint64) >> others.view(np.uint64)).view(np.int64) | first << _BITS - others
        low = np.where(others < _BITS, both, first >> others - _BITS)
        cursors.refuse((high >= _HIGHEST) | (high < -_HIGHEST))
    return array(cursors, kind, np.stack([low, high], axis=1))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _big_endian(cursors: Cursors, at: Longs) -> Longs:
    return cursors.source.words[np.minimum(at, cursors.source.size)].byteswap().view(np.int64)
