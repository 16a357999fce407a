"""Words: bytes in memory that numpy takes eight at a time, at any place, and Arrow in parts of any length."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Words

WORD: Final = 8
"""So many bytes."""


def padded(data: Bytes) -> Bytes:
    """A copy, behind which there is room to read one more word."""
    return np.concatenate([data, np.zeros(WORD, np.uint8)])


def overlapping(data: Bytes) -> Words:
    """The words that begin at each of these bytes, the last seven left out."""
    return np.ndarray(max(0, len(data) - WORD + 1), "<u8", data, strides=(1,))


def parts(data: Bytes, starts: Longs, lengths: Longs) -> pa.Array:
    """These parts of the bytes, which stand in this order, as a binary array. Those that begin behind the next one, or
    behind the end, become something else, but nothing outside is read."""
    # Arrow copies bytes quickly, but only items of arrays. So here is one of all the bytes, whose items are by turns a
    # part, and what lies between it and the next.
    bounds = np.empty(2 * len(starts) + 1, np.int64)
    bounds[:-1:2] = starts
    np.add(starts, lengths, out=bounds[1::2])
    bounds[-1] = len(data)
    if (bounds[1:] < bounds[:-1]).any():
        bounds = np.minimum.accumulate(bounds[::-1])[::-1]
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    by_turns = pa.Array.from_buffers(pa.binary(), 2 * len(starts), buffers, 0)
    return by_turns.take(pa.array(np.arange(0, 2 * len(starts), 2, dtype=np.int32)))
