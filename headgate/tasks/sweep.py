"""Sweep: what tasks leave behind goes soon after they end.

Loops, tasks and their Kafka clients know each other, so that only Python's garbage collector finds out that nobody
needs them any more, and in a large process with little to do that may be hours later. Clients have threads, connections
and files until then.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

_SOON_S: Final = 5.0


class Sweep:
    """From any thread. Many that end together cost one look."""

    def __init__(self, seconds: float = _SOON_S) -> None:
        self._seconds = seconds
        self._guard = threading.Lock()
        self._due: threading.Timer | None = None

    def soon(self) -> None:
        with self._guard:
            if self._due is None:
                self._due = threading.Timer(self._seconds, self._run)
                self._due.daemon = True
                self._due.name = "sweep"
                self._due.start()

    def _run(self) -> None:
        with self._guard:
            self._due = None
        gc.collect()
