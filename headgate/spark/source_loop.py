"""The loop of a source task: poll, and hand what was polled to the pump."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.api.errors import RetriableError
from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable, SourceTask
from headgate.metrics import SourceMetrics
from headgate.model import Offset, Partition, TaskSpec
from headgate.spark.control import Control
from headgate.spark.polled import Polled
from headgate.spark.pump import Pump
from headgate.spark.ride import Rides
from headgate.spark.session import SparkEngine

if TYPE_CHECKING:
    from headgate.spark.runner import Listener, Offsets

log = logging.getLogger(__name__)


class _Reads(Protocol):
    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]: ...


@dataclass(frozen=True)
class _OffsetReader:
    store: _Reads
    connector: str

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return self.store.get(self.connector, list(partitions))


@dataclass(frozen=True)
class _Context:
    """Fits `headgate.api.SourceTaskContext`."""

    config: Mapping[str, str]
    offset_reader: _OffsetReader


class SourceLoop:
    """`run` is the task's thread: all of the plugin's methods are called there, but for the commit callbacks."""

    def __init__(
        self,
        spec: TaskSpec,
        control: Control,
        listener: Listener,
        engine: SparkEngine,
        rides: Rides,
        offsets: Offsets,
        metrics: SourceMetrics,
    ) -> None:
        self._spec = spec
        self._control = control
        self._listener = listener
        self._engine = engine
        self._rides = rides
        self._offsets = offsets
        self._metrics = metrics
        self._task: SourceTask | None = None

    def wake(self) -> None:
        """From another thread: the task shall stop, or look at what has failed."""
        task = self._task
        if task is not None:
            task.stop_requested()

    def run(self) -> None:
        control = self._control
        if control.paused:
            self._wait_paused()
        if control.stopping:
            return
        self._engine.session(lambda: control.stopping)
        task = self._spec.task_class()
        task.context = _Context(self._spec.config, _OffsetReader(self._offsets, self._spec.id.connector))
        self._task = task
        pump = Pump(self._spec, control, self._listener, self._engine, self._rides, self._offsets, self._metrics, task)
        try:
            task.start(dict(self._spec.config))
            pump.start()
            self._listener.on_running()
            self._poll_until_stopped(task, pump)
            pump.finish()
        finally:
            pump.abandon()
            task.stop()

    def _poll_until_stopped(self, task: SourceTask, pump: Pump) -> None:
        control = self._control
        while not control.stopping:
            control.check()
            pump.check()
            if control.paused:
                # Nothing polled is left behind: what the status calls PAUSED has its offsets stored.
                pump.drain()
                self._wait_paused()
                if not control.stopping:
                    self._listener.on_running()
                continue
            polled = self._poll(task)
            if polled is not None:
                pump.put(polled)

    def _wait_paused(self) -> None:
        self._metrics.pause()
        self._listener.on_paused()
        self._control.wait_while_paused()
        self._metrics.resume()

    def _poll(self, task: SourceTask) -> Polled | None:
        began = time.monotonic()
        try:
            found = task.poll()
        except RetriableError as error:
            log.warning("Polling failed and is tried again: %s", error)
            self._control.wait(1.0)
            return None
        if found is None or _length(found) == 0:
            return None
        self._metrics.poll_ms.add((time.monotonic() - began) * 1000)
        self._metrics.batch_size.add(_length(found))
        self._metrics.polled.add(_length(found))
        return Polled.of(found)


def _length(found: Sequence[SourceRecord] | SourceTable) -> int:
    return int(found.table.num_rows) if isinstance(found, SourceTable) else len(found)
