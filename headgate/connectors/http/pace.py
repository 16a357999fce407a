"""RequestPace: so many requests a second, evenly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RequestPace:
    """Times are seconds of any one clock."""

    per_second: float
    """0: as many as there are."""
    _next: float = 0.0

    def left(self, now: float) -> float:
        """How long to wait before the next request."""
        return max(0.0, self._next - now)

    def begin(self, now: float) -> None:
        """A request is made."""
        if self.per_second:
            self._next = now + 1 / self.per_second
