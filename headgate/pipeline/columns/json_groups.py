"""JSON texts in groups that look alike, each of them read by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import Group, Values
from headgate.api.schema import Schema
from headgate.java.json import LONGEST_TEXT
from headgate.pipeline.columns.json_layout import JsonLayout
from headgate.pipeline.columns.json_texts import Mask, Places

FEWEST: Final = 128
"""Rows that are worth the trouble: fewer are done sooner one by one."""
_SAMPLES: Final = 8
_NEW: Final = 8
"""Most kinds that are learnt from one batch."""
_LONGEST_PAUSE: Final = 64


class TextKind(Protocol):
    def matches(self, data: pa.Array) -> Mask:
        """Which of the texts are of this kind."""


K = TypeVar("K", bound=TextKind)


@dataclass(slots=True)
class _Rest:
    """Texts that are in no group yet, and the numbers of their rows."""

    rows: Places
    data: pa.Array

    def take(self, kind: TextKind) -> tuple[Places, pa.Array] | None:
        """Those of this kind, if they are not too few."""
        if len(self.rows) < FEWEST:
            return None
        mask = kind.matches(self.data)
        if np.count_nonzero(mask) < FEWEST:
            return None
        found = self.rows[mask], self.data if mask.all() else self.data.filter(pa.array(mask))
        self.rows, self.data = self.rows[~mask], self.data.filter(pa.array(~mask))
        return found


class Kinds(Generic[K]):
    """What texts looked like until now, and so the next ones may. Not for several threads."""

    def __init__(
        self,
        learn: Callable[[Sequence[Any]], Iterable[K]],
        join: Callable[[K, K], K | None] = lambda one, other: None,
        most: int = _NEW,
    ) -> None:
        """`learn` says of which kinds some texts are, `join` which kind has the texts of two; `most` are remembered."""
        self._learn, self._join, self._most = learn, join, most
        self._known: list[K] = []
        self._pause, self._last_pause = 0, 0

    def parts(self, rows: Places, data: pa.Array) -> Iterator[tuple[K, Places, pa.Array]]:
        """Texts of one kind, with the numbers of their rows. What is in no part is of a kind that is rare."""
        if len(rows) < FEWEST:
            return
        rest = _Rest(rows, data)
        for kind in list(self._known):
            if part := rest.take(kind):
                self._remember(kind)
                yield kind, *part
        if self._pause:
            self._pause -= 1
            return
        for _ in range(_NEW):
            if not len(rest.rows):
                break
            new = self._learnt(rest.data)
            part = rest.take(new) if new else None
            if new is None or part is None:
                # To learn takes as long as to read hundreds of texts: where it is of no use, it can wait.
                self._last_pause = 0 if new in self._known else min(2 * self._last_pause + 1, _LONGEST_PAUSE)
                self._pause = self._last_pause
                break
            self._last_pause = 0
            self._remember(new)
            yield new, *part

    def _learnt(self, data: pa.Array) -> K | None:
        """Of which kind most are, judged by some. Where it is a known one with more in it, that is remembered."""
        some = data.take(pa.array(range(0, len(data), max(1, len(data) // _SAMPLES))))
        counts = [(np.count_nonzero(kind.matches(some)), kind) for kind in self._learn(some.to_pylist())]
        count, found = max(counts, key=lambda each: each[0], default=(0, None))
        if found is None or not count:
            return None
        for place, known in enumerate(self._known):
            both = self._join(known, found)
            if both is not None:
                self._known[place] = both
                return None if both == known else both
        return found

    def _remember(self, kind: K) -> None:
        """In front of the others."""
        self._known = [kind, *(each for each in self._known if each is not kind)][: self._most]


class Reader(Protocol):
    def of(self, rows: Places, data: pa.Array) -> Iterator[Group]:
        """From bytes without nulls, of the rows of these numbers."""


def groups(reader: Reader | None, data: pa.Array) -> Iterator[Group]:
    """Of a column of bytes; without a reader, only those that are null."""
    null = data.is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(null)
    if len(rows) >= FEWEST:
        yield Group(pa.array(rows), Values.nulls(len(rows)))
    if reader is not None:
        yield from reader.of(np.flatnonzero(~null), data.drop_null() if len(rows) else data)


class JsonGroups:
    """Reads texts that are all of one schema, or have none."""

    def __init__(self, layouts: Kinds[JsonLayout], schema: Schema | None = None) -> None:
        self._layouts, self._schema = layouts, schema

    def of(self, rows: Places, data: pa.Array) -> Iterator[Group]:
        for layout, found, texts in self._layouts.parts(*_texts(rows, data)):
            values, refused = layout.read(texts)
            if refused.any():
                found, values = found[~refused], values.filter(pa.array(~refused))
            yield Group(pa.array(found), Values(values, self._schema))


def _texts(rows: Places, data: pa.Array) -> tuple[Places, pa.Array]:
    """As strings, without those that are none, or may be too long."""
    if data.nbytes > LONGEST_TEXT:
        fits = pc.less_equal(pc.binary_length(data), LONGEST_TEXT)
        rows, data = rows[fits], data.filter(fits)
    try:
        return rows, data.cast(pa.string())
    except pa.ArrowInvalid:
        valid = np.array([_is_utf8(text) for text in data.to_pylist()])
        return rows[valid], data.filter(pa.array(valid)).cast(pa.string())


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
