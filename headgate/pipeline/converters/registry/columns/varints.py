"""Varints, those of a whole column at once.

A varint has seven bits of a number in each byte, the lowest first; in all bytes but the last the eighth bit is set.
Signed numbers are zig-zag: 0, -1, 1, -2 and so on are written as 0, 1, 2, 3.

Eight bytes are taken as one word. The sevens of bits are moved together in three steps: first in pairs of bytes, then
in fours, then in all eight. To write a number, they are moved apart in the opposite order.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Longs: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

ONE_BYTE: Final = 1 << 7
ONE_WORD: Final = np.uint64(1 << 56)
"""From here on, a number needs more than that."""
GOING_ON: Final = np.uint64(0x8080808080808080)
"""The bits of a word that say that another byte follows."""
# For each step: how far the upper half moves, and which bits are the lower half, and the upper one when it has moved.
_STEPS: Final = (
    (np.uint64(1), np.uint64(0x007F007F007F007F), np.uint64(0x3F803F803F803F80)),
    (np.uint64(2), np.uint64(0x00003FFF00003FFF), np.uint64(0x0FFFC0000FFFC000)),
    (np.uint64(4), np.uint64(0x000000000FFFFFFF), np.uint64(0x00FFFFFFF0000000)),
)
# In a number of so many bytes, these bits say that another one follows.
_GOING_ON_IN: Final[Words] = GOING_ON & np.array([(1 << 8 * size) - 1 >> 8 for size in range(9)], np.uint64)


def signed(raw: Words) -> Longs:
    """Of zig-zag."""
    return (raw >> 1).view(np.int64) ^ -(raw & 1).view(np.int64)


def unsigned(values: Longs) -> Words:
    """As zig-zag."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def read(data: Bytes, words: Words, at: Longs) -> tuple[Words, Longs]:
    """The numbers at these places, and of how many bytes they are: 0 where there is none of 64 bits. `words` are the
    eight bytes at each place of the data."""
    found = words[np.minimum(at, len(words) - 1)]
    ends = ~found & GOING_ON
    # All bits up to the first end; all, where there is none.
    own = ends ^ (ends - 1)
    raw = found & own & ~GOING_ON
    for shift, lower, upper in _STEPS:
        raw = raw & lower | raw >> shift & upper
    sizes = (np.bitwise_count(own) >> 3).astype(np.int64)
    longer = np.flatnonzero(ends == 0)
    if longer.size:
        ninth, tenth = (data.take(at[longer] + each, mode="clip").astype(np.uint64) for each in (8, 9))
        more = ninth >= ONE_BYTE
        raw[longer] |= (ninth & 0x7F) << 56 | (tenth * more) << 63
        sizes[longer] = np.where(more, np.where(tenth > 1, 0, 10), 9)
    return raw, sizes


def to_words(raw: Words) -> tuple[Words, Longs]:
    """The bytes of these numbers, which are below ONE_WORD, and how many they are."""
    sizes = np.ones(len(raw), np.int8)
    for bits in range(7, 56, 7):
        sizes += raw >= 1 << bits
    for shift, lower, upper in reversed(_STEPS):
        raw = raw & lower | (raw & upper) << shift
    return raw | _GOING_ON_IN[sizes], sizes.astype(np.int64)
