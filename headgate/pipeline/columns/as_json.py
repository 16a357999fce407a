"""Columns as JSON: what JsonConverter writes, and what columns in the JSON form hold."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.api import DataError, Schema, SchemaType
from headgate.api.frame import NotByColumns, Values
from headgate.java.json import dumps
from headgate.java.numbers import double_text
from headgate.pipeline.columns.as_text import plain_pieces
from headgate.pipeline.columns.base64 import base64_of_bytes, base64_of_decimals
from headgate.pipeline.columns.notation import Notation, held, mask, members
from headgate.pipeline.columns.numbers import float_pieces, mended
from headgate.pipeline.columns.pieces import Mask, Piece, Pieces, content
from headgate.pipeline.converters.json_value import Options, to_tree

_REQUIRED: Final = "null where a value is required"
_LETTERS: Final = np.zeros(256, np.uint8)
"""What follows a backslash in place of a byte; 0 where more must be said, and for characters beyond 16 bits."""
_LETTERS[list(b'"\\\b\t\n\f\r')] = list(b'"\\btnfr')


def as_json(values: Values, options: Options, head: str = "", tail: str = "") -> pa.Array:
    """What JsonConverter writes, with this before and after it; null where there is null. Raises NotByColumns."""
    notation = _Json(options)
    lacking = notation.lacking(values)
    if lacking.any():
        raise NotByColumns(_REQUIRED, pa.array(lacking))
    return notation.column(values, head, tail)


def quoted(column: pa.Array, head: str = "", tail: str = "") -> pa.Array:
    """Strings as JSON, with this before and after them. Null where there is null."""
    return as_json(Values(column), Options(), head, tail)


def null_json(schema: Schema | None, options: Options) -> str | None:
    """What stands for null: the default, if there is one. None where a value is required."""
    try:
        return dumps(to_tree(schema, None, options)).decode()
    except DataError:
        return None


class _Json(Notation):
    comma = ","

    def __init__(self, options: Options) -> None:
        self._options = options

    def lacking(self, values: Values) -> Mask:
        """The rows that have null within them where a value is required."""
        found = np.zeros(len(values), np.bool_)
        if values.schema is None or not pa.types.is_nested(values.data.type):
            return found
        if pa.types.is_struct(values.data.type):
            for _, field in members(values):
                found |= self._lacking(field)
        else:
            items, ends = held(values)
            found[np.searchsorted(ends, np.flatnonzero(self._lacking(items[-1])), side="right") - 1] = True
        return found & mask(values.data.is_valid())

    def _lacking(self, values: Values) -> Mask:
        """And those that are null themselves."""
        refused = values.data.null_count and null_json(values.schema, self._options) is None
        return self.lacking(values) | mask(values.data.is_null()) if refused else self.lacking(values)

    def null(self, schema: Schema | None) -> str:
        # Where a value is required, none of the rows that are shown has null.
        return null_json(schema, self._options) or ""

    def struct(self, values: Values) -> Pieces:
        pieces: Pieces = ["{"]
        for number, (name, field) in enumerate(members(values)):
            pieces += [f"{',' if number else ''}{dumps(name).decode()}:", *self.or_null(field)]
        return [*pieces, "}"]

    def entries(self, keys: Values, items: Values) -> tuple[str, Pieces, str]:
        if keys.schema is None or keys.schema.type is not SchemaType.STRING:
            return "[", ["[", *self.pieces(keys), ",", *self.or_null(items), "]"], "]"
        if keys.data.type != pa.string():
            raise NotByColumns("keys of an unusual type")
        return "{", [*self.pieces(keys), ":", *self.or_null(items)], "}"

    def plain(self, values: Values) -> Pieces:
        data, kind = values.data, values.data.type
        if kind == pa.string():
            return ['"', Piece(_escaped(data)), '"']
        if kind == pa.binary():
            return ['"', Piece(base64_of_bytes(data)), '"']
        if pa.types.is_decimal(kind) and not self._options.numeric_decimals:
            return ['"', Piece(base64_of_decimals(data)), '"']
        if pa.types.is_floating(kind):
            return float_pieces(data, _number)
        if pa.types.is_temporal(kind):
            return [Piece(data.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).cast(pa.string()))]
        return plain_pieces(values)


def _number(number: float) -> str:
    return double_text(number) if math.isfinite(number) else f'"{double_text(number)}"'


def _needs_no_escape(data: NDArray[np.uint8]) -> bool:
    """The usual case: to look four times at all of it is quicker than to look at each byte."""
    if not len(data):
        return True
    text = data.tobytes()
    return bool(data.min() >= 0x20 and data.max() < 0xF0) and b'"' not in text and b"\\" not in text


def _escaped(column: pa.Array) -> pa.Array:
    """As in JSON between quotes. Anything where there is null."""
    ends, data = content(column)
    if _needs_no_escape(data):
        return column
    special = np.flatnonzero((data < 0x20) | (data == ord('"')) | (data == ord("\\")) | (data >= 0xF0))
    letters = _LETTERS[data[special]]
    escaped = np.insert(data, special, ord("\\"))
    escaped[special + np.arange(1, len(special) + 1)] = np.where(letters, letters, data[special])
    starts = (ends + np.searchsorted(special, ends)).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), len(column), [None, pa.py_buffer(starts), pa.py_buffer(escaped)])
    odd = np.zeros(len(column), np.bool_)
    odd[np.searchsorted(ends, special[letters == 0], side="right") - 1] = True
    return mended(text, odd, column, lambda item: dumps(item).decode()[1:-1]) if odd.any() else text
