"""Texts: the texts of many JSON values in one buffer, and how they are cut into those of their parts, all at once.

Nothing is checked here: whoever cuts knows from a pattern what the texts look like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

# Arrays of numpy, whose own types say less.
Bytes: TypeAlias = Any
Places: TypeAlias = Any
"""Integers of 64 bits."""
Mask: TypeAlias = Any

_QUOTE, _COMMA, _BACKSLASH, _N = b'",\\n'
_OPEN, _CLOSE = b"{}"
"""With the bit of `_BRACKET`, which they do not have, square ones are the same."""
_BRACKET: Final = 0x20


@dataclass(frozen=True, slots=True)
class Texts:
    """In the order in which they are in the buffer. That of a part which is not there, as what has it is null, is empty
    and at that null."""

    data: Bytes
    starts: Places
    ends: Places
    rows: Places
    """Of which record each is."""
    refused: Mask
    """Of all records: those that must be looked at one by one."""
    escaped: bool
    """Whether there is any backslash."""

    @classmethod
    def of(cls, column: pa.Array) -> Texts:
        """Of strings without nulls, one for each record."""
        count, data = len(column), _bytes(column)
        places = _offsets(column).astype(np.int64)
        escaped = bool((data[places[0] :] == _BACKSLASH).any())
        return cls(data, places[:-1], places[1:], np.arange(count), np.zeros(count, np.bool_), escaped)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Bytes:
        """The first character of each."""
        return self.data[self.starts]

    @property
    def null(self) -> Mask:
        """Which are null, or not there."""
        return self.first == _N

    @property
    def said_null(self) -> Mask:
        return self.null & (self.starts < self.ends)

    def between(self, starts: Places, ends: Places) -> Texts:
        """Others of the same records."""
        return Texts(self.data, starts, ends, self.rows, self.refused, self.escaped)

    def unquoted(self) -> Texts:
        """What is between the first and the last character, of those that are strings."""
        starts = self.starts + 1
        return self.between(starts, np.maximum(starts, self.ends - 1))

    def refuse(self, mask: Mask) -> None:
        self.refused[self.rows[mask]] = True

    def strings(self, null: Mask) -> pa.Array:
        """As a column, null where the mask says so."""
        count = len(self)
        # All in one buffer, and what is between them too: every second one is a text.
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1:2], offsets[1::2], offsets[-1] = self.starts, self.ends, self.ends[-1] if count else 0
        both = pa.Array.from_buffers(
            pa.string(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)], null_count=0
        )
        return both.take(pa.array(np.arange(0, 2 * count, 2), mask=null if null.any() else None))

    def items(self, gap: int) -> tuple[pa.Array, Texts]:
        """Of lists, or of objects: offsets, and the texts of all their members. `gap` is how long a comma is with what
        follows it."""
        null = self.null
        data = _bytes(self.strings(null))
        marks = _marks(data, _brackets(data) | (data == _COMMA), escaped=self.escaped)
        marks = marks[data[marks] != _QUOTE]
        opens, closes, level = _levels(data[marks])
        outermost = level == 1
        marks, opens, closes = marks[outermost], opens[outermost], closes[outermost]
        # From each mark to the next one is an item, but not from the end of a list, nor in an empty one.
        first = np.flatnonzero(~closes)
        first = first[marks[first + 1] - marks[first] > 1]
        starts = marks[first] + np.where(opens[first], 1, gap)
        here = np.flatnonzero(~null)[np.cumsum(opens)[first] - 1]
        offsets = np.zeros(len(self) + 1, np.int32)
        np.cumsum(np.bincount(here, minlength=len(self)), out=offsets[1:])
        items = Texts(data, starts, marks[first + 1], self.rows[here], self.refused, self.escaped)
        return pa.array(offsets), items


class Cursor:
    """Goes through texts of objects, at the same place in all of them at a time."""

    def __init__(self, texts: Texts, *, nested: bool) -> None:
        """`nested`: whether lists or objects are to be passed as a whole."""
        self.texts, self.at = texts, texts.starts
        self._chars = b'"{}' if nested else b'"'
        self._first = int(texts.starts[0]) if len(texts) else 0
        data = texts.data[self._first : texts.ends[-1] if len(texts) else 0]
        marks = _marks(data, _brackets(data) if nested else None, escaped=texts.escaped)
        self._next = np.searchsorted(marks, self.at - self._first)
        self._ends = _matches(data[marks]) if nested else None
        self._marks = marks if len(marks) else np.zeros(1, np.int64)

    @property
    def null(self) -> Mask:
        """Where there is null, or nothing as it is in a null."""
        return self.texts.data[self.at] == _N

    def skip(self, literal: bytes, present: Mask | None) -> None:
        """This text, in those objects that are present: brackets, a name and what is around it, or null."""
        marks: Any = 2 if b'"' in literal else 0
        if self._ends is not None:
            marks += literal.startswith(b"{") + literal.endswith(b"}")
        length: Any = len(literal)
        if present is not None:
            marks, length = marks * present, length * present
        self.at = self.at + length
        self._next = self._next + marks

    def value(self, follow: bytes, present: Mask | None) -> Texts:
        """The text of a value, with this behind it."""
        start, first = self.at, self.texts.data[self.at]
        self._next = self._next + 2 * (first == _QUOTE)
        if self._ends is not None:
            self._next = np.where(first | _BRACKET == _OPEN, self._ends[self._next] + 1, self._next)
        place = next((place for place, each in enumerate(follow) if each in self._chars), -1)
        if place < 0:
            end = self.texts.ends - len(follow)
        else:  # behind the last mark there are only objects that are null
            end = self._marks.take(self._next, mode="clip") + (self._first - place)
        self.at = end if present is None else np.where(present, end, start)
        return self.texts.between(start, self.at)


def string_ends(texts: Texts) -> Places:
    """Of texts that begin with a string: where that ends."""
    quotes = _marks(texts.data, escaped=texts.escaped)
    return quotes[np.searchsorted(quotes, texts.starts) + 1] + 1


def _offsets(column: pa.Array) -> Any:
    return np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]


def _bytes(column: pa.Array) -> Bytes:
    """All that is in the buffer up to the end of the last one."""
    return np.frombuffer(column.buffers()[2] or b"", np.uint8)[: _offsets(column)[-1]]


def _brackets(data: Bytes) -> Mask:
    same = data | _BRACKET
    return (same == _OPEN) | (same == _CLOSE)


def _marks(data: Bytes, others: Mask | None = None, *, escaped: bool) -> Places:
    """Where strings begin and end; and where the others are that are in none."""
    quotes = data == _QUOTE
    backslashes = np.flatnonzero(data == _BACKSLASH) if escaped else ()
    if len(backslashes):
        # Of several in a row, every second one is escaped itself.
        runs = np.flatnonzero(np.diff(backslashes, prepend=-2) != 1)
        nth = np.arange(len(backslashes)) - np.repeat(runs, np.diff(runs, append=len(backslashes)))
        quotes[backslashes[nth % 2 == 0] + 1] = False
    if others is None:
        return np.flatnonzero(quotes)
    places = np.flatnonzero(quotes | others)
    is_quote = quotes[places]
    return places[is_quote | (np.cumsum(is_quote, dtype=np.uint8) % 2 == 0)]


def _levels(marks: Bytes) -> tuple[Mask, Mask, Places]:
    """Which open and which close, and how deep each is: a bracket as deep as what is in it."""
    same = marks | _BRACKET
    opens, closes = same == _OPEN, same == _CLOSE
    level = np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int32)
    return opens, closes, level + closes


def _matches(marks: Bytes) -> Places:
    """For each opening bracket among these marks, the number of the closing one."""
    opens, closes, level = _levels(marks)
    brackets = np.flatnonzero(opens | closes)
    # On each level they take turns.
    pairs = brackets[np.argsort(level[brackets].astype(np.uint16), kind="stable")]
    found = np.zeros(len(marks) + 1, np.int64)
    found[pairs[::2]] = pairs[1::2]
    return found
