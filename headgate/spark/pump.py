"""The pump of a source task: what was polled, through Spark, to Kafka, in order, with the offsets behind it.

It has a thread of its own: a source may block in `poll` for as long as it likes, and what it polled before must not
wait for that. While Spark runs one batch, the one before it is being sent and the next one polled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable, SourceTask
from headgate.log import about
from headgate.metrics import SourceMetrics
from headgate.model import Offset, Partition, TaskSpec
from headgate.spark.control import Control, Stopped
from headgate.spark.delivery import Delivery
from headgate.spark.outcomes import Outcomes, Place
from headgate.spark.patience import result_of, sit_out
from headgate.spark.polled import Polled, cut, joined
from headgate.spark.refusals import Refusals
from headgate.spark.reporter import Reporter
from headgate.spark.ride import Lane, Rides
from headgate.spark.session import SparkEngine
from headgate.spark.topics import Topics

if TYPE_CHECKING:
    from headgate.pipeline.blob import Job, Result
    from headgate.pipeline.shelf import Payload, Shelf
    from headgate.spark.runner import Listener, Offsets

log = logging.getLogger(__name__)

_BUFFER_BYTES: Final = 64 * 1024 * 1024
"""Polled and not yet on its way: more than this makes `poll` wait."""
_BATCH_BYTES: Final = 16 * 1024 * 1024
"""Most of it that one Spark job takes."""

Origin: TypeAlias = Callable[[int], SourceRecord]
"""What a row was polled as."""


@dataclass(frozen=True, slots=True)
class _Batch:
    polled: Sequence[Polled]
    rows: Sequence[int]
    """Of each blob."""
    payloads: Sequence[Payload]
    results: Future[list[bytes]]

    def place(self, row: int) -> Place | None:
        """Where a row of a table came from; records know it themselves."""
        for polled in self.polled:
            if row < polled.rows:
                content = polled.content
                return (content.source_partition, content.source_offset) if isinstance(content, SourceTable) else None
            row -= polled.rows
        return None

    def record(self, row: int) -> SourceRecord:
        """What a row was polled as."""
        for polled in self.polled:
            if row < polled.rows:
                return polled.record(row)
            row -= polled.rows
        raise IndexError(row)


class Pump:
    def __init__(
        self,
        spec: TaskSpec,
        control: Control,
        listener: Listener,
        engine: SparkEngine,
        rides: Rides,
        offsets: Offsets,
        metrics: SourceMetrics,
        task: SourceTask,
    ) -> None:
        from headgate.pipeline.blob import pack_spec
        from headgate.spark.statements import Statements

        self._spec = spec
        self._control = control
        self._listener = listener
        self._engine = engine
        self._rides = rides
        self._offsets = offsets
        self._metrics = metrics
        self._task = task
        self._tells_records = type(task).commit_record is not SourceTask.commit_record
        self._lane = Lane(spec.id)
        self._statements = Statements(spec, engine, rides, self._lane, control)
        self._chain = pack_spec(self._statements.first)
        self._shelf: Shelf | None = None
        self._reporter = Reporter(spec, metrics.errors, lambda: not control.cancelled)
        self._outcomes = Outcomes(self._reporter, control, self._resubmit, self._wait_to_retry)
        self._refusals = Refusals(self._reporter, metrics)
        self._delivery = Delivery(spec.producer, lambda: not control.cancelled, self._refusals)
        self._creation = Topics(spec, control)
        self._condition = threading.Condition()
        self._buffer: deque[Polled] = deque()
        self._buffered = 0
        self._draining = False
        self._closing = False
        self._idle = True
        self._failure: BaseException | None = None
        self._unstored: dict[str, tuple[Partition, Offset]] = {}
        self._topics: set[str] = set()
        self._next_commit = time.monotonic() + spec.flush_interval_ms / 1000
        self._thread = threading.Thread(target=self._run, name=f"pump-{spec.id}", daemon=True)

    # --- from the task's thread ---------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def put(self, polled: Polled) -> None:
        """Waits while too much is under way."""
        with self._condition:
            self._condition.wait_for(lambda: self._buffered < _BUFFER_BYTES or self._failure or self._control.cancelled)
            self._buffer.append(polled)
            self._buffered += polled.size
            self._metrics.active += polled.rows
            self._condition.notify_all()
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def drain(self) -> None:
        """Until everything put so far is in Kafka and its offsets are stored, or the task is asked to stop."""
        with self._condition:
            self._draining = True
            self._condition.notify_all()
            self._condition.wait_for(lambda: not self._draining or self._failure or self._control.cancelled)
        self.check()

    def finish(self) -> None:
        """Drains, then ends the thread."""
        self.drain()
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        self._thread.join(self._spec.flush_timeout_ms / 1000)

    def abandon(self) -> None:
        """Ends the thread as soon as it can; what is not acknowledged yet is forgotten, its offsets were not stored."""
        with self._condition:
            self._closing = True
            self._buffer.clear()
            self._condition.notify_all()
        self._lane.close()

    # --- the pump's own thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        with about(self._spec.id):
            try:
                with self._engine.shelf() as self._shelf:
                    self._work()
            except BaseException as error:
                with self._condition:
                    self._failure = error
                    self._condition.notify_all()
                # The task may sit in a poll that takes long: it must learn now that it has failed.
                if isinstance(error, Exception):
                    self._control.fail(error)
                self._task.stop_requested()
            finally:
                self._reporter.close()
                self._delivery.close()

    def _work(self) -> None:
        under_way: _Batch | None = None
        while True:
            polled = self._take(wait=under_way is None)
            following = self._submit(polled) if polled else None
            if under_way is not None:
                self._send(under_way)
            under_way = following
            if under_way is None:
                if self._closing and not self._draining:
                    return
                self._commit_if_wanted()
            elif time.monotonic() >= self._next_commit:
                self._commit()

    def _take(self, wait: bool) -> list[Polled]:
        """What was polled, up to one job's worth; nothing if there is something else to do."""
        with self._condition:
            if wait:
                seconds = max(self._next_commit - time.monotonic(), 0.0) if self._unstored else None
                self._condition.wait_for(lambda: self._buffer or self._draining or self._closing, seconds)
            taken: list[Polled] = []
            size = 0
            while self._buffer and size < _BATCH_BYTES:
                taken.append(self._buffer.popleft())
                size += taken[-1].size
            self._buffered -= size
            self._condition.notify_all()
            return taken

    def _submit(self, polled: Sequence[Polled]) -> _Batch:
        from headgate.pipeline.blob import pack

        jobs = self._jobs(polled)
        blobs = [pack(job) for job, _ in jobs]
        # Tables may lie on the shelf, and their blobs say little of their size.
        tables = sum(each.size for each in polled if isinstance(each.content, SourceTable))
        results = self._rides.submit(self._spec.id, blobs, self._lane, max(tables, sum(map(len, blobs))))
        return _Batch(polled, [rows for _, rows in jobs], [job.payload for job, _ in jobs], results)

    def _jobs(self, polled: Sequence[Polled]) -> list[tuple[Job, int]]:
        """Each with the number of its rows."""
        from headgate.pipeline.blob import source_columns_job, source_records_job

        jobs: list[tuple[Job, int]] = []
        for content in joined([each.content for each in polled]):
            if isinstance(content, SourceTable):
                parts = cut(content)
                jobs += [(source_columns_job(self._chain, part, self._shelf), part.table.num_rows) for part in parts]
            else:
                jobs.append((source_records_job(self._chain, content), len(content)))
        return jobs

    def _send(self, batch: _Batch) -> None:
        from headgate.pipeline.shelf import drop

        for result, origin in self._results(batch):
            table = result.table()
            for topic in table.column("topic").unique().to_pylist():
                self._see_topic(topic)
            self._metrics.written.add(table.num_rows)
            self._refusals.expect(self._delivery.count, table, origin)
            self._delivery.send(table)
        for payload in batch.payloads:
            drop(payload)
        for polled in batch.polled:
            self._unstored |= {repr(partition): (partition, offset) for partition, offset in polled.offsets}
            self._metrics.active -= polled.rows
        if self._tells_records:
            self._tell_records(batch.polled)
        elif self._refusals.full:
            self._arrived(self._spec.flush_timeout_ms / 1000)

    def _results(self, batch: _Batch) -> Iterator[tuple[Result, Origin]]:
        """What the chain made of the batch; and each time, who knows what a row of it was made of."""
        made = self._parts(batch)
        if not self._statements:
            yield from made
            return
        # Who knows what a statement made its rows of? They stand for the whole batch.
        last = batch.record(sum(batch.rows) - 1)
        place = last.source_partition, last.source_offset
        for result in self._statements.after((each for each, _ in made), self._outcomes, self._shelf, lambda _: place):
            yield result, lambda _: last

    def _parts(self, batch: _Batch) -> Iterator[tuple[Result, Origin]]:
        first = 0
        results: list[bytes] = result_of(batch.results, self._control)
        for data, rows in zip(results, batch.rows, strict=True):
            at = first
            for result in self._outcomes.of(data, lambda row, first=first: batch.place(first + row)):  # type: ignore[misc]
                yield result, lambda row, at=at: batch.record(at + row)  # type: ignore[misc]
                at += result.rest.row if result.rest else 0
            first += rows

    def _arrived(self, seconds: float) -> bool:
        """Whether Kafka has answered for all that was sent, after this time at the most."""
        arrived = self._delivery.flush(seconds)
        if arrived:
            self._refusals.forget()
        return arrived

    def _resubmit(self, blob: bytes) -> Future[list[bytes]]:
        return self._rides.submit(self._spec.id, [blob], self._lane)

    def _wait_to_retry(self, seconds: float) -> None:
        try:
            sit_out(seconds, self._control)
        except Stopped:
            self._commit()  # what was sent before
            raise

    def _see_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._creation.ensure(topic)
            self._topics.add(topic)
            self._listener.on_topic(topic)

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

    # --- offsets ------------------------------------------------------------------------------------------------------

    def _commit_if_wanted(self) -> None:
        with self._condition:
            draining = self._draining and not self._buffer
        if draining or (self._unstored and time.monotonic() >= self._next_commit):
            self._commit()
        if draining:
            with self._condition:
                self._draining = False
                self._condition.notify_all()

    def _commit(self) -> None:
        """Stores the offsets of all that was sent, once Kafka has it. A failure is tried again at the next interval."""
        self._next_commit = time.monotonic() + self._spec.flush_interval_ms / 1000
        if not self._unstored:
            return
        began = time.monotonic()
        seconds = self._spec.flush_timeout_ms / 1000
        if not (self._arrived(seconds) and self._reporter.flush(seconds)) or self._control.cancelled:
            log.warning("Kafka has not acknowledged all records yet: offsets are not stored this time")
            self._metrics.committed(began, ok=False)
            return
        offsets: list[tuple[Partition, Offset | None]] = list(self._unstored.values())
        try:
            self._offsets.put(self._spec.id.connector, offsets)
        except Exception as error:  # whatever the store is made of; the records are in Kafka, so nothing is lost
            log.error("Offsets could not be stored, will try again: %s", error)
            self._metrics.committed(began, ok=False)
            return
        self._unstored.clear()
        self._metrics.committed(began, ok=True)
        self._task.commit()
