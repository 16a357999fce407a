"""Pieces: rows of bytes that are written from left to right, one piece of all rows at a time.

A piece is a number of up to eight bytes, or bytes that are copied; of each row another one, or none. When all pieces
are known, so are the places where rows begin, and numpy puts them there, one after the other, by whole words: what a
word has too much is overwritten by the next piece of its row. Behind the last one there is room for that, which is left
out when the rows become an array.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.converters.registry.columns import varints
from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Mask, Words
from headgate.pipeline.converters.registry.columns.words import WORD, overlapping, padded, parts

_LONG: Final = 256
_FEW: Final = 64


class Pieces:
    """`live` says in which rows there is a piece; None: in all."""

    def __init__(self, rows: int) -> None:
        self.rows: Final = rows
        self.wrong: Mask | None = None
        """Rows that must be written one by one."""
        self._all: list[_Numbers | _Copies] = []

    def refuse(self, wrong: Mask) -> None:
        if wrong.any():
            self.wrong = wrong if self.wrong is None else self.wrong | wrong

    def number(self, words: int | Words, sizes: int | Longs, live: Mask | None) -> None:
        """The lowest bytes of these words."""
        self._all.append(_Numbers(words, sizes if live is None else sizes * live))

    def varint(self, raw: Words, live: Mask | None) -> None:
        most = raw.max(initial=0)
        if most < varints.ONE_BYTE:
            self.number(raw, 1, live)
        elif most < varints.ONE_WORD:
            self.number(*varints.to_words(raw), live)
        else:
            long = raw >= varints.ONE_WORD
            words, sizes = varints.to_words(raw % varints.ONE_WORD)
            self.number(np.where(long, words | varints.GOING_ON, words), np.where(long, WORD, sizes), live)
            words, sizes = varints.to_words(raw // varints.ONE_WORD)
            self.number(words, sizes, long if live is None else long & live)

    def signed(self, values: Longs, live: Mask | None) -> None:
        """Varints in zig-zag."""
        self.varint(varints.unsigned(values), live)

    def constant(self, data: bytes, live: Mask | None) -> None:
        """The same bytes."""
        if len(data) <= WORD:
            self.number(int.from_bytes(data, "little"), len(data), live)
        else:
            lengths = np.full(self.rows, len(data), np.int64)
            starts = np.zeros(self.rows, np.int64)
            self.copy(np.frombuffer(data, np.uint8), starts, lengths if live is None else lengths * live)

    def copy(self, data: Bytes, starts: Longs, lengths: Longs) -> None:
        """These parts of the data."""
        self._all.append(_Copies(data, starts, lengths))

    def add(self, others: Pieces) -> None:
        """All of others of the same rows."""
        self._all += others._all
        if others.wrong is not None:
            self.refuse(others.wrong)

    def sizes(self) -> Longs:
        """How many bytes each row has."""
        found = np.zeros(self.rows, np.int64)
        for piece in self._all:
            found += piece.sizes
        return found

    def joined(self) -> pa.Array:
        """One item for each row, as a binary array."""
        rooms = self.sizes() + WORD
        ends = np.cumsum(rooms)
        starts = ends - rooms
        data = np.empty(int(ends[-1]) if self.rows else 0, np.uint8)
        words, at = overlapping(data), starts
        for piece in self._all:
            piece.put(data, words, at)
            at = at + piece.sizes
        return parts(data, starts, at - starts)


class _Numbers:
    def __init__(self, words: int | Words, sizes: int | Longs) -> None:
        self._words = words
        self.sizes = sizes

    def put(self, data: Bytes, words: Words, at: Longs) -> None:
        words[at] = self._words


class _Copies:
    def __init__(self, data: Bytes, starts: Longs, lengths: Longs) -> None:
        self._data = padded(data)
        self._starts = starts
        self.sizes = lengths

    def put(self, data: Bytes, words: Words, at: Longs) -> None:
        own, starts, left = overlapping(self._data), self._starts, self.sizes
        for _ in range(_LONG // WORD):
            words[at] = own[starts]
            longer = np.flatnonzero(left > WORD)
            at, starts, left = at[longer] + WORD, starts[longer] + WORD, left[longer] - WORD
            if len(longer) < _FEW:
                break
        # What is long, or is so in few rows only, is quicker one by one.
        target, source = data.data, self._data.data
        for to, start, length in zip(at.tolist(), starts.tolist(), left.tolist(), strict=True):
            target[to : to + length] = source[start : start + length]
