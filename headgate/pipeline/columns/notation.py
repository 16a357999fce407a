"""Notation: how values become text, column by column, whatever is nested in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.api import Schema
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.pieces import Mask, Piece, Pieces, joined, only, run_together

_SHAPES: Final = frozenset({pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary()})
"""Of values without schema that hold no others."""


class Notation(ABC):
    """Raises NotByColumns for values that it does not know how to write."""

    comma: ClassVar[str]

    @abstractmethod
    def plain(self, values: Values) -> Pieces:
        """Of values that hold no others. Anything where there is null; null, where it is one piece."""

    @abstractmethod
    def struct(self, values: Values) -> Pieces:
        """Of structs or maps with known keys. Anything where there is null."""

    @abstractmethod
    def entries(self, keys: Values, items: Values) -> tuple[str, Pieces, str]:
        """Of maps: how one begins, its entries, how it ends."""

    def null(self, schema: Schema | None) -> str:
        """What stands for null within a list or map."""
        return "null"

    def column(self, values: Values, head: str = "", tail: str = "") -> pa.Array:
        """Texts with this before and after each of them; null where there is null."""
        pieces = [piece for piece in (head, *self._anything(values), tail) if piece]
        if len(pieces) == 1 and isinstance(pieces[0], Piece) and pieces[0].places is None:
            return pieces[0].texts
        return joined(pieces, len(values), mask(values.data.is_valid()) if values.data.null_count else None)

    def pieces(self, values: Values) -> Pieces:
        """Nothing where there is null."""
        pieces = self._anything(values)
        return only(pieces, mask(values.data.is_valid())) if values.data.null_count else pieces

    def or_null(self, values: Values) -> Pieces:
        """With what stands for it where there is null."""
        pieces = self._anything(values)
        if not values.data.null_count:
            return pieces
        valid = mask(values.data.is_valid())
        return [*only(pieces, valid), *only([self.null(values.schema)], ~valid)]

    def _anything(self, values: Values) -> Pieces:
        """Anything where there is null."""
        kind = values.data.type
        if pa.types.is_struct(kind):
            return self.struct(values)
        if not pa.types.is_nested(kind):
            if values.schema is None and kind not in _SHAPES:
                raise NotByColumns("a column of an unusual type")
            return self.plain(values)
        within, ends = held(values)
        head, pieces, tail = "[", self.or_null(within[0]), "]"
        if pa.types.is_map(kind):
            head, pieces, tail = self.entries(*within)
        begins = np.zeros(ends[-1] + 1, np.bool_)
        begins[ends] = True
        texts = joined([*only([self.comma], ~begins[:-1]), *pieces], ends[-1])
        return [head, Piece(run_together(texts, ends)), tail]


def members(values: Values) -> Iterator[tuple[str, Values]]:
    """Of structs or maps: their fields. Anything where they are null."""
    schema = values.schema
    for place, each in enumerate(values.data.type):
        yield each.name, Values(values.data.field(place), None if schema is None else schema.fields[place].schema)


def held(values: Values) -> tuple[list[Values], NDArray[Any]]:
    """What lists hold, or the keys and items of maps; and where among them each begins and ends. Raises
    NotByColumns."""
    data, schema = values.data, values.schema
    if not (pa.types.is_list(data.type) or (pa.types.is_map(data.type) and schema is not None)):
        raise NotByColumns("a column of an unusual type")
    ends = data.offsets.to_numpy()
    within = data.values.slice(ends[0], ends[-1] - ends[0])
    if schema is None or schema.key_schema is None:
        return [Values(within, None if schema is None else schema.value_schema)], ends - ends[0]
    if pa.types.is_nested(data.type.key_type):
        raise NotByColumns("keys that are no plain values")
    return [Values(within.field(0), schema.key_schema), Values(within.field(1), schema.value_schema)], ends - ends[0]


def mask(column: pa.Array) -> Mask:
    found: Mask = column.to_numpy(zero_copy_only=False)
    return found
