"""Commits: the offsets of a sink task, once what stands before them was put and the task lets them pass."""

from __future__ import annotations

import logging
import time

from headgate.api.task import FrameSinkTask, SinkTask, TableSinkTask
from headgate.metrics import SinkMetrics
from headgate.model import TaskSpec
from headgate.spark.partitions import Partitions
from headgate.spark.reporter import Reporter

log = logging.getLogger(__name__)


class Commits:
    """Used by the task's thread alone."""

    def __init__(
        self,
        spec: TaskSpec,
        task: SinkTask | TableSinkTask | FrameSinkTask,
        partitions: Partitions,
        reporter: Reporter,
        metrics: SinkMetrics,
    ) -> None:
        self._task = task
        self._partitions = partitions
        self._reporter = reporter
        self._metrics = metrics
        self._every_s = spec.flush_interval_ms / 1000
        self._patience_s = spec.flush_timeout_ms / 1000
        self._next = time.monotonic() + self._every_s

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._next

    def commit(self) -> None:
        """Commits what was put and what the task allows. A failure is tried again at the next interval."""
        self._next = time.monotonic() + self._every_s
        current = dict(self._partitions.positions)
        if not current:
            return
        began = time.monotonic()
        try:
            allowed = self._task.pre_commit(current)
        except Exception:
            log.exception("The task refused to commit: going back to what was committed last")
            self._metrics.committed(began, ok=False)
            self._partitions.seek(dict(self._partitions.safe))
            return
        if not self._reporter.flush(self._patience_s):
            log.warning("Kafka has not acknowledged all dead letters yet: offsets are not committed this time")
            self._metrics.committed(began, ok=False)
            return
        wanted = {
            where: offset
            for where, offset in allowed.items()
            if where in current and offset <= current[where] and self._partitions.safe.get(where) != offset
        }
        if not wanted:
            self._metrics.commit_skips += 1
            return
        try:
            self._partitions.commit(wanted)
        except Exception as error:
            log.warning("Offsets could not be committed, will try again: %s", error)
            self._metrics.committed(began, ok=False)
            return
        self._metrics.commit_seq += 1
        self._metrics.committed(began, ok=True)
