"""A submission: blobs that were given to residents together, and the future of all their results."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from headgate.pipeline.blob import Packed


class Submission:
    """Done when all of them are. Any thread may give."""

    def __init__(self, count: int) -> None:
        self.done: Future[list[Packed]] = Future()
        self._results: list[Packed] = [b""] * count
        self._missing = count
        self._lock = threading.Lock()

    def give(self, index: int, result: Packed) -> None:
        with self._lock:
            self._results[index] = result
            self._missing -= 1
            if not self._missing and not self.done.done():
                self.done.set_result(self._results)

    def fail(self, error: Exception) -> None:
        with self._lock:
            if not self.done.done():
                self.done.set_exception(error)
