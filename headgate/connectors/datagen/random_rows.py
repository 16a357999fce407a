"""RandomRows: random bits that depend on nothing but the seed, the field and the number of a record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np

Bits: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_WORD: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_HALF: Final = 1 << 32


def stream_of(name: str) -> int:
    """64 bits that stand for a name: that of a field, or the seed."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def part_of(stream: int, number: int) -> int:
    """The stream of one of the parts that a value is made of."""
    return (stream + (number + 1) * _GOLDEN) & _WORD


@dataclass(frozen=True, slots=True)
class RandomRows:
    """The records, or items of lists in them, that values are made for. However many there are at once, each has the
    bits that are its own: SplitMix64 of the seed and its number, and then of that and the stream of a field."""

    seed: int
    keys: Bits
    numbers: Ints
    """Of the records: ascending, and not far apart."""
    times: Ints
    """Of the records: milliseconds since the epoch."""

    @classmethod
    def of(cls, seed: int, numbers: Ints, times: Ints) -> RandomRows:
        start = stream_of(f"seed {seed}")
        return cls(start, _keys(start, numbers.view(np.uint64)), numbers, times)

    def __len__(self) -> int:
        return len(self.keys)

    def bits(self, stream: int) -> Bits:
        return _mixed(self.keys + np.uint64(stream))

    def below(self, bound: int, stream: int) -> Bits:
        """Whole numbers from 0 on, at most 2**64 of them."""
        bits = self.bits(stream)
        if bound <= _HALF:
            return (bits >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)
        return bits if bound > _WORD else bits % np.uint64(bound)

    def fractions(self, stream: int) -> Floats:
        """From 0 to below 1."""
        return (self.bits(stream) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def items(self, counts: Ints) -> RandomRows:
        """One for each item of lists that are so long."""
        ends = np.cumsum(counts)
        places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        keys = _mixed(np.repeat(self.keys, counts) + (places + 1).astype(np.uint64) * np.uint64(_GOLDEN))
        return RandomRows(self.seed, keys, np.repeat(self.numbers, counts), np.repeat(self.times, counts))

    def by(self, values: Ints) -> RandomRows:
        """The same for all records that have the same one of these values."""
        return replace(self, keys=_keys(self.seed, values.view(np.uint64)))


def _keys(seed: int, numbers: Bits) -> Bits:
    return _mixed(numbers * np.uint64(_GOLDEN) + np.uint64(seed))


def _mixed(state: Bits) -> Bits:
    """The finalizer of SplitMix64: every bit of the state changes half of the others."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
