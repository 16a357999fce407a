"""Backoff: how long to wait before something is tried again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_STEPS: Final = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    """In seconds."""

    first: float
    factor: float = 1.0
    most: float = math.inf

    def after(self, failures: int) -> float:
        """After that many in a row, from 1 on."""
        return min(self.first * self.factor ** min(failures - 1, _STEPS), self.most)
