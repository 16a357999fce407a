"""Cursors: one place in the same bytes for each of many rows, all moved forward together.

A format that is read from left to right, such as Avro, has the values of each record at other places. Read one by one,
each value costs a call. Here the loops are turned inside out: one value of all rows is read at once, by numpy, then the
next value of all. `Cursors` knows where each row is, and its methods read there and move on.

Whatever the bytes say, nothing outside of them is read, and places never move back. So a row that is sound has never
left its own bytes, and one that is damaged may have come into those of others: who is done compares the places with the
ends of the rows. What is seen to be wrong before that is noted with `refuse`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headgate.pipeline.converters.registry.columns import varints
from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Mask, Words
from headgate.pipeline.converters.registry.columns.words import WORD, overlapping, padded

_PATIENCE: Final = 256
_ENOUGH: Final = 64


class Source:
    """The bytes of some rows, and which of these are not to be read by columns."""

    def __init__(self, data: Bytes, starts: Longs, ends: Longs) -> None:
        # A copy is small enough to stay in the cache, whatever it is a part of.
        self.data: Final = padded(data)
        self.words: Final = overlapping(self.data)
        self.size: Final = len(data)
        self.starts: Final = starts
        self.ends: Final = ends
        self.wrong: Final[Mask] = np.zeros(len(starts), np.bool_)
        self._rounds = 0
        self._rows_read = 0

    def is_worth(self, rows: int) -> bool:
        """Whether to read an item of so many rows once more: what is much longer in few rows than in all others is
        quicker one by one."""
        self._rounds += 1
        self._rows_read += rows
        return self._rounds < _PATIENCE or self._rows_read >= _ENOUGH * self._rounds


class Cursors:
    """Of some rows of a source. Those that are not `live` have no value here: they are read with the others, whatever
    that gives, but do not move, and what is made of them is null."""

    __slots__ = ("at", "live", "rows", "source")

    def __init__(self, source: Source, rows: Longs, at: Longs, live: Mask | None = None) -> None:
        self.source = source
        self.rows = rows
        self.at = at
        self.live = live

    def __len__(self) -> int:
        return len(self.at)

    def only(self, some: Longs) -> Cursors:
        return Cursors(self.source, self.rows[some], self.at[some], None if self.live is None else self.live[some])

    def refuse(self, wrong: Mask) -> None:
        """These are not to be read by columns."""
        if wrong.any():
            self.source.wrong[self.rows[wrong if self.live is None else wrong & self.live]] = True

    def unfinished(self) -> Mask:
        """Which rows have bytes left, and have not been refused."""
        return (self.at < self.source.ends[self.rows]) & ~self.source.wrong[self.rows]

    def at_tag(self, tag: bytes) -> Mask:
        """Where these bytes come next, of which there are less than eight."""
        if len(tag) == 1:
            found: Mask = self.source.data.take(self.at, mode="clip") == tag[0]
        else:
            words = self.source.words[np.minimum(self.at, self.source.size)]
            found = words & ((1 << 8 * len(tag)) - 1) == int.from_bytes(tag, "little")
        return found

    def byte(self) -> Bytes:
        found = self.source.data.take(self.at, mode="clip")
        self.move(1)
        return found

    def word(self, size: int = WORD) -> Words:
        """Eight bytes, of which only so many are passed."""
        found = self.source.words[np.minimum(self.at, self.source.size)]
        self.move(size)
        return found

    def varint(self) -> Words:
        first = self.source.data.take(self.at, mode="clip")
        if not len(first) or first.max() < 0x80:
            self.move(1)
            return first.astype(np.uint64)
        raw, sizes = varints.read(self.source.data, self.source.words, self.at)
        self.refuse(sizes == 0)
        self.move(sizes)
        return raw

    def signed(self) -> Longs:
        """A varint in zig-zag."""
        return varints.signed(self.varint())

    def span(self, lengths: Longs) -> tuple[Longs, Longs]:
        """Where so many bytes begin, and how many they are: none in rows that are not live, or cannot have so many."""
        if self.live is not None:
            lengths = lengths * self.live
        wrong = lengths.view(np.uint64) > self.source.size
        if wrong.any():
            self.refuse(wrong)
            lengths = np.where(wrong, 0, lengths)
        starts = self.at
        self.at = starts + lengths
        return starts, lengths

    def move(self, sizes: int | Longs) -> None:
        """So many bytes on."""
        self.at = self.at + (sizes if self.live is None else sizes * self.live)
