"""A lane: one thread for the Spark jobs of one task."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Lane:
    """Started when first needed. Spark ties jobs to threads: that is how a task's jobs, and no others, can be
    cancelled."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._condition = threading.Condition()
        self._work: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        done: Future[T] = Future()
        with self._condition:
            if self._closed:
                raise RuntimeError(f"The lane of {self._name} is closed")
            self._work.append((work, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"spark-{self._name}", daemon=True)
                self._thread.start()
            self._condition.notify()
        return done

    def close(self) -> None:
        """What was submitted is still done."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._work or self._closed)
                if not self._work:
                    return
                work, done = self._work.popleft()
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
