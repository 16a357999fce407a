"""What the outside wants of a task: written from any thread, read by the task's own."""

from __future__ import annotations

import threading


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


class Control:
    def __init__(self, paused: bool) -> None:
        self._condition = threading.Condition()
        self._paused = paused
        self._stopping = False
        self._cancelled = False
        self._failure: Exception | None = None

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def cancelled(self) -> bool:
        """Given up on: it may not write anything any more."""
        return self._cancelled

    def pause(self, paused: bool) -> None:
        with self._condition:
            self._paused = paused
            self._condition.notify_all()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def cancel(self) -> None:
        with self._condition:
            self._stopping = self._cancelled = True
            self._condition.notify_all()

    def fail(self, failure: Exception) -> None:
        """Something that the task depends on has died; its next `check` raises this."""
        with self._condition:
            self._failure = self._failure or failure
            self._condition.notify_all()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def wait(self, seconds: float) -> bool:
        """Until the task is asked to stop, fails, or the time is over; whether it may go on."""
        with self._condition:
            self._condition.wait_for(lambda: self._stopping or self._failure is not None, seconds)
        self.check()
        return not self._stopping

    def wait_while_paused(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self._paused or self._stopping or self._failure is not None)
        self.check()
