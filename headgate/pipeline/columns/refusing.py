"""Refusing: what is left to records, because it fails there or columns cannot be certain of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import pyarrow as pa

from headgate.api import DataError
from headgate.api.frame import Frame, NotByColumns

S = TypeVar("S")
T = TypeVar("T")


def refuse(why: str, rows: pa.Array | None) -> None:
    """Raises NotByColumns if the mask names any; None names none."""
    if rows is not None and rows.true_count:
        raise NotByColumns(why, rows)


def refusing_errors(method: Callable[[S, Frame], T]) -> Callable[[S, Frame], T]:
    """For `apply_to_columns`: what is an error of all records is theirs to tell. Names and texts of a configuration may
    also be such that Arrow has no room for them."""

    @wraps(method)
    def call(self: S, frame: Frame) -> T:
        try:
            return method(self, frame)
        except (DataError, UnicodeEncodeError) as error:
            raise NotByColumns("a transform that fails") from error

    return call
