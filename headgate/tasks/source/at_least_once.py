"""At least once: records go to Kafka as they come; their offsets are stored once Kafka has acknowledged them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.api.task import SourceTable, SourceTask
from headgate.log import cause_of
from headgate.metrics import SourceMetrics
from headgate.model import Offset, Partition, TaskSpec
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Ports
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.batch import Batch, Made
from headgate.tasks.source.offsets import TaskOffsets
from headgate.tasks.source.polled import Polled
from headgate.tasks.source.refusals import Refusals

log = logging.getLogger(__name__)

_STORING: Final = "storing offsets"
_SLOW_S: Final = 5.0
"""Kafka that has acknowledged nothing for so long, of what was sent, is in the task's way."""
_REST_S: Final = 30.0
"""After so long with nothing to send, a client that does nothing has cost as much as a new one will."""
_LOOK_S: Final = 0.5
"""How often it is looked whether Kafka has acknowledged more, while something is under way."""


@dataclass(eq=False)
class AtLeastOnce:
    """Fits `batch.Outlet`."""

    _spec: TaskSpec
    _control: Control
    _ports: Ports
    _offsets: TaskOffsets
    _metrics: SourceMetrics
    _task: SourceTask
    _reporter: Reporter
    forbidden: str | None = None
    _unstored: dict[str, tuple[Partition, Offset]] = field(default_factory=dict)
    _sent: float = 0.0
    _acknowledged: int = 0
    """Of what this has sent: executors may have sent more."""

    def __post_init__(self) -> None:
        self._clock = self._ports.clock
        self._tells_records = type(self._task).commit_record is not SourceTask.commit_record
        self._refusals = Refusals(self._reporter)
        self._sender = self._ports.sender(self._spec.producer, self._may_go_on, self._refusals)
        self._metrics.activity.witnesses["Kafka"] = self._unheard
        self._next_commit = self._clock() + self._spec.flush_interval_ms / 1000
        self._rest_at: float | None = self._clock() + _REST_S

    def add(self, made: Made) -> None:
        table, origin = made
        self._refusals.expect(self._sender.count, table, origin)
        self._sender.send(table)
        self._rest_at = self._clock() + _REST_S
        self._see_answers()

    def end(self, batch: Batch) -> None:
        for polled in batch.polled:
            self._unstored |= {repr(partition): (partition, offset) for partition, offset in polled.offsets}
            self._metrics.passed += polled.rows
        if self._tells_records:
            self._tell_records(batch.polled)
        elif self._refusals.full:
            self._arrived(self._spec.flush_timeout_ms / 1000)

    def due(self) -> float | None:
        moments = [self._next_commit] if self._unstored else []
        if not self._metrics.unacknowledged and self._rest_at is not None:
            moments.append(self._rest_at)
        waits = [max(moment - self._clock(), 0.0) for moment in moments]
        return min([*waits, _LOOK_S] if self._metrics.unacknowledged else waits, default=None)

    def commit_if_due(self) -> None:
        if self._clock() >= self._next_commit:
            self.settle()
        elif self._metrics.unacknowledged:
            self._arrived(0.0)
        if self._rest_at is not None and self._clock() >= self._rest_at and not self._metrics.unacknowledged:
            self._rest_at = None
            self._sender.rest()

    def settle(self) -> None:
        """A failure is tried again at the next interval."""
        self._next_commit = self._clock() + self._spec.flush_interval_ms / 1000
        if not self._unstored:
            return
        began = self._clock()
        seconds = self._spec.flush_timeout_ms / 1000
        if not (self._arrived(seconds) and self._reporter.flush(seconds)) or self._control.cancelled:
            log.warning("Kafka has not acknowledged all records yet: offsets are not stored this time")
            self._metrics.committed(began, ok=False)
            return
        offsets: list[tuple[Partition, Offset | None]] = list(self._unstored.values())
        try:
            self._offsets.put(self._spec.id.connector, offsets)
        except Exception as error:  # whatever the store is made of; the records are in Kafka, so nothing is lost
            self._metrics.activity.fails(_STORING, cause_of(error))
            log.error("Offsets could not be stored, will try again: %s", error)
            self._metrics.committed(began, ok=False)
            return
        self._unstored.clear()
        self._metrics.activity.goes(_STORING)
        self._metrics.committed(began, ok=True)
        self._task.commit()

    def failed(self, error: BaseException) -> BaseException:
        return error

    def close(self) -> None:
        """What is not acknowledged yet is forgotten; its offsets were not stored."""
        self._sender.close()

    def _arrived(self, seconds: float) -> bool:
        """Whether Kafka has answered for all that was sent, after this time at the most."""
        arrived = self._sender.flush(seconds)
        self._see_answers()
        if arrived:
            self._refusals.forget()
        return arrived

    def _unheard(self) -> str | None:
        """Asked from any thread. The time counts from when something was sent that has no answer."""
        metrics = self._metrics
        waiting, since = metrics.unacknowledged, max(self._sent, metrics.written.last or 0.0)
        if not waiting or time.monotonic() - since < _SLOW_S:
            return None
        why = self._sender.trouble(since) or self._spec.producer.get("bootstrap.servers", "")
        return f"{waiting} records are not acknowledged: {why}"

    def _may_go_on(self) -> bool:
        """Asked by the sender, again and again, while it waits for Kafka."""
        self._see_answers()
        return not self._control.cancelled

    def _see_answers(self) -> None:
        """Written is what Kafka has acknowledged, and nothing else."""
        metrics, waiting = self._metrics, self._sender.unanswered
        if waiting and not metrics.unacknowledged:
            self._sent = time.monotonic()
        metrics.unacknowledged = waiting
        more = self._sender.count - waiting - self._refusals.count - self._acknowledged
        if more > 0:
            self._acknowledged += more
            metrics.written.add(more)

    def _tell_records(self, polled: Sequence[Polled]) -> None:
        """Only for tasks that want to know of each record: they pay for it with a wait for Kafka's answer."""
        while not self._arrived(self._spec.flush_timeout_ms / 1000):
            self._control.check()
            if self._control.cancelled:
                raise Stopped("given up on while Kafka was slow")
        for each in polled:
            if not isinstance(each.content, SourceTable):
                for record in each.content:
                    self._task.commit_record(record)
