"""Columns as Java's toString shows them: what StringConverter writes, and what columns in the TEXT form hold."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.batch import text_column
from headgate.pipeline.columns.notation import Notation, mask, members
from headgate.pipeline.columns.numbers import float_pieces
from headgate.pipeline.columns.pieces import Piece, Pieces, only
from headgate.pipeline.text import text

_BOOLEANS: Final = pa.array(["false", "true"])
_MIDNIGHT: Final = "00:00:00"


def as_text(values: Values) -> pa.Array:
    """Strings as `text` has them, null where there is null. Raises NotByColumns."""
    return _TEXT.column(values)


class _Text(Notation):
    comma = ", "

    def plain(self, values: Values) -> Pieces:
        return plain_pieces(values)

    def struct(self, values: Values) -> Pieces:
        return self._map(values) if values.schema is None else self._struct(values)

    def _map(self, values: Values) -> Pieces:
        pieces: Pieces = ["{"]
        for number, (name, field) in enumerate(members(values)):
            pieces += [f"{', ' if number else ''}{name}=", *self.or_null(field)]
        return [*pieces, "}"]

    def _struct(self, values: Values) -> Pieces:
        """Without the fields that are null."""
        pieces: Pieces = ["Struct{"]
        comma: Pieces = []
        begun = np.zeros(len(values), np.bool_)
        for name, field in members(values):
            named: Pieces = [*comma, f"{name}="]
            if field.data.null_count:
                shown = mask(field.data.is_valid())
                named, begun = only(named, shown), begun | shown
            else:
                begun = np.ones(len(values), np.bool_)
            comma = [","] if begun.all() else only([","], begun)
            pieces += [*named, *self.pieces(field)]
        return [*pieces, "}"]

    def entries(self, keys: Values, items: Values) -> tuple[str, Pieces, str]:
        return "{", [*self.pieces(keys), "=", *self.or_null(items)], "}"


def plain_pieces(values: Values) -> Pieces:
    """Of values that hold no others, as `Notation.plain` has it."""
    data, kind = values.data, values.data.type
    if kind == pa.string():
        return [Piece(data)]
    if kind == pa.bool_():
        return [Piece(_BOOLEANS, mask(data.fill_null(False) if data.null_count else data))]
    if pa.types.is_floating(kind):
        return float_pieces(data)
    if kind == pa.binary():
        return [Piece(text_column(data))]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or kind == pa.null():
        return [Piece(data.cast(pa.string()))]
    if pa.types.is_temporal(kind):
        return _date_pieces(data)
    raise NotByColumns("a column of an unusual type")


def _date_pieces(data: pa.Array) -> Pieces:
    """As Date.toString: a time between what all moments of a day have in common."""
    if pa.types.is_time(data.type):
        head, tail = _around(dt.date(1970, 1, 1))
        return [head, Piece(_clock(data)), tail]
    moments = data if pa.types.is_date(data.type) else data.cast(pa.timestamp("ms"))
    days = moments.cast(pa.date32()).dictionary_encode()
    around = [_around(day) for day in days.dictionary.to_pylist()] or [("", "")]
    heads, tails = (pa.array(each, pa.string()) for each in zip(*around, strict=True))
    places = days.indices.fill_null(0).to_numpy()
    middle = _MIDNIGHT if moments is data else Piece(_clock(moments))
    return [Piece(heads, places), middle, Piece(tails, places)]


@lru_cache(1024)
def _around(day: dt.date) -> tuple[str, str]:
    """What is before and after the time."""
    head, tail = text(day).split(_MIDNIGHT)
    return head, tail


def _clock(data: pa.Array) -> pa.Array:
    return data.cast(pa.time32("s"), safe=False).cast(pa.string())


_TEXT: Final = _Text()
