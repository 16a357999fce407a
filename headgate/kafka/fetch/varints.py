"""Zig-zag varints, whole columns of them at once."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Longs: TypeAlias = npt.NDArray[np.int64]

_LAST_SHIFT: Final = 63
_WITHOUT_SIGN: Final = 2**63 - 1
_STEPS: Final[dict[bytes, int]] = {}
"""From a record whose length takes these two bytes to the next one; as they are met, 8192 at most."""


def decode(data: Bytes, at: Longs) -> tuple[Longs, Longs]:
    """The numbers that begin at these places, and the places after them. Raises IndexError where there are none."""
    first = data[at].astype(np.int64)
    after = at + 1
    raw = first & 0x7F
    shift = 7
    going_on = np.flatnonzero(first >= 0x80)
    while going_on.size:
        if shift > _LAST_SHIFT:
            raise IndexError("a number of more than ten bytes")
        following = data[after[going_on]].astype(np.int64)
        raw[going_on] |= (following & 0x7F) << shift
        after[going_on] += 1
        going_on = going_on[following >= 0x80]
        shift += 7
    return (raw >> 1 & _WITHOUT_SIGN) ^ -(raw & 1), after


def decode_one(data: bytes, at: int) -> tuple[int, int]:
    raw = 0
    for shift in range(0, _LAST_SHIFT + 1, 7):
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
    raise IndexError("a number of more than ten bytes")


def starts(data: bytes, at: int, end: int) -> list[int]:
    """Where the records between two places begin: each says how long it is, so this goes one by one. Raises IndexError
    when the last one does not end there."""
    found: list[int] = []
    found_one, known = found.append, _STEPS
    while at < end:
        found_one(at)
        first = data[at]
        if first < 0x80:  # up to 63 bytes, and up to 8191 below: nearly all records
            at += 1 + (first >> 1)
        elif (step := known.get(data[at : at + 2])) is not None:
            at += step
        else:
            length, after = decode_one(data, at)
            if length < 0:
                raise IndexError("a record that goes backwards")
            if after == at + 2:
                known[data[at:after]] = 2 + length
            at = after + length
    if at != end:
        raise IndexError("a record goes on beyond its batch")
    return found
