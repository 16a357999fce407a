"""RefusedRows: the records of a batch that go record by record, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import Frame, NotByColumns

T = TypeVar("T")

_TRIES: Final = 4
"""Of a call that refuses more and more records of one frame."""


class RefusedRows:
    def __init__(self, count: int) -> None:
        self._mask = np.zeros(count, bool)
        self.reasons: Counter[str] = Counter()

    @property
    def rows(self) -> Any:
        """Their numbers, ascending, in numpy."""
        return np.flatnonzero(self._mask)

    def spared(self, rows: Any) -> Any:
        """Those of these rows that are not refused."""
        return rows[~self._mask[rows]] if self.reasons else rows

    def add(self, rows: Any, why: str) -> None:
        """Rows of the batch, by their numbers."""
        if len(rows):
            self._mask[rows] = True
            self.reasons[why] += len(rows)

    def add_others(self, rows: Any, why: str) -> None:
        """All rows but these, and but those that were refused before."""
        others = ~self._mask
        others[rows] = False
        self.add(np.flatnonzero(others), why)

    def accepted(self, frame: Frame, call: Callable[[Frame], T]) -> tuple[Frame, T] | None:
        """The frame without what the call refuses, and what it returns for that; None when nothing is left."""
        for _ in range(_TRIES):
            try:
                return frame, call(frame)
            except NotByColumns as refusal:
                left = self._without(frame, refusal)
            except Exception as error:  # as records they go on, or show which of them is wrong
                left = self._without(frame, NotByColumns(type(error).__name__))
            if left is None:
                return None
            frame = left
        self.add(frame.rows.to_numpy(), "refused too often")
        return None

    def _without(self, frame: Frame, refusal: NotByColumns) -> Frame | None:
        mask = refusal.rows
        if mask is None or not pc.any(mask, min_count=0).as_py():
            self.add(frame.rows.to_numpy(), refusal.why)
            return None
        mask = mask.fill_null(False)
        self.add(frame.rows.filter(mask).to_numpy(), refusal.why)
        return frame.split(pc.invert(mask))[0]


def numbers(rows: Any) -> pa.Array:
    """Of numpy's integers, as a frame has them."""
    return pa.array(rows, pa.int64())
