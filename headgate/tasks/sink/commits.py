"""Commits: the offsets of a sink task, once what stands before them was put and the task lets them pass."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headgate.api.task import FrameSinkTask, SinkTask, TableSinkTask
from headgate.metrics import SinkMetrics
from headgate.model import TaskSpec, TopicPartition
from headgate.tasks.ports import Clock, Consumer
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.sink.state import SinkState

log = logging.getLogger(__name__)


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

    def __post_init__(self) -> None:
        self._next = self._clock.now() + self._spec.flush_interval_ms / 1000

    @property
    def due(self) -> bool:
        return self._clock.now() >= self._next

    @property
    def due_in(self) -> float:
        return max(self._next - self._clock.now(), 0.0)

    def commit(self, state: SinkState, closing: Collection[TopicPartition] = ()) -> tuple[SinkState, bool]:
        """Commits what was put and what the task allows. What Kafka does not take is tried again at the next interval.

        False when the task refused: what was put since it let offsets pass comes again, from there or from where the
        task says that it is. Partitions that are `closing` come again to whoever has them next."""
        began = self._clock.now()
        self._next = began + self._spec.flush_interval_ms / 1000
        # What the task wants to get again is not done.
        current = {**state.positions, **self._context.wished}
        # Before the task is asked: what it writes to its own system may be final.
        if not current or not self._dead_letters_arrived(began):
            return state, True
        try:
            allowed = self._task.pre_commit(dict(current))
        except Exception:
            log.exception("The task refused to commit: going back to what it let pass last")
            self._metrics.committed(began, ok=False)
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
            return state, True
        try:
            self._consumer.commit(wanted)
        except Exception as error:
            log.warning("Offsets could not be committed, will try again: %s", error)
            self._metrics.committed(began, ok=False)
            return state, True
        self._metrics.commit_seq += 1
        self._metrics.committed(began, ok=True)
        return state.has_committed(wanted), True

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
