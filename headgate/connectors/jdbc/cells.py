"""Cells: columns of Arrow as parameters of one statement, and the names of their types.

All rows of a statement are a few texts, which the database takes apart itself: one call for each column, or for all of
them, instead of one for each cell. PostgreSQL gets an array for each column, others one JSON document.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.connectors.jdbc.dialect import Family

_TESTS: Final[Sequence[tuple[str, Callable[[pa.DataType], bool]]]] = (
    ("int8", pa.types.is_int8),
    ("int16", pa.types.is_int16),
    ("int32", pa.types.is_int32),
    ("int64", pa.types.is_int64),
    ("float", pa.types.is_float32),
    ("double", pa.types.is_float64),
    ("bool", pa.types.is_boolean),
    ("string", pa.types.is_string),
    ("binary", pa.types.is_binary),
    ("decimal", pa.types.is_decimal),
    ("date", pa.types.is_date),
    ("time", pa.types.is_time),
    ("timestamp", pa.types.is_timestamp),
    ("string", pa.types.is_null),
)

_BARE: Final = frozenset({"int8", "int16", "int32", "int64", "float", "double", "decimal", "bool"})
"""What needs no quotes within an array."""


def kind_of(kind: pa.DataType) -> str | None:
    """None: a list, a map or a struct, which no column is made of."""
    return next((name for name, test in _TESTS if test(kind)), None)


def parameters_of(columns: Sequence[pa.Array], family: Family, time_zone: str) -> list[str]:
    """Of a statement of `merge.py`."""
    if family is Family.POSTGRESQL:
        return [_array(column, time_zone) for column in columns]
    return [_document([_cells(column, family, time_zone) for column in columns])]


# --- arrays -----------------------------------------------------------------------------------------------------------


def _array(column: pa.Array, time_zone: str) -> str:
    """As PostgreSQL reads them."""
    texts = _texts(column, time_zone)
    if kind_of(column.type) == "string":
        texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    elif kind_of(column.type) == "binary":
        texts = pc.replace_substring(texts, "\\", "\\\\")
    if kind_of(column.type) not in _BARE:
        texts = pc.binary_join_element_wise('"', texts, '"', "")
    texts = pc.fill_null(texts, "NULL")
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), ",")
    return f"{{{joined[0].as_py()}}}"


def _texts(column: pa.Array, time_zone: str) -> pa.Array:
    """Values as PostgreSQL would write them, or in another way that it reads."""
    match kind_of(column.type):
        case "float":
            return column.cast(pa.float64()).cast(pa.string())
        case "binary":
            return pa.array([None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string())
        case "decimal":
            return pa.array([None if each is None else format(each, "f") for each in column.to_pylist()], pa.string())
        case "timestamp" if time_zone == "UTC":
            digits = column.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms")).cast(pa.string())
            return pc.binary_join_element_wise(digits, "+00", "")
        case "timestamp":
            # A column without a zone takes the digits, one with a zone the offset behind them.
            return pc.strftime(column.cast(pa.timestamp("ms", time_zone)), "%Y-%m-%d %H:%M:%S%z")
        case _:
            return column.cast(pa.string())


# --- JSON -------------------------------------------------------------------------------------------------------------


def _cells(column: pa.Array, family: Family, time_zone: str) -> list[Any]:
    """Values for JSON, None where there is none."""
    kind = kind_of(column.type)
    if kind in ("float", "double"):
        return [each if each is None or math.isfinite(each) else _odd(each, family) for each in column.to_pylist()]
    if kind == "bool":
        column = column.cast(pa.int8())
    elif kind == "binary":
        return [None if each is None else each.hex() for each in column.to_pylist()]
    elif kind == "decimal":
        return [None if each is None else format(each, "f") for each in column.to_pylist()]
    elif kind in ("date", "timestamp") and family is Family.SQLITE:
        column = column.cast(pa.timestamp("ms")).cast(pa.int64())  # as its driver writes them
    elif kind in ("date", "time"):
        column = column.cast(pa.string())
    elif kind == "timestamp":
        column = pc.strftime(column.cast(pa.timestamp("ms", time_zone)), "%Y-%m-%d %H:%M:%S")
    found: list[Any] = column.to_pylist()
    return found


def _odd(value: float, family: Family) -> str | None:
    if math.isnan(value):
        return None if family is Family.SQLITE else "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _document(columns: Sequence[Sequence[Any]]) -> str:
    """A list for each row."""
    return json.dumps(list(zip(*columns, strict=True)), ensure_ascii=False, separators=(",", ":"))
