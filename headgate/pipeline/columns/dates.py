"""Dates as columns of text and of int64 milliseconds: what `DateFormat` is for one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError
from headgate.java.dates.civil import DAY_MS, day_of
from headgate.java.dates.format import DateFormat, DatePart
from headgate.pipeline.columns.distinct import by_distinct

_KEPT: Final = 64
"""Patterns, or parts of them, of which something is kept."""
_WIDTHS: Final = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
"""Digits of the fields that are read all at once."""
_INT64: Final = 1 << 63
_ZERO: Final = ord("0")


def spans(ms: pa.Array, unit: int) -> pa.Array:
    """In which span of so many milliseconds they are, counted from the epoch."""
    return of_numbers(ms, lambda numbers: numbers // unit)


def of_numbers(column: pa.Array, function: Callable[[Any], Any]) -> pa.Array:
    """What a function of NumPy makes of integers; null stays null."""
    made = function(column.fill_null(0).to_numpy())
    return pa.array(made, mask=np.asarray(column.is_null()) if column.null_count else None)


# --- to text ----------------------------------------------------------------------------------------------------------


def formatted(ms: pa.Array, dates: DateFormat) -> pa.Array:
    return pc.binary_join_element_wise(*(_part_texts(ms, part) for part in dates.parts), "")


def _part_texts(ms: pa.Array, part: DatePart) -> pa.Array:
    if part.cycle is None:
        return by_distinct(spans(ms, part.unit), lambda span: part.format(span * part.unit), pa.string())
    return _cycle(part).take(of_numbers(ms, lambda numbers: numbers % part.cycle // part.unit))


@lru_cache(_KEPT)
def _cycle(part: DatePart) -> pa.Array:
    """All texts that it has."""
    assert part.cycle is not None
    return pa.array(list(map(part.format, range(0, part.cycle, part.unit))))


# --- from text --------------------------------------------------------------------------------------------------------


def parsed(texts: pa.Array, dates: DateFormat) -> pa.Array:
    """Null stays null. Raises NotByColumns for texts that are no dates, and for dates beyond 64 bits."""
    ms = _parsed_at_once(texts, dates)
    left = pc.if_else(ms.is_valid(), None, texts)
    return ms if left.null_count == len(left) else pc.coalesce(ms, by_distinct(left, _parser(dates), pa.int64()))


def _parser(dates: DateFormat) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            ms = dates.parse(text)
        except ValueError as error:
            raise DataError("Not a date") from error
        if not -_INT64 <= ms < _INT64:
            raise DataError("A date that only Python has room for")
        return ms

    return parse


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where things are in texts that have as many digits as the pattern has letters."""

    width: int
    fields: Mapping[str, slice]
    digits: Sequence[int]
    others: Sequence[int]
    """The places between fields, ..."""
    between: Any
    """... and what stands there."""


@lru_cache(_KEPT)
def _layout(dates: DateFormat) -> _Layout | None:
    """None for patterns with other fields, and for those with digits between them."""
    fields: dict[str, slice] = {}
    text = b""
    for token in dates.tokens:
        if token.letter in fields or (token.letter and token.count != _WIDTHS.get(token.letter)):
            return None
        if (not token.letter and not token.text.isascii()) or any(map(str.isdigit, token.text)):
            return None
        if token.letter:
            fields[token.letter] = slice(len(text), len(text) + token.count)
        text += token.text.encode()
    digits = [place for each in fields.values() for place in range(each.start, each.stop)]
    others = sorted(set(range(len(text))) - set(digits))
    between = np.frombuffer(text, np.uint8)[others]
    return _Layout(len(text), fields, digits, others, between) if fields else None


def _parsed_at_once(texts: pa.Array, dates: DateFormat) -> pa.Array:
    """Null for what has to be looked at one by one."""
    layout = _layout(dates)
    if layout is None:
        return pa.nulls(len(texts), pa.int64())
    fits = np.asarray(pc.equal(pc.binary_length(texts), layout.width).fill_null(False))
    chars = _characters(texts.filter(pa.array(fits)), layout.width)
    digits = chars - _ZERO
    certain = (digits[:, layout.digits] <= 9).all(axis=1) & (chars[:, layout.others] == layout.between).all(axis=1)
    fits[fits] = certain
    made = np.zeros(len(texts), np.int64)
    made[fits] = _milliseconds(digits[certain], layout)
    return pa.array(made, mask=~fits)


def _characters(texts: pa.Array, width: int) -> Any:
    """The bytes of texts that are all so long, a row for each."""
    data = texts.cast(pa.binary()).cast(pa.binary(width))
    return np.frombuffer(data.buffers()[1], np.uint8)[data.offset * width :][: len(data) * width].reshape(-1, width)


def _milliseconds(digits: Any, layout: _Layout) -> Any:
    def number(letter: str, missing: int) -> Any:
        place = layout.fields.get(letter)
        if place is None:
            return missing
        found = np.zeros(len(digits), np.int64)
        for each in range(place.start, place.stop):
            found = found * 10 + digits[:, each]
        return found

    dates = (number("y", 1970) * 100 + number("M", 1)) * 100 + number("d", 1)
    dates = np.broadcast_to(dates, len(digits))
    days = by_distinct(pa.array(dates), lambda date: day_of(date // 10_000, date // 100 % 100, date % 100), pa.int64())
    minutes = number("H", 0) * 60 + number("m", 0)
    return days.to_numpy() * DAY_MS + minutes * 60_000 + number("s", 0) * 1000 + number("S", 0)
