"""How a task waits, for the engine or for time to pass, and yet hears soon when it shall end."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, TypeVar

from headgate.model import EngineUnavailable
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Clock, Engine

T = TypeVar("T")

_LOOK_S: Final = 0.5
_WAITS: Final = ((30.0, 2.0), (5.0, 1.0), (0.0, 0.5))
"""Many connectors that look often keep a worker busy, though none of them has anything to do."""
_SHORT: Final = (errno.EMFILE, errno.ENFILE)
_IN_WORDS: Final = os.strerror(errno.EMFILE)


def patience(quiet: float) -> float:
    """How many seconds to wait for records at a time, after so many without any: they are heard at once, only a stop
    is not."""
    return next(wait for since, wait in _WAITS if quiet >= since)


def result_of(future: Future[T], control: Control, meanwhile: Callable[[], None] | None = None) -> T:
    """What the engine found, however long it takes; `meanwhile` is called now and then. Raises Stopped when the task is
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


def insist(ask: Callable[[], Future[T]], engine: Engine, control: Control) -> T:
    """The same, asked anew when the engine has died meanwhile and there is a new one. What is asked has no effects."""
    while True:
        try:
            return result_of(ask(), control)
        except EngineUnavailable:
            if control.cancelled:
                raise
            engine.ready(lambda: control.cancelled)  # raises when it is not coming back


def sit_out(seconds: float, control: Control, clock: Clock, meanwhile: Callable[[], None] | None = None) -> None:
    """Waits before something is tried again. Raises Stopped as soon as the task is asked to stop."""
    until = clock() + seconds
    while (left := until - clock()) > 0:
        if not control.wait(min(left, _LOOK_S)):
            raise Stopped("asked to stop before something was to be tried again")
        if meanwhile is not None:
            meanwhile()


def short_of_files(error: BaseException) -> bool:
    """Whether it came of too many open files, in this process or on this machine."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, OSError) and cause.errno in _SHORT:
            return True
        if isinstance(cause, EngineUnavailable) and _IN_WORDS in str(cause):  # Spark says it in words only
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False
