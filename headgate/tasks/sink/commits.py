"""Commits: the offsets of a sink task, once what stands before them was put and the task lets them pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.api.errors import ConnectError, RetriableError
from headgate.api.task import FrameSinkTask, SinkTask, TableSinkTask
from headgate.backoff import Backoff
from headgate.log import cause_of
from headgate.metrics import SinkMetrics
from headgate.model import TaskSpec, TopicPartition
from headgate.tasks.ports import Clock, Consumer
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.sink.state import SinkState

log = logging.getLogger(__name__)

_PAUSE: Final = Backoff(1.0, 2.0, 10.0)
"""Not longer: a task that is to pause does so after it."""
_PRE_COMMIT: Final = "pre_commit()"
_COMMIT: Final = "the commit of offsets"
_MOST: Final = 3
"""So many refusals in a row that are not to be retried, and the task fails."""


@dataclass(eq=False)
class Commits:
    """Used by the task's thread alone."""

    _spec: TaskSpec
    _task: SinkTask | TableSinkTask | FrameSinkTask
    _context: RuntimeSinkContext
    _consumer: Consumer
    _reporter: Reporter
    _metrics: SinkMetrics
    _clock: Clock
    _next: float = field(init=False)
    _refusals: int = 0
    """In a row, without a commit in between."""
    _unexpected: int = 0
    """Those of them that the task does not call retriable."""
    _refused: Mapping[TopicPartition, int] = field(default_factory=dict)
    _error: Exception | None = None
    _complaint: str = ""
    """Why the last commit failed."""

    def __post_init__(self) -> None:
        self._next = self._clock() + self._spec.flush_interval_ms / 1000

    def take_due(self) -> bool:
        """Whether it is time for a commit, or the task has asked for one since this was asked last."""
        return self._context.take_commit_request() or self._clock() >= self._next

    def commit(self, state: SinkState, closing: Collection[TopicPartition] = ()) -> tuple[SinkState, bool]:
        """Commits what was put and what the task allows. What Kafka does not take is tried again at the next interval.

        False when the task refused: what was put since it let offsets pass comes again, from there or from where the
        task says that it is. Partitions that are `closing` come again to whoever has them next."""
        began = self._clock()
        self._next = began + self._spec.flush_interval_ms / 1000
        # What the task wants to get again is not done.
        current = {**state.positions, **self._context.wished}
        # Before the task is asked: what it writes to its own system may be final.
        if not current or not self._dead_letters_arrived(began):
            return state, True
        activity = self._metrics.activity
        activity.enter(_PRE_COMMIT)
        try:
            allowed = self._task.pre_commit(dict(current))
        except Exception as error:
            activity.fails(_PRE_COMMIT, cause_of(error))
            self._metrics.committed(began, ok=False)
            self._count(error, current)
            back = {**state.safe, **self._context.take_seeks()}
            again = {where: offset for where, offset in back.items() if where not in closing}
            self._consumer.seek(again)
            return state.rewound(again), False
        passed = _within(allowed, current)
        state = state.allowed(passed)
        if not self._dead_letters_arrived(began):
            return state, True
        wanted = state.uncommitted(passed)
        if not wanted:
            self._metrics.commit_skips += 1
            # One that holds back what it refused has not tried it again yet.
            if current == self._refused and all(passed.get(where, until) == until for where, until in current.items()):
                self._refusals = self._unexpected = 0
                activity.goes(_PRE_COMMIT)
            return state, True
        try:
            self._consumer.commit(wanted)
        except Exception as error:
            activity.fails(_COMMIT, cause_of(error))
            if str(error) != self._complaint:  # a partition that is no more would be told of at every interval
                log.warning("Offsets could not be committed, will try again: %s", error)
            self._complaint = str(error)
            self._metrics.committed(began, ok=False)
            return state, True
        self._refusals = self._unexpected = 0
        activity.goes(_PRE_COMMIT)
        activity.goes(_COMMIT)
        self._complaint = ""
        self._metrics.commit_seq += 1
        self._metrics.committed(began, ok=True)
        return state.has_committed(wanted), True

    def pause_s(self) -> float:
        """After a refusal: how long to wait before the records come again. Raises ConnectError when there were too many
        in a row that are not to be retried."""
        if self._unexpected >= _MOST:
            assert self._error is not None
            times = f"{self._refusals} times in a row, without a commit in between"
            raise ConnectError(f"pre_commit() failed {times}: {cause_of(self._error)}") from self._error
        return _PAUSE.after(self._refusals)

    def _count(self, error: Exception, refused: Mapping[TopicPartition, int]) -> None:
        self._refusals += 1
        self._unexpected += not (isinstance(error, RetriableError) or self._context.session.lost(error))
        self._error, self._refused = error, refused
        counters = self._metrics.errors
        counters.failures += 1
        counters.retries += self._unexpected < _MOST
        counters.last_error_ms = int(time.time() * 1000)
        log.warning(
            "pre_commit() failed, %d in a row: nothing is committed, and records come again from what the task let pass"
            " last: %s", self._refusals, cause_of(error), exc_info=error,
        )  # fmt: skip

    def _dead_letters_arrived(self, began: float) -> bool:
        if self._reporter.flush(self._spec.flush_timeout_ms / 1000):
            return True
        log.warning("Kafka has not acknowledged all dead letters yet: offsets are not committed this time")
        self._metrics.committed(began, ok=False)
        return False


def _within(allowed: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """What a task may let pass: no more than it was given."""
    passed = {where: offset for where, offset in allowed.items() if where in current and offset <= current[where]}
    ignored = {str(where): offset for where, offset in allowed.items() if where not in passed}
    if ignored:
        log.warning("The task lets offsets pass that it was not given, which are ignored: %s", ignored)
    return passed
