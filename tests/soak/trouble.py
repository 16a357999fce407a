"""Trouble: when something was broken, so that whoever was not answered meanwhile need not wonder."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

AFTERWARDS_S: Final = 3.0
"""What was broken is mended, and somebody may still be on the way to it."""


class Trouble:
    """Any thread may ask; one breaks things."""

    def __init__(self) -> None:
        self._until = -math.inf

    @contextmanager
    def under_way(self) -> Iterator[None]:
        self._until = math.inf
        try:
            yield
        finally:
            self._until = time.monotonic()

    def since(self, began: float) -> bool:
        """Whether there was any since then."""
        return self._until + AFTERWARDS_S >= began
