"""Distinct values: where there are many rows and few values, one look at each value is enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError
from headgate.pipeline.columns.refusing import refuse


def by_distinct(column: pa.Array, function: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    """What the function gives for each value, as a column of this kind; null stays null. Raises NotByColumns for the
    rows where it raises DataError. Not for floats: 0.0 and -0.0 may count as one."""
    coded = column.dictionary_encode()
    made: list[Any] = []
    failed: list[int] = []
    for index, value in enumerate(coded.dictionary.to_pylist()):
        try:
            made.append(function(value))
        except DataError:
            made.append(None)
            failed.append(index)
    if failed:
        refuse("a value that fails", pc.is_in(coded.indices, pa.array(failed, coded.indices.type)))
    return pa.array(made, kind).take(coded.indices)
