"""Columns of bytes as Base64, and of decimals as that of the bytes that Connect has for them."""

from __future__ import annotations

import binascii
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.pipeline.columns.pieces import content


def base64_of_bytes(data: pa.Array) -> pa.Array:
    """Anything where there is null."""
    ends, found = content(data)
    return _encoded(found, np.diff(ends))


def base64_of_decimals(data: pa.Array) -> pa.Array:
    """Of the unscaled value, big-endian, two's complement, as short as it can be. Anything where there is null."""
    halves = np.frombuffer(data.buffers()[1] or b"", np.int64).reshape(-1, 2)[data.offset :][: len(data)]
    if (halves[:, 1] == halves[:, 0] >> 63).all():  # none needs more than 64 bits
        halves = np.ascontiguousarray(halves[:, :1])
    rows = halves.view(np.int8)[:, ::-1]
    # A byte can go if it and all before it say no more than the sign of the next one does.
    kept = np.ones(rows.shape, np.bool_)
    kept[:, :-1] = ~np.logical_and.accumulate(rows[:, :-1] == rows[:, 1:] >> 7, axis=1)
    return _encoded(rows[kept].view(np.uint8), kept.sum(axis=1))


def _encoded(data: NDArray[np.uint8], lengths: NDArray[Any]) -> pa.Array:
    """Of bytes that lie one behind the other."""
    # With zeros up to the next multiple of three, each row is encoded for itself.
    missing = -lengths % 3
    ends = np.cumsum(lengths + missing)
    added = np.concatenate([ends[missing > 0] - 1, ends[missing == 2] - 2])
    given = np.ones(ends[-1] if len(ends) else 0, np.bool_)
    given[added] = False
    padded = np.zeros(given.shape, np.uint8)
    padded[given] = data
    text = np.frombuffer(bytearray(binascii.b2a_base64(padded.data, newline=False)), np.uint8)
    text[np.concatenate([(ends // 3 * 4)[missing > 0] - 1, (ends // 3 * 4)[missing == 2] - 2])] = ord("=")
    starts = np.concatenate([[0], ends // 3 * 4]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(lengths), [None, pa.py_buffer(starts), pa.py_buffer(text)])
