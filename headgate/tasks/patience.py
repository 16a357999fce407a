"""Patience: how a task waits, for Spark or for time to pass, and yet hears at once when it shall end."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from headgate.tasks.control import Control, Stopped

T = TypeVar("T")

_LOOK_S: Final = 0.5


def result_of(future: Future[T], control: Control, meanwhile: Callable[[], None] | None = None) -> T:
    """What Spark found, however long it takes; `meanwhile` is called now and then. Raises Stopped when the task is
    given up on: a task that was asked to stop still wants its result."""
    while True:
        try:
            return future.result(_LOOK_S)
        except FutureTimeout:
            if future.done():
                raise
            control.check()
            if control.cancelled:
                raise Stopped("given up on while Spark worked") from None
            if meanwhile is not None:
                meanwhile()


def sit_out(seconds: float, control: Control, meanwhile: Callable[[], None] | None = None) -> None:
    """Waits before something is tried again. Raises Stopped as soon as the task is asked to stop."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not control.wait(min(left, _LOOK_S)):
            raise Stopped("asked to stop before something was to be tried again")
        if meanwhile is not None:
            meanwhile()
