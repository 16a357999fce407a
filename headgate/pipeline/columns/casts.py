"""Casts of whole columns: what `transforms.casts` is for one value.

Arrow and NumPy do it where they are certain to give the same; what is left is cast one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError, Schema, SchemaType
from headgate.api.frame import Values, arrow_type
from headgate.pipeline.columns.instants import numbers, shown
from headgate.pipeline.columns.objects import objects
from headgate.pipeline.columns.refusing import refuse
from headgate.pipeline.schemas import BITS
from headgate.pipeline.transforms.casts import SOURCES, TARGETS, Cast, cast_to

Quick: TypeAlias = Callable[[pa.Array], tuple[pa.Array, pa.Array | None]]
"""The cast of a column, and a mask of what it is not certain of, or None."""

_INTEGER: Final = r"\A-?[0-9]{1,18}\z"
_NUMBER: Final = r"\A-?[0-9]{1,15}(?:\.[0-9]{1,17})?\z"
_PLACES: Final = 6
"""Decimals with more of them may be written as powers of ten."""
_FEW: Final = 15
"""Digits that every number has room for."""
_EXACT: Final = 1 << 53
"""Up to here, integers as doubles are exact, ..."""
_POWERS: Final = 22
"""... and up to here, powers of ten are: their quotient is the double that is nearest."""
_TYPED: Final = {target: arrow_type(Schema(target)) for target in TARGETS}
_PLAIN: Final = {
    **dict.fromkeys(BITS, pa.int64()),
    **dict.fromkeys((SchemaType.FLOAT32, SchemaType.FLOAT64), pa.float64()),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
}
"""What columns without schema have instead."""


def cast_values(values: Values, target: SchemaType) -> pa.Array:
    """Of the type that values of the target have, with a schema if these have one. Null stays null. Raises NotByColumns
    for rows that cannot be cast."""
    kind = (_PLAIN if values.schema is None else _TYPED)[target]
    data = values.data
    if data.null_count == len(data):
        return pa.nulls(len(data), kind)
    if values.schema is not None and values.schema.type not in SOURCES:
        refuse("a value that cannot be cast", data.is_valid())
    if pa.types.is_temporal(data.type):
        if target is SchemaType.STRING:
            return shown(data)
        data = numbers(data)
    made, odd = _QUICK[target](data)
    made = made.cast(kind)
    if odd is None or not odd.true_count:
        return made
    return pc.replace_with_mask(made, odd, _one_by_one(values, odd, cast_to(target, values.schema), kind))


def _one_by_one(values: Values, odd: pa.Array, cast: Cast, kind: pa.DataType) -> pa.Array:
    """Of the rows that the mask names."""
    made = []
    failed = np.zeros(len(values), bool)
    for row, value in zip(np.flatnonzero(odd), objects(values.where(odd)), strict=True):
        try:
            made.append(cast(value))
        except DataError:
            made.append(None)
            failed[row] = True
    refuse("a value that cannot be cast", pa.array(failed))
    return pa.array(made, kind)


def _to_integer(bits: int) -> Quick:
    kind = pa.int64() if bits == 64 else {8: pa.int8(), 16: pa.int16(), 32: pa.int32()}[bits]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def cast(data: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        odd = None
        if pa.types.is_string(data.type):
            data, odd = _numbers(data, _INTEGER, pa.int64())
            wide = pc.or_(pc.less(data, low), pc.greater(data, high)).fill_null(False)
            odd = wide if odd is None else pc.or_(odd, wide)
        elif pa.types.is_floating(data.type):
            data = _cut(data, bits)
        elif pa.types.is_decimal(data.type):
            data, odd = _whole(data)
        elif not _is_number(data.type):
            return _nothing(data, kind)
        return data.cast(kind, safe=False), odd  # which wraps, as Java does

    return cast


def _cut(data: pa.Array, bits: int) -> pa.Array:
    """Towards zero, and at most what an int or long of Java holds."""
    given = data.fill_null(0.0).to_numpy().astype(np.float64, copy=False)
    half = 2.0 ** (63 if bits == 64 else 31)
    whole = np.where(np.abs(given) < half, given, 0.0).astype(np.int64)
    whole[given >= half] = int(half) - 1
    whole[given <= -half] = -int(half)
    return pa.array(whole, mask=np.asarray(data.is_null()) if data.null_count else None)


def _whole(data: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Of decimals, towards zero."""
    unscaled, odd = _unscaled(data)
    return pc.divide(unscaled, 10 ** min(data.type.scale, 18)), odd  # which is 0 beyond 18, too


