"""Tolerance: the one place where a failed operation on a record is dealt with.

Nothing here has a side effect. A record that is left out comes back as a Failure beside the results, to be logged and
kept by the worker. And nothing here waits: where an operation is to be tried again after a pause, the batch ends before
that record, and the worker sends the rest of it after the pause. So no executor is held by a pause, a task that waits
can be stopped at once, and what was done before the pause is not done again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headgate.api import ConnectError, RetriableError
from headgate.log import cause_of
from headgate.pipeline.failure import ConsumedRecord, Failure, PolledRecord, Stage, class_name, message_of, plugin_name
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.trace import Traces

T = TypeVar("T")


class StageFailed(Exception):
    """One operation on one record failed, with this error."""

    def __init__(self, stage: Stage, cls: type, error: Exception) -> None:
        super().__init__(stage, cls, error)
        self.stage = stage
        self.cls = cls
        self.error = error


def attempt(stage: Stage, cls: type, fn: Callable[..., T], *args: Any) -> T:
    """What `fn(*args)` returns. Raises StageFailed with what `fn` raised."""
    try:
        return fn(*args)
    except Exception as error:
        raise StageFailed(stage, cls, error) from error


class ToleranceExceeded(ConnectError):
    """A record failed, and the configuration does not allow to leave it out: the task fails with this."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        failure = self.failure
        return (
            f"Tolerance exceeded in error handler: stage '{failure.stage.value}' with class '{failure.plugin}', "
            f"where {failure.where}: {failure.error.rpartition('.')[2]}: {failure.message or ''}"
        )

    @property
    def cause_line(self) -> str:
        """For whoever looks at the status of the task."""
        failure = self.failure
        said = cause_of(self.__cause__) if self.__cause__ else failure.said
        return f"{said}; {failure.unread}" if failure.unread else f"{said} (in {failure.plugin}, {failure.where})"


@dataclass(frozen=True, slots=True)
class Retry:
    """An operation that is being tried again, on the first record of a batch."""

    stage: Stage
    plugin: str
    attempts: int
    """Those that failed so far."""
    elapsed_ms: float = 0.0
    """Since the first of them."""


@dataclass(frozen=True, slots=True)
class Postponed:
    row: int
    """The record to be tried again; those before it are done with."""
    retry: Retry
    delay_ms: float


class Triage:
    """Of one batch: which failures are left out, which are tried again later, which fail the task."""

    def __init__(
        self, policy: ErrorPolicy, retry: Retry | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._policy = policy
        self._retry = retry
        self._clock = clock
        self._began = clock()
        self._traces = Traces()
        self.failures: list[Failure] = []
        self.postponed: Postponed | None = None
        self.by_records: Counter[str] = Counter()
        """How many records could not go by columns, and why."""

    @property
    def end(self) -> int | None:
        """The row before which the batch ends for now; None: it is done."""
        return self.postponed.row if self.postponed else None

    def goes_on(self, row: int, failed: StageFailed, record: Callable[[], ConsumedRecord | PolledRecord]) -> bool:
        """Whether the batch goes on after this row, without its record. False: it ends before this row for now.
        Raises ToleranceExceeded."""
        policy, plugin = self._policy, plugin_name(failed.cls)
        retry = self._tried(row, failed.stage, plugin)
        if isinstance(failed.error, RetriableError):
            delay = policy.delay_ms(retry.attempts, retry.elapsed_ms)
            if delay is not None:
                self.postponed = Postponed(row, retry, delay)
                return False
        failure = Failure(
            stage=failed.stage,
            plugin=plugin,
            error=class_name(type(failed.error)),
            message=message_of(failed.error),
            trace=self._traces.of(failed.error) if policy.keeps_traces else (),
            record=record(),
            row=row,
            attempts=retry.attempts,
        )
        if not policy.tolerant:
            raise ToleranceExceeded(failure) from failed.error
        self.failures.append(failure)
        return True

    def _tried(self, row: int, stage: Stage, plugin: str) -> Retry:
        """This attempt counted; only the first record of a batch can have been tried before."""
        before = self._retry if row == 0 else None
        if before is None or (before.stage, before.plugin) != (stage, plugin):
            return Retry(stage, plugin, 1)
        elapsed = before.elapsed_ms + (self._clock() - self._began) * 1000
        return Retry(stage, plugin, before.attempts + 1, elapsed)
