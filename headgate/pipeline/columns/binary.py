"""Bytes by columns: from base64, and as the decimals whose unscaled values they are."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES: Final = np.zeros(256, np.uint32)
_VALUES[np.frombuffer(_ALPHABET, np.uint8)] = np.arange(64)
_PAD: Final = ord("=")
_WIDTH: Final = 16
"""Bytes of a decimal of Arrow."""
_LONGEST: Final = 15
"""Bytes of an unscaled value that is certain to have less than 39 digits."""


def from_base64(column: pa.Array) -> pa.Array:
    """From strings that are base64 with its padding."""
    offsets, text = _pieces(column)
    four = _VALUES[text].reshape(-1, 4)
    joined = four[:, 0] << 18 | four[:, 1] << 12 | four[:, 2] << 6 | four[:, 3]
    data = joined.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].reshape(-1)
    filled = np.diff(offsets) > 0
    ends = offsets[1:][filled]
    one, two = text[ends - 1] == _PAD, text[ends - 2] == _PAD
    # For each pad a byte less.
    keep = np.ones(len(data), np.bool_)
    keep[ends[one] // 4 * 3 - 1] = False
    keep[ends[two] // 4 * 3 - 2] = False
    pads = np.zeros(len(column), np.int64)
    pads[filled] = one.astype(np.int64) + two
    made = offsets // 4 * 3
    made[1:] -= np.cumsum(pads)
    buffers = [column.buffers()[0], pa.py_buffer(made.astype(np.int32)), pa.py_buffer(data[keep])]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers, column.null_count)


def to_decimals(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Null for no bytes, and for so many that Arrow may have no room for the value."""
    offsets, data = _pieces(column)
    lengths, ends = np.diff(offsets), offsets[1:]
    fits = (lengths > 0) & (lengths <= _LONGEST)
    rows = np.flatnonzero(fits)
    made = np.zeros((len(column), _WIDTH), np.uint8)
    made[rows[data[ends[rows] - lengths[rows]] >= 0x80]] = 0xFF
    for place in range(lengths[rows].max(initial=0)):
        rows = rows[lengths[rows] > place]
        made[rows, place] = data[ends[rows] - place - 1]
    validity = np.packbits(fits, bitorder="little")
    return pa.Array.from_buffers(kind, len(column), [pa.py_buffer(validity), pa.py_buffer(made)])


def _pieces(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets, and what they refer to. Of a whole array, not of a slice."""
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32)[: len(column) + 1].astype(np.int64)
    return places, np.frombuffer(data or b"", np.uint8)[: places[-1]]
