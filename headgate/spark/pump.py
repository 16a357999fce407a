"""The pump of a source task: what was polled, through Spark, to Kafka, in order, with the offsets behind it.

It has a thread of its own: a source may block in `poll` for as long as it likes, and what it polled before must not
wait for that. While Spark runs one batch, the one before it is being sent and the next one polled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable, SourceTask
from headgate.log import about
from headgate.metrics import SourceMetrics
from headgate.model import Offset, Partition, TaskSpec
from headgate.spark.control import Control, Stopped
from headgate.spark.delivery import Delivery
from headgate.spark.outcomes import Outcomes, Place
from headgate.spark.patience import result_of, sit_out
from headgate.spark.reporter import Reporter
from headgate.spark.ride import Lane, Rides
from headgate.spark.topics import Topics

if TYPE_CHECKING:
    from headgate.spark.runner import Listener, Offsets

log = logging.getLogger(__name__)

_BUFFER_BYTES: Final = 64 * 1024 * 1024
"""Polled and not yet on its way: more than this makes `poll` wait."""
_BATCH_BYTES: Final = 16 * 1024 * 1024
"""Most of it that one Spark job takes."""
_BLOB_BYTES: Final = 2 * 1024 * 1024
"""A batch larger than this is cut, so that several cores share it."""
_RECORD_BYTES: Final = 500
"""What a record counts as; its real size is not worth measuring."""


@dataclass(frozen=True, slots=True)
class Polled:
    """One poll: rows or records, and the offsets that stand behind them."""

    content: SourceTable | Sequence[SourceRecord]
    rows: int
    size: int
    offsets: tuple[tuple[Partition, Offset], ...]

    @classmethod
    def of(cls, content: SourceTable | Sequence[SourceRecord]) -> Polled:
        if isinstance(content, SourceTable):
            known = content.source_partition is not None and content.source_offset is not None
            offsets = ((content.source_partition, content.source_offset),) if known else ()
            return cls(content, content.table.num_rows, content.table.nbytes, offsets)  # type: ignore[arg-type]
        latest = {
            repr(record.source_partition): (record.source_partition, record.source_offset)
            for record in content
            if record.source_partition is not None and record.source_offset is not None
        }
        return cls(content, len(content), len(content) * _RECORD_BYTES, tuple(latest.values()))


@dataclass(frozen=True, slots=True)
class _Batch:
    polled: Sequence[Polled]
    rows: Sequence[int]
    """Of each blob."""
    results: Future[list[bytes]]

    def place(self, row: int) -> Place | None:
        """Where a row of a table came from; records know it themselves."""
        for polled in self.polled:
            if row < polled.rows:
                content = polled.content
                return (content.source_partition, content.source_offset) if isinstance(content, SourceTable) else None
            row -= polled.rows
        return None


class Pump:
    def __init__(
        self,
        spec: TaskSpec,
        control: Control,
        listener: Listener,
        rides: Rides,
        offsets: Offsets,
        metrics: SourceMetrics,
        task: SourceTask,
    ) -> None:
        from headgate.pipeline.blob import pack_spec

        self._spec = spec
        self._control = control
        self._listener = listener
        self._rides = rides
        self._offsets = offsets
        self._metrics = metrics
        self._task = task
        self._chain = pack_spec(spec.chain)
        self._tells_records = type(task).commit_record is not SourceTask.commit_record
        self._lane = Lane(spec.id)
        self._reporter = Reporter(spec, metrics.errors, lambda: not control.cancelled)
        self._outcomes = Outcomes(self._reporter, control, self._resubmit, self._wait_to_retry)
        self._delivery = Delivery(spec.producer, lambda: not control.cancelled)
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
        blobs = self._blobs(polled)
        results = self._rides.submit(self._spec.id, [blob for blob, _ in blobs], self._lane)
        return _Batch(polled, [rows for _, rows in blobs], results)

    def _blobs(self, polled: Sequence[Polled]) -> list[tuple[bytes, int]]:
        """Each with the number of its rows."""
        from headgate.pipeline.blob import pack, source_columns_job, source_records_job

        blobs = []
        for content in _joined([each.content for each in polled]):
            if isinstance(content, SourceTable):
                blobs += [(pack(source_columns_job(self._chain, part)), part.table.num_rows) for part in _cut(content)]
            else:
                blobs.append((pack(source_records_job(self._chain, content)), len(content)))
        return blobs

    def _send(self, batch: _Batch) -> None:
        first = 0
        results = result_of(batch.results, self._control)
        for data, rows in zip(results, batch.rows, strict=True):
            for result in self._outcomes.of(data, lambda row, first=first: batch.place(first + row)):  # type: ignore[misc]
                table = result.table()
                for topic in table.column("topic").unique().to_pylist():
                    self._see_topic(topic)
                self._delivery.send(table)
                self._metrics.written.add(table.num_rows)
            first += rows
        for polled in batch.polled:
            self._unstored |= {repr(partition): (partition, offset) for partition, offset in polled.offsets}
            self._metrics.active -= polled.rows
        if self._tells_records:
            self._tell_records(batch.polled)

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
        while not self._delivery.flush(self._spec.flush_timeout_ms / 1000):
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
        if not (self._delivery.flush(seconds) and self._reporter.flush(seconds)) or self._control.cancelled:
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


def _joined(contents: Sequence[SourceTable | Sequence[SourceRecord]]) -> list[SourceTable | list[SourceRecord]]:
    """Neighbours that can travel together, put together: many small polls are one batch."""
    import pyarrow as pa

    joined: list[SourceTable | list[SourceRecord]] = []
    groups: list[tuple[Any, list[Any]]] = []
    for content in contents:
        key = _kind(content)
        if groups and groups[-1][0] == key:
            groups[-1][1].append(content)
        else:
            groups.append((key, [content]))
    for key, members in groups:
        if key is None:
            joined.append([record for member in members for record in member])
        elif len(members) == 1:
            joined.append(members[0])
        else:
            first = members[0]
            table = pa.concat_tables([member.table for member in members])
            joined.append(
                SourceTable(
                    topic=first.topic,
                    table=table,
                    source_partition=None,
                    source_offset=None,
                    value_schema=first.value_schema,
                    key_schema=first.key_schema,
                )
            )
    return joined


def _kind(content: SourceTable | Sequence[SourceRecord]) -> Any:
    if not isinstance(content, SourceTable):
        return None
    return content.topic, content.table.schema, content.value_schema, content.key_schema


def _cut(content: SourceTable) -> list[SourceTable]:
    from dataclasses import replace

    table = content.table
    parts = max(1, -(-table.nbytes // _BLOB_BYTES))
    step = max(1, -(-table.num_rows // parts))
    return [replace(content, table=table.slice(start, step)) for start in range(0, table.num_rows, step)]
