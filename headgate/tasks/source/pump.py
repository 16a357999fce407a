"""The pump of a source task: what was polled, through the pipeline, to its outlet, in order.

It has a thread of its own: a source may block in `poll` for as long as it likes, and what it polled before must not
wait for that. While the engine has one batch, the one before it is being sent and the next one polled.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final

from headgate.api.errors import ConnectError
from headgate.api.task import SourceTable, SourceTask
from headgate.log import about
from headgate.metrics import SourceMetrics
from headgate.model import TaskSpec
from headgate.pipeline.blob import Job, Packed, Result, pack, pack_spec, source_columns_job, source_records_job
from headgate.pipeline.shelf import Shelf, drop
from headgate.tasks.control import Control, Rewind, Stopped
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.ports import AskAgain, Ports, TaskListener
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.batch import Batch, Made, Origin, Outlet
from headgate.tasks.source.polled import Polled, cut, ended, joined
from headgate.tasks.source.topics import Topics
from headgate.tasks.statements import Statements
from headgate.tasks.waiting import result_of, sit_out

_BATCH_BYTES: Final = 16 * 1024 * 1024
"""Most of what was polled that is under way together."""
_OWN_OFFSETS: Final = "Source tasks may not produce to their own offsets topics when exactly-once support is enabled"


@dataclass(eq=False)
class Pump:
    _spec: TaskSpec
    _control: Control
    _listener: TaskListener
    _ports: Ports
    _metrics: SourceMetrics
    _task: SourceTask
    outlet: InitVar[Callable[[Reporter], Outlet]]
    _shelf: Shelf | None = None
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _buffer: deque[Polled] = field(default_factory=deque)
    _buffered: int = 0
    _draining: bool = False
    _closing: bool = False
    _failure: BaseException | None = None
    _topics: set[str] = field(default_factory=set)

    def __post_init__(self, outlet: Callable[[Reporter], Outlet]) -> None:
        spec, control, ports = self._spec, self._control, self._ports
        self._engine, clock = ports.engine, ports.clock
        self.statements = Statements(self._engine.statements(spec, None), spec.id, self._engine, control)
        self.chain = pack_spec(self.statements.first)
        self.reporter = Reporter(spec, self._metrics.errors, control, ports)
        self._outcomes = Outcomes(
            spec.id, self.reporter, control, self._engine, clock, self._wait_to_retry, self._metrics.by_records
        )
        self._outlet = outlet(self.reporter)
        patience = AskAgain(lambda: not control.cancelled, lambda seconds: sit_out(seconds, control, clock))
        self._creation = Topics(spec, control, ports.topics(spec.admin, patience))
        self._thread = threading.Thread(target=self._run, name=f"pump-{spec.id}", daemon=True)

    # --- from the task's thread ---------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def put(self, polled: Polled) -> None:
        """Waits while too much waits to be on its way."""
        most = self._spec.buffer_bytes
        with self._condition:
            self._condition.wait_for(lambda: self._buffered < most or self._failure or self._control.cancelled)
            self._buffer.append(polled)
            self._buffered += polled.size
            self._metrics.taken += polled.rows
            self._condition.notify_all()
        self.check()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def drain(self) -> None:
        """Until everything put so far is in Kafka and its offsets are stored, or the task is asked to stop."""
        self.settle(None)
        self.check()

    def settle(self, seconds: float | None) -> None:
        """The same, no longer than this, and whatever comes of it."""
        if not self._thread.is_alive():
            return
        with self._condition:
            self._draining = True
            self._condition.notify_all()
            if not self._condition.wait_for(self._is_settled, seconds):
                self._draining = False

    def _is_settled(self) -> bool:
        return not self._draining or self._failure is not None or self._control.cancelled

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
        self.statements.close()
        if self._thread.ident is None:  # it never came to that
            self._outlet.close()

    def join(self) -> None:
        """After a Rewind: until the thread has ended."""
        self._thread.join()

    # --- the pump's own thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        with about(self._spec.id):
            try:
                with self._engine.shelf() as self._shelf:
                    self._work()
            except BaseException as error:
                failure = self._outlet.failed(error)
                with self._condition:
                    self._failure = failure
                    self._condition.notify_all()
                # The task may sit in a poll that takes long: it must learn now that it has failed.
                if isinstance(failure, Exception) and not isinstance(failure, Rewind) and not self._closing:
                    self._control.fail(failure)
                self._task.stop_requested()
            finally:
                self.reporter.close()
                self._outlet.close()

    def _work(self) -> None:
        under_way: list[Batch] = []
        while True:
            polled, more = self._take(wait=not under_way)
            following = self._submit(polled, more) if polled else []
            for batch in under_way:
                self._hand_over(batch)
            under_way = following
            if under_way:
                self._outlet.commit_if_due()
                continue
            if self._closing and not self._draining:
                return
            with self._condition:
                draining = self._draining and not self._buffer
            if draining:
                self._outlet.settle()
                with self._condition:
                    self._draining = False
                    self._condition.notify_all()
            else:
                self._outlet.commit_if_due()

    def _take(self, wait: bool) -> tuple[list[Polled], bool]:
        """What was polled, up to one job's worth, and whether more is waiting; nothing, if there is other work."""
        with self._condition:
            if wait:
                self._condition.wait_for(lambda: self._buffer or self._draining or self._closing, self._outlet.due())
            taken: list[Polled] = []
            size = 0
            while self._buffer and size < _BATCH_BYTES:
                taken.append(self._buffer.popleft())
                size += taken[-1].size
            self._buffered -= size
            self._condition.notify_all()
            return taken, bool(self._buffer)

    def _submit(self, polled: Sequence[Polled], more: bool) -> list[Batch]:
        """All of it together; a batch ends where its task ends a transaction."""
        parts = [(part, self._jobs(part)) for part in ended(polled)]
        results = self._engine.submit(self._spec.id, [pack(job) for _, found in parts for job, _ in found])
        batches: list[Batch] = []
        first = 0
        for part, found in parts:
            rows, payloads = [count for _, count in found], [job.payload for job, _ in found]
            batches.append(Batch(part, rows, payloads, results, first, more))
            first += len(found)
        return batches

    def _jobs(self, polled: Sequence[Polled]) -> list[tuple[Job, int]]:
        """Each with the number of its rows."""
        jobs: list[tuple[Job, int]] = []
        for content in joined([each.content for each in polled if each.rows]):
            if isinstance(content, SourceTable):
                parts = cut(content)
                jobs += [(source_columns_job(self.chain, part, self._shelf), part.table.num_rows) for part in parts]
            else:
                jobs.append((source_records_job(self.chain, content), len(content)))
        return jobs

    def _hand_over(self, batch: Batch) -> None:
        for made in self._made(batch):
            self._outlet.add(made)
        self._outlet.end(batch)
        for payload in batch.payloads:
            drop(payload)

    def _made(self, batch: Batch) -> Iterator[Made]:
        """What the chain made of the batch; its topics exist."""
        for result, origin in self._results(batch):
            table = result.table()
            for topic in table.column("topic").unique().to_pylist():
                self.see_topic(topic)
            yield table, origin

    def _results(self, batch: Batch) -> Iterator[tuple[Result, Origin]]:
        """And each time, who knows what a row of it was made of."""
        made = self._parts(batch)
        if not (self.statements and batch.rows):
            yield from made
            return
        # Who knows what a statement made its rows of? They stand for the whole batch.
        last = batch.record(sum(batch.rows) - 1)
        place = last.source_partition, last.source_offset
        for result in self.statements.after((each for each, _ in made), self._outcomes, self._shelf, lambda _: place):
            yield result, lambda _: last

    def _parts(self, batch: Batch) -> Iterator[tuple[Result, Origin]]:
        if not batch.rows:
            return
        first = 0
        results: list[Packed] = result_of(batch.results, self._control, self._outlet.commit_if_due)
        for data, rows in zip(results[batch.first :], batch.rows, strict=False):
            at = first
            for result in self._outcomes.of(data, lambda row, first=first: batch.place(first + row)):  # type: ignore[misc]
                yield result, lambda row, at=at: batch.record(at + row)  # type: ignore[misc]
                at += result.rest.row if result.rest else 0
            first += rows

    def _wait_to_retry(self, seconds: float) -> None:
        try:
            sit_out(seconds, self._control, self._ports.clock, self._outlet.commit_if_due)
        except Stopped:
            self._outlet.settle()  # what was sent before
            raise

    def see_topic(self, topic: str) -> None:
        """It exists when this returns, if it is the task's to create it. While all is drained, from the task's thread,
        too."""
        if topic not in self._topics:
            if topic == self._outlet.forbidden:
                raise ConnectError(_OWN_OFFSETS)
            self._creation.ensure(topic)
            self._topics.add(topic)
        self._listener.on_topic(topic)
