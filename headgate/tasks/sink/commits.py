"""Commits: the offsets of a sink task, once what stands before them was put and the task lets them pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping

from headgate.api.task import FrameSinkTask, SinkTask, TableSinkTask
from headgate.kafka.consumer import Partitions
from headgate.metrics import SinkMetrics
from headgate.model import TaskSpec, TopicPartition
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink.context import RuntimeSinkContext

log = logging.getLogger(__name__)


class Commits:
    """Used by the task's thread alone."""

    def __init__(
        self,
        spec: TaskSpec,
        task: SinkTask | TableSinkTask | FrameSinkTask,
        context: RuntimeSinkContext,
        partitions: Partitions,
        reporter: Reporter,
        metrics: SinkMetrics,
    ) -> None:
        self._task = task
        self._context = context
        self._partitions = partitions
        self._reporter = reporter
        self._metrics = metrics
        self._every_s = spec.flush_interval_ms / 1000
        self._patience_s = spec.flush_timeout_ms / 1000
        self._next = time.monotonic() + self._every_s

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next

    def commit(self, closing: Collection[TopicPartition] = ()) -> bool:
        """Commits what was put and what the task allows. What Kafka does not take is tried again at the next interval.

        False when the task refused: what was put since it let offsets pass comes again, from there or from where the
        task says that it is. Partitions that are `closing` come again to whoever has them next."""
        self._next = time.monotonic() + self._every_s
        # What the task wants to get again is not done.
        current = {**self._partitions.positions, **self._context.wished}
        if not current:
            return True
        began = time.monotonic()
        # Before the task is asked: what it writes to its own system may be final.
        if not self._dead_letters_arrived(began):
            return True
        try:
            allowed = self._task.pre_commit(dict(current))
        except Exception:
            log.exception("The task refused to commit: going back to what it let pass last")
            self._metrics.committed(began, ok=False)
            back = {**self._partitions.safe, **self._context.take_seeks()}
            self._partitions.rewind({where: offset for where, offset in back.items() if where not in closing})
            return False
        passed = _within(allowed, current)
        self._partitions.safe |= passed
        if not self._dead_letters_arrived(began):
            return True
        committed = self._partitions.committed
        wanted = {where: offset for where, offset in passed.items() if committed.get(where) != offset}
        if not wanted:
            self._metrics.commit_skips += 1
            return True
        try:
            self._partitions.commit(wanted)
        except Exception as error:
            log.warning("Offsets could not be committed, will try again: %s", error)
            self._metrics.committed(began, ok=False)
            return True
        self._metrics.commit_seq += 1
        self._metrics.committed(began, ok=True)
        return True

    def _dead_letters_arrived(self, began: float) -> bool:
        if self._reporter.flush(self._patience_s):
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
