"""Casts of whole columns, where they are certain to give what the cast of each value would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import SchemaType
from headgate.pipeline.columns.frame import Column, NotByColumns, is_text
from headgate.pipeline.columns.shown import shown
from headgate.pipeline.schemas import BITS

_EXACT: Final = 2.0**53
_INTEGER: Final = r"\A-?[0-9]{1,18}\z"
_NUMBER: Final = r"\A-?[0-9]{1,15}(?:\.[0-9]{1,17})?\z"


def cast_column(column: Column, target: SchemaType) -> Column:
    """Null stays null. Raises NotByColumns."""
    if pa.types.is_null(column.type):
        return column
    cast = _CASTS.get(target)
    if cast is None:
        raise NotByColumns(f"a cast to {target.value}")
    return cast(column)


def _to_integer(bits: int) -> Callable[[Column], Column]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def cast(column: Column) -> Column:
        if is_text(column):
            _require(pc.match_substring_regex(column, _INTEGER), "a text that may be no number")
        if pa.types.is_floating(column.type):
            _require(pc.less(pc.abs(column), _EXACT), "a number that is cut to size")
            column = pc.trunc(column)
        whole = column.cast(pa.int64())
        _require(pc.and_(pc.less_equal(low, whole), pc.less_equal(whole, high)), "a number that is cut to size")
        return whole

    return cast


def _to_float(column: Column) -> Column:
    if is_text(column):
        _require(pc.match_substring_regex(column, _NUMBER), "a text that may be no number")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.float64(), safe=False)


def _to_boolean(column: Column) -> Column:
    if is_text(column):
        return pc.equal(pc.utf8_lower(column), "true")
    if pa.types.is_floating(column.type):
        return pc.greater_equal(pc.abs(column), 1.0)  # as an integer it is not 0
    return column if pa.types.is_boolean(column.type) else pc.not_equal(column, 0)


def _require(fits: Column, otherwise: str) -> None:
    if not pc.all(fits, min_count=0).as_py():
        raise NotByColumns(otherwise)


_CASTS: Final[Mapping[SchemaType, Callable[[Column], Column]]] = {
    **{kind: _to_integer(bits) for kind, bits in BITS.items()},
    SchemaType.FLOAT64: _to_float,
    SchemaType.BOOLEAN: _to_boolean,
    SchemaType.STRING: shown,
}
