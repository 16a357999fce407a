"""Arrow arrays as numpy sees them: what they are in memory, from their first item to their last."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Mask


def validity(array: pa.Array) -> Mask | None:
    """Where an item is not null; None where none is."""
    return _bits(array, 0) if array.null_count else None


def numbers(array: pa.Array, kind: str, width: int = 1) -> npt.NDArray[Any]:
    """Of items that are `width` numbers of this kind, as numpy calls it."""
    data = array.buffers()[1]
    items = np.frombuffer(b"" if data is None else data, kind)
    return items[array.offset * width : (array.offset + len(array)) * width]


def truths(array: pa.Array) -> Mask:
    return _bits(array, 1)


def bounds(array: pa.Array) -> Longs:
    """Where the items of strings, lists or maps begin in what they are parts of, with the end of the last."""
    if not len(array):
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)


def content(array: pa.Array) -> Bytes:
    """The bytes that strings or binaries are parts of."""
    data = array.buffers()[2]
    return np.frombuffer(b"" if data is None else data, np.uint8)


def _bits(array: pa.Array, buffer: int) -> Mask:
    bits = np.unpackbits(np.frombuffer(array.buffers()[buffer] or b"", np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)
