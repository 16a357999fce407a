"""The loop of a source task: poll, and hand what was polled to the pump."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.errors import RetriableError
from headgate.api.reach import Reach
from headgate.api.record import SourceRecord
from headgate.api.task import SourceFrame, SourceTable, SourceTask
from headgate.log import cause_of, only_logged
from headgate.metrics import SourceMetrics
from headgate.model import Boundary, TaskSpec
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.control import Control, Reassigned, Rewind
from headgate.tasks.ports import Ports, TaskListener
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.at_least_once import AtLeastOnce
from headgate.tasks.source.batch import Outlet
from headgate.tasks.source.exactly_once import TRANSACTION, ExactlyOnce
from headgate.tasks.source.frames import Frames
from headgate.tasks.source.offsets import TaskOffsets
from headgate.tasks.source.polled import Polled
from headgate.tasks.source.pump import Pump
from headgate.tasks.source.transaction_requests import TransactionRequests
from headgate.tasks.source.transactions import Transactions

log = logging.getLogger(__name__)

_POLL: Final = "poll()"
_LAST_S: Final = 30.0
"""How long a task that has failed waits for what it polled before: as long as Java's producer is given to close."""


@dataclass(frozen=True)
class _OffsetReader:
    store: TaskOffsets
    connector: str

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return self.store.get(self.connector, list(partitions))


@dataclass(frozen=True)
class _Context:
    """Fits `headgate.api.SourceTaskContext`."""

    config: Mapping[str, str]
    cluster: Mapping[str, str]
    offset_reader: _OffsetReader
    transaction_context: TransactionRequests | None
    takes_frames: bool
    require: Callable[[Reach], None]
    spark: Callable[[], Any]


@dataclass(eq=False)
class SourceLoop:
    """`run` is the task's thread: all of the plugin's methods are called there, but for the commit callbacks."""

    _spec: TaskSpec
    _control: Control
    _listener: TaskListener
    _ports: Ports
    _metrics: SourceMetrics
    _task: SourceTask | None = None
    _requests: TransactionRequests | None = None
    _runs: bool = False
    """So it was said to the listener."""

    def __post_init__(self) -> None:
        self._session = BorrowedSession(self._ports.engine, self._spec.id, self._control)

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
        activity = self._metrics.activity
        activity.witnesses["Spark"] = lambda: self._ports.engine.trouble(self._spec.id)
        activity.enter("the start of Spark")
        self._ports.engine.ready(lambda: control.stopping)
        activity.enter("start()")
        with ExitStack() as closing:
            transactions = None
            if self._spec.transaction is not None:
                transactions = Transactions(self._spec, control, self._listener, self._ports)
                closing.callback(transactions.close)
                transactions.open()
            # Only now: what others may have had open is settled, nothing older can still come.
            offsets = self._ports.offsets(self._spec)
            closing.callback(offsets.close)
            try:
                self._live_again_and_again(offsets, transactions)
            except Reassigned:
                log.info("The task ends: another worker has it by now, or newer configurations")

    def _live_again_and_again(self, offsets: TaskOffsets, transactions: Transactions | None) -> None:
        """After a transaction that was given up, a new instance of the task goes on at the committed offsets."""
        control = self._control
        while True:
            try:
                self._live(offsets, transactions)
                return
            except Rewind as rewind:
                assert transactions is not None
                self._metrics.passed = self._metrics.taken
                if control.stopping:
                    return
                if rewind.error is not None:
                    self._metrics.activity.fails(TRANSACTION, cause_of(rewind.error))
                pause = transactions.retry_delay(rewind)
                if control.paused:
                    self._wait_paused()
                elif pause:
                    control.wait(pause)
                if control.stopping:
                    return

    def _live(self, offsets: TaskOffsets, transactions: Transactions | None) -> None:
        """One instance of the task, from start to stop."""
        spec, control = self._spec, self._control
        connector_ends = spec.transaction is not None and spec.transaction.boundary is Boundary.CONNECTOR
        self._requests = TransactionRequests() if connector_ends else None
        task = spec.task_class()

        def outlet(reporter: Reporter) -> Outlet:
            if transactions is None:
                return AtLeastOnce(spec, control, self._ports, offsets, self._metrics, task, reporter)
            return ExactlyOnce(spec, control, self._ports.clock, offsets, self._metrics, task, reporter, transactions)

        pump = Pump(spec, control, self._listener, self._ports, self._metrics, task, outlet)
        frames = Frames(spec, control, self._ports.engine, self._metrics, pump)
        reader = _OffsetReader(offsets, spec.id.connector)
        ports, session = self._ports, self._session
        task.context = _Context(
            spec.config, spec.cluster, reader, self._requests, frames.taken, ports.require, session.get
        )
        self._task = task
        try:
            task.start(dict(spec.config))
            pump.start()
            if not self._runs:
                self._runs = True
                self._listener.on_running()
            self._poll_until_stopped(task, pump, frames)
            pump.finish()
        except Rewind:
            pump.abandon()
            pump.join()
            raise
        except Exception:
            # What was polled before is not to blame. A transaction, though, ends with the task that has failed in it.
            if transactions is None:
                pump.settle(_LAST_S)
            raise
        finally:
            frames.close()
            pump.abandon()
            with only_logged("The task could not be stopped"):
                task.stop()

    def _poll_until_stopped(self, task: SourceTask, pump: Pump, frames: Frames) -> None:
        control = self._control
        while not control.stopping:
            control.check()
            pump.check()
            if control.paused:
                # Nothing polled is left behind: what the status calls PAUSED has its offsets stored.
                pump.drain()
                self._wait_paused()
                if not control.stopping:
                    self._runs = True
                    self._listener.on_running()
                continue
            for polled in self._poll(task, frames):
                self._metrics.activity.enter("the wait for room in the pipeline")
                pump.put(polled)

    def _wait_paused(self) -> None:
        self._metrics.pause()
        self._runs = False
        self._listener.on_paused()
        self._control.wait_while_paused()
        self._metrics.resume()

    def _poll(self, task: SourceTask, frames: Frames) -> list[Polled]:
        clock = self._ports.clock
        began = clock()
        activity = self._metrics.activity
        activity.enter(_POLL)
        try:
            found = self._session.call(task.poll, _POLL)
            activity.goes(_POLL)
        except RetriableError as error:
            activity.fails(_POLL, cause_of(error))
            log.warning("Polling failed and is tried again: %s", error)
            self._control.wait(1.0)
            return []
        if isinstance(found, SourceFrame):
            frames.send(task, found)
            return []
        if found is None:
            return []
        count = _length(found)
        if count:
            self._metrics.poll_ms.add((clock() - began) * 1000)
            self._metrics.batch_size.add(count)
            self._metrics.polled.add(count)
        if self._requests is not None:
            return self._requests.cut(found)
        polled = Polled.of(found)
        return [polled] if count or polled.offsets else []  # a table without rows may still say how far the task is


def _length(found: Sequence[SourceRecord] | SourceTable) -> int:
    return int(found.table.num_rows) if isinstance(found, SourceTable) else len(found)
