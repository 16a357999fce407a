"""Heartbeat: whether another thread still answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

_OFTEN: Final = 10


@dataclass(eq=False)
class Heartbeat:
    """Checked now and then, from one thread. It is lost when an answer takes longer than its patience, and comes back
    with that answer."""

    _ask: Callable[[], Future[None]]
    """Asks for an answer."""
    _patience_s: float
    _clock: Callable[[], float] = time.monotonic
    lost: bool = False
    _asked_at: float = 0.0
    _answer: Future[None] | None = None

    def check(self) -> bool:
        """Whether `lost` is another than the last time. Raises what `ask` raises."""
        now, before = self._clock(), self.lost
        waits = self._answer is not None and not self._answer.done()
        self.lost = waits and now - self._asked_at > self._patience_s
        if self._answer is None or (not waits and now - self._asked_at >= self._patience_s / _OFTEN):
            self._asked_at = now
            self._answer = self._ask()
        return self.lost is not before
