"""Pace: so many records a second, evenly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_TOGETHER_S: Final = 0.02
"""Records of so long a time go together: one by one they would cost more than they are worth."""
_BEHIND_S: Final = 0.5
"""What could not be given for longer than this, because of a pause or a slow cluster, is not made up for."""


class Pace:
    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate` in records per second; 0: as fast as possible."""
        self._rate = rate
        self._clock = clock
        self._counted = clock()
        self._credit = 1.0

    def wait(self) -> float:
        """Seconds until some may be taken."""
        if not self._rate:
            return 0.0
        self._count()
        return max(0.0, (max(1.0, self._rate * _TOGETHER_S) - self._credit) / self._rate)

    def take(self, most: int) -> int:
        """How many may be given now."""
        if not self._rate:
            return most
        self._count()
        taken = min(int(self._credit), most)
        self._credit -= taken
        return taken

    def _count(self) -> None:
        now = self._clock()
        earned = self._credit + (now - self._counted) * self._rate
        self._credit = min(earned, max(1.0, self._rate * _BEHIND_S))
        self._counted = now
