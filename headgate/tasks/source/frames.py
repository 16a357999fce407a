"""Frames: those that a source task polls are sent by the executors, while the task's thread waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from headgate.api.errors import ConnectError
from headgate.api.task import SourceFrame, SourceTable, SourceTask
from headgate.metrics import SourceMetrics
from headgate.model import EngineUnavailable, TaskSpec
from headgate.pipeline.frame_report import FrameReport
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Engine, FrameSender
from headgate.tasks.source.polled import Polled
from headgate.tasks.source.pump import Pump
from headgate.tasks.source.refusals import RecordRefused
from headgate.tasks.waiting import insist

_LOOK_S: Final = 0.5


@dataclass(eq=False)
class Frames:
    """Used by the task's thread."""

    _spec: TaskSpec
    _control: Control
    _engine: Engine
    _metrics: SourceMetrics
    _pump: Pump

    def __post_init__(self) -> None:
        self._sender: FrameSender | None = None
        if self._executors_can():
            self._sender = self._engine.frame_sender(self._spec, self._pump.chain)

    def _executors_can(self) -> bool:
        """Whether the worker need not see each record."""
        spec, policy = self._spec, self._pump.reporter.policy
        tells = policy.reports or policy.retry_timeout_ms
        may_create = spec.topic_groups and spec.chain.steps  # topics that only transforms know of
        return not (spec.transaction or self._pump.statements or tells or may_create)

    @property
    def taken(self) -> bool:
        return self._sender is not None

    def send(self, task: SourceTask, frame: SourceFrame) -> None:
        """Behind all that was polled before, and until its offset is stored, as far as that goes. Raises what the task
        fails with, or Stopped."""
        if self._sender is None:
            raise ConnectError("The task has polled a SourceFrame, which it may do only where context.takes_frames")
        if not self._all_before_is_there():
            return  # its offset is not stored: it comes again
        self._pump.see_topic(frame.topic)
        self._metrics.activity.enter("the wait for executors that send to Kafka")
        self._metrics.taken += 1  # nobody knows how many it is
        unread: Exception | None = None
        try:
            report = insist(partial(self._sender.send, frame), self._engine, self._control)
            unread = ConnectError(report.unread) if report.unread else None
        except (EngineUnavailable, Stopped):
            raise
        except Exception as error:
            self._control.check()
            report, unread = FrameReport(), error
        finally:
            self._metrics.passed += 1
        self._count(report)
        if report.failed is not None:
            raise report.failed
        if report.refused is not None:
            raise RecordRefused(report.refused)
        if unread is not None:
            task.frame_failed(frame, unread)
        else:
            self._store_offset(frame)

    def _all_before_is_there(self) -> bool:
        """When Kafka has it. False: the task is asked to stop."""
        while True:
            self._pump.drain()
            if not self._metrics.unacknowledged:
                return not self._control.stopping
            if not self._control.wait(_LOOK_S):
                return False

    def _count(self, report: FrameReport) -> None:
        metrics = self._metrics
        if report.rows:
            metrics.polled.add(report.rows)
            metrics.batch_size.add(report.rows)
        if report.sent:
            metrics.written.add(report.sent.total())
        if report.errors:
            self._pump.reporter.count(report.errors)
        metrics.by_records.update(report.by_records)
        for topic in report.sent:
            self._pump.see_topic(topic)

    def _store_offset(self, frame: SourceFrame) -> None:
        import pyarrow as pa

        nothing = SourceTable(
            topic=frame.topic,
            table=pa.table({"value": pa.nulls(0)}),
            source_partition=frame.source_partition,
            source_offset=frame.source_offset,
        )
        self._pump.put(Polled.of(nothing))
        self._pump.drain()

    def close(self) -> None:
        """What is under way is given up: its offset was not stored."""
        if self._sender is not None:
            self._sender.close()