def _unscaled(data: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Of decimals, with a mask of those that are too large."""
    words = np.frombuffer(data.buffers()[1], np.int64, 2 * (data.offset + len(data)))[2 * data.offset :]
    low, high = words[::2], words[1::2]
    large = (high != low >> 63) | (low > _EXACT) | (low < -_EXACT)
    null = np.asarray(data.is_null())
    return pa.array(low, mask=null), pa.array(large & ~null)


def _to_float(kind: pa.DataType) -> Quick:
    def cast(data: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        if pa.types.is_string(data.type):
            return _numbers(data, _NUMBER, kind)
        if pa.types.is_decimal(data.type) and pa.types.is_float64(kind) and data.type.scale <= _POWERS:
            unscaled, odd = _unscaled(data)
            return pc.divide(unscaled.cast(kind, safe=False), 10.0**data.type.scale), odd
        if pa.types.is_boolean(data.type):
            data = data.cast(pa.int8())
        return (data.cast(kind, safe=False), None) if _is_number(data.type) else _nothing(data, kind)

    return cast


def _to_boolean(data: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    if pa.types.is_string(data.type):
        return pc.equal(pc.ascii_lower(data), "true"), None
    if pa.types.is_decimal(data.type):
        whole, odd = _whole(data)
        return pc.not_equal(whole, 0), odd
    if pa.types.is_floating(data.type):
        return pc.greater_equal(pc.abs(data), 1.0), None  # as an integer it is not 0
    if pa.types.is_integer(data.type):
        return pc.not_equal(data, 0), None
    return (data, None) if pa.types.is_boolean(data.type) else _nothing(data, pa.bool_())


def _to_text(data: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    if pa.types.is_boolean(data.type):
        return pc.if_else(data, "true", "false"), None
    if pa.types.is_integer(data.type) or pa.types.is_string(data.type):
        return data.cast(pa.string()), None
    if pa.types.is_decimal(data.type) and data.type.scale <= _PLACES:
        return data.cast(pa.string()), None
    if not pa.types.is_floating(data.type):
        return _nothing(data, pa.string())
    size, text = pc.abs(data), data.cast(pa.string())
    whole = pc.equal(pc.floor(data), data)
    # Java writes other numbers as powers of ten.
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(data, 0.0))
    return pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text), pc.invert(plain).fill_null(False)


def _numbers(data: pa.Array, pattern: str, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Of texts that are certain to be numbers."""
    if pc.all(pc.ascii_is_decimal(data)).as_py() and pc.max(pc.binary_length(data)).as_py() <= _FEW:
        return data.cast(kind), None  # much quicker than the pattern
    certain = pc.match_substring_regex(data, pattern)
    if certain.true_count < len(data) - data.null_count:
        data = pc.if_else(certain, data, None)
    return data.cast(kind), pc.invert(certain).fill_null(False)


def _nothing(data: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    return pa.nulls(len(data), kind), data.is_valid()


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


_QUICK: Final[Mapping[SchemaType, Quick]] = {
    **{kind: _to_integer(bits) for kind, bits in BITS.items()},
    SchemaType.FLOAT32: _to_float(pa.float32()),
    SchemaType.FLOAT64: _to_float(pa.float64()),
    SchemaType.BOOLEAN: _to_boolean,
    SchemaType.STRING: _to_text,
}
