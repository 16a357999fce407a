"""What the outside wants of a task: written from any thread, read by the task's own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field


class Stopped(Exception):
    """The task was asked to stop while it waited for something."""


class StartOver(Stopped):
    """What is under way is not what comes next: the task goes on from where it stands in its partitions."""


class Rebalanced(StartOver):
    """The task lost partitions while it waited: what was under way for them is no longer its own."""


class Rewind(Exception):
    """A source task's transaction was given up; the task goes on where the last committed one ended."""

    def __init__(self, error: Exception | None = None) -> None:
        """`error`: what was wrong; None: nothing, it only was not to be committed."""
        super().__init__(error)
        self.error = error


class Reassigned(Exception):
    """The task is no longer this worker's: it ends without a word."""


@dataclass(eq=False)
class Control:
    """Anybody reads what it says; its own methods alone change it."""

    paused: bool
    stopping: bool = False
    asked: float | None = None
    """When it was last asked to pause or to stop, by the monotonic clock."""
    cancelled: bool = False
    """Given up on: it may not write anything any more."""
    _failure: Exception | None = None
    _condition: threading.Condition = field(default_factory=threading.Condition)

    def pause(self, paused: bool) -> None:
        with self._condition:
            self.asked = time.monotonic() if paused else None
            self.paused = paused
            self._condition.notify_all()

    def stop(self) -> None:
        with self._condition:
            self.asked = time.monotonic()
            self.stopping = True
            self._condition.notify_all()

    def cancel(self) -> None:
        with self._condition:
            self.stopping = self.cancelled = True
            self._condition.notify_all()

    def fail(self, failure: Exception) -> None:
        """Something that the task depends on has died; its next `check` raises this."""
        with self._condition:
            self._failure = self._failure or failure
            self._condition.notify_all()

    def recover(self) -> None:
        """What had died is there again, or about to be."""
        self._failure = None

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def wait(self, seconds: float) -> bool:
        """Until the task is asked to stop, fails, or the time is over; whether it may go on."""
        with self._condition:
            self._condition.wait_for(lambda: self.stopping or self._failure is not None, seconds)
        self.check()
        return not self.stopping

    def wait_while_paused(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self.paused or self.stopping or self._failure is not None)
        self.check()
