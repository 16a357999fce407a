"""Runs a call that may never come back, and gives up on it in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Overrun(Exception):
    """The call did not come back in time. It still runs, in its own thread, and nobody hears of what it gives."""


def within(seconds: float, work: Callable[[], T], name: str) -> T:
    """What `work` returns or raises, called in a daemon thread of this name; Overrun after that time."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if errors:
        raise errors[0].with_traceback(None)
    if not results:
        raise Overrun(f"{name} did not come back within {seconds:g} s")
    return results[0]
