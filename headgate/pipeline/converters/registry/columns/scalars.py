"""Plain values of Arrow arrays, as the numbers and bytes that formats write of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.pipeline.converters.registry.columns import views
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Mask, Words
from headgate.pipeline.converters.registry.columns.words import WORD

_QUIET: Final = np.uint64(1 << 22)
_POWERS: Final[Words] = np.array([10**power for power in range(1, 20)], np.uint64)
_LOW: Final = (1 << 64) - 1


class Parts(NamedTuple):
    """Of bytes: from where, and how many, for each item."""

    data: Bytes
    starts: Longs
    lengths: Longs


def integers(array: pa.Array, live: Mask | None) -> Longs:
    """Of integers, dates, times and timestamps; 0 where there is none."""
    values = views.numbers(array, f"<i{array.type.bit_width // 8}").astype(np.int64)
    return values if live is None else values * live


def truths(array: pa.Array) -> Words:
    return views.truths(array).astype(np.uint64)


def floats(array: pa.Array) -> Words:
    """The bits of those that have 32."""
    bits = views.numbers(array, "<u4").astype(np.uint64)
    # As in Python, where numbers have 64 bits in between, and what is no number is no signal any more.
    no_number = (bits & 0x7FFFFFFF) > 0x7F800000
    return bits | no_number * _QUIET


def doubles(array: pa.Array) -> Words:
    found: Words = views.numbers(array, "<u8")
    return found


def contents(array: pa.Array, live: Mask | None) -> Parts:
    """Of strings and binaries; empty where there is none."""
    bounds = views.bounds(array)
    lengths = np.diff(bounds) if live is None else np.diff(bounds) * live
    return Parts(views.content(array)[bounds[0] : bounds[-1]], bounds[:-1] - bounds[0], lengths)


class Unscaled:
    """Of decimals: their numbers without the point, the highest byte first, in as few bytes as can be."""

    def __init__(self, array: pa.Array) -> None:
        self.low, self.high = views.numbers(array, "<i8", 2).reshape(-1, 2).T.copy()
        # Bits that only repeat the sign need not be written.
        sign = self.high >> 63
        low, high = (self.low ^ sign).view(np.uint64), (self.high ^ sign).view(np.uint64)
        self._wide = (high > 0) | (low >= 1 << 63)
        self.sizes = np.where(self._wide, 9, 1)
        for bits in range(7, 63, 8):
            self.sizes += np.where(self._wide, high, low) >= 1 << bits

    def digits(self) -> Longs:
        """How many each has in decimal."""
        found: Longs = np.searchsorted(_POWERS, np.abs(self.low).view(np.uint64), "right") + 1
        for row in np.flatnonzero(self.high != self.low >> 63).tolist():
            found[row] = len(str(abs((int(self.high[row]) << 64) + (int(self.low[row]) & _LOW))))
        return found

    def write(self, live: Mask | None, pieces: Pieces) -> None:
        # Moved up to where the highest byte that is written is the highest of a word.
        first = self.low << 64 - 8 * self.sizes
        if self._wide.any():
            up = 128 - 8 * self.sizes
            below = (self.low.view(np.uint64) >> (64 - up).view(np.uint64)).view(np.int64)
            first = np.where(self._wide, self.high << up | below, first)
        pieces.number(first.byteswap().view(np.uint64), np.minimum(self.sizes, WORD), live)
        if self._wide.any():
            wide = self._wide if live is None else self._wide & live
            pieces.number((self.low << up).byteswap().view(np.uint64), self.sizes - WORD, wide)
