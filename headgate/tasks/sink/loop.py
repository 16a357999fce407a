"""The loop of a sink task: fetch, through Spark, put, commit.

While Spark runs one batch, the next one is fetched. A task that is far behind lets the executors read for it: the
consumer stays in the group, its partitions paused, and goes on after what they have read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.api.errors import RetriableError
from headgate.api.task import FrameSinkTask, SinkTask
from headgate.kafka.consumer import Partitions
from headgate.metrics import SinkMetrics
from headgate.model import TaskSpec, TopicPartition
from headgate.spark.range_job import RangeJobs, Ranges
from headgate.spark.ranges import RangeFrames, RangeReader, chunks
from headgate.spark.ride import Lane, Rides
from headgate.spark.session import SparkEngine
from headgate.tasks.control import Control, Rebalanced
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.patience import result_of, sit_out
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink.commits import Commits
from headgate.tasks.sink.context import RuntimeSinkContext

if TYPE_CHECKING:
    from headgate.pipeline.shelf import Shelf
    from headgate.tasks.runner import Listener

log = logging.getLogger(__name__)

_IDLE_S: Final = 0.5
_RETRY_S: Final = 1.0
_MOST_RECORDS: Final = 5_000
_MOST_ROWS: Final = 20_000
_FAR_BEHIND: Final = 200_000
"""Records of backlog from which on the executors read for themselves: planning such a job takes a third of a second."""
_RANGE_RECORDS: Final = 1_000_000
_RANGE_BYTES: Final = 128 * 1024 * 1024
"""Most that one such job brings to the worker, by the size that records have had so far."""
_STATEMENT_RECORDS: Final = 200_000
"""The same where a statement is run on it: the driver holds it twice."""
_LAG_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Batch:
    results: Future[Any]
    count: int
    following: Mapping[TopicPartition, int]
    """Where to go on after it."""


class SinkLoop:
    def __init__(
        self,
        spec: TaskSpec,
        control: Control,
        listener: Listener,
        engine: SparkEngine,
        rides: Rides,
        metrics: SinkMetrics,
    ) -> None:
        self._spec = spec
        self._control = control
        self._listener = listener
        self._engine = engine
        self._rides = rides
        self._metrics = metrics
        self._lane = Lane(spec.id)
        self._under_way: _Batch | None = None
        self._next_lag = 0.0
        self._topics: set[str] = set()
        self._record_bytes = 1000.0
        self._rebalances = self._rebalances_seen = 0
        self._half_put = False

    def wake(self) -> None:
        """The loop looks at its control often enough."""

    def run(self) -> None:
        control = self._control
        if control.paused:
            self._report_paused()
            control.wait_while_paused()
            self._metrics.resume()
        if control.stopping:
            return
        self._engine.session(lambda: control.stopping)
        self._prepare()
        try:
            with self._engine.shelf() as self._shelf:
                self._work()
        finally:
            self._close()

    def _work(self) -> None:
        control = self._control
        self._task.start(dict(self._spec.config))
        self._subscribe()
        self._listener.on_running()
        while not control.stopping:
            control.check()
            self._rebalances_seen = self._rebalances
            try:
                self._pause() if control.paused else self._step()
            except Rebalanced:
                self._start_over()
        if not control.cancelled:
            self._finish_batch()

    def _prepare(self) -> None:
        from headgate.pipeline.blob import pack_spec
        from headgate.pipeline.sink_chain import Output, SinkChain
        from headgate.spark.statements import Statements

        spec = self._spec
        self._task = spec.task_class()
        self._output = Output.of(self._task)
        self._statements = Statements(spec, self._engine, self._rides, self._lane, self._control, self._output)
        # Built here too, though executors run it: a wrong setting is found before the first record.
        self._sink = SinkChain(self._statements.first, self._output)
        self._chain = pack_spec(self._statements.first)
        self._most = int(spec.consumer.get("max.poll.records", 0)) or (
            _MOST_RECORDS if isinstance(self._task, SinkTask) else _MOST_ROWS
        )
        self._reporter = Reporter(spec, self._metrics.errors, lambda: not self._control.cancelled, self._control.wait)
        self._outcomes = Outcomes(self._reporter, self._control, self._resubmit, self._wait_to_retry)
        self._partitions = Partitions(spec.consumer, self._opened, self._closing, self._lost)
        self._context = RuntimeSinkContext(spec.config, self._partitions, self._reporter.errant(self._sink))
        self._task.context = self._context
        self._commits = Commits(spec, self._task, self._context, self._partitions, self._reporter, self._metrics)
        # A frame cannot tell of single records that failed, and a statement wants to see them all.
        single = (self._sink.policy.plain or self._sink.passthrough) and not self._statements
        frames = single and isinstance(self._task, FrameSinkTask)
        self._ranges = RangeReader(
            spec.id,
            self._engine,
            RangeJobs(spec.consumer, self._chain, self._output, self._sink.needed),
            RangeFrames(spec.consumer, self._chain, self._output, self._sink) if frames else None,
        )

    def _subscribe(self) -> None:
        topics = [topic.strip() for topic in self._spec.connector_config.get("topics", "").split(",") if topic.strip()]
        self._partitions.subscribe(topics, self._spec.connector_config.get("topics.regex") or None)

    def _close(self) -> None:
        """In the order that tasks expect: offsets, close, stop; and then out of the group."""
        self._lane.close()
        if self._control.cancelled:
            # Given up on: it may not write any more, and somebody waits for its partitions.
            self._partitions.abandon()
            self._task.stop()
            self._reporter.close()
            return
        try:
            held = list(self._partitions.positions)
            if held:
                self._commits.commit(closing=held)
                self._task.close(held)
        finally:
            try:
                self._task.stop()
            finally:
                self._partitions.close()
                self._reporter.close()

    # --- one turn -----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        waiting = self._under_way is None
        messages = self._partitions.fetch(self._most, _IDLE_S if waiting else 0)
        if self._rebalances != self._rebalances_seen:
            raise Rebalanced("partitions went while records were fetched")
        following = self._submit(messages) if messages else None
        self._finish_batch()
        self._under_way = following
        self._grant()
        now = time.monotonic()
        if (now >= self._next_lag and self._under_way is None) or len(messages) >= self._most:
            self._look_behind(now)
        if self._commits.due or self._context.take_commit_request():
            self._finish_batch()
            self._commit()

    def _grant(self) -> None:
        """Does what the task wishes. What was fetched ahead is not what comes next when it wants to go elsewhere."""
        if self._context.wished and self._under_way is not None:
            self._drop_batch()
        self._context.apply()

    def _commit(self, closing: Sequence[TopicPartition] = ()) -> bool:
        # One that was given up on may not write any more: another may have its partitions by now.
        return self._control.cancelled or self._commits.commit(closing)

    def _submit(self, messages: Sequence[Any]) -> _Batch:
        from headgate.kafka.messages import batch_of, following
        from headgate.pipeline.blob import pack, sink_job

        after = following(messages)
        for where in after:
            self._see_topic(where.topic)
        self._metrics.read.add(len(messages))
        self._metrics.batch_size.add(len(messages))
        self._metrics.active += len(messages)
        batch = batch_of(messages, self._sink.needed)
        self._record_bytes = max(1.0, batch.nbytes / len(messages))
        blob = pack(sink_job(self._chain, self._output, batch))
        return _Batch(self._rides.submit(self._spec.id, [blob], self._lane), len(messages), after)

    def _finish_batch(self) -> None:
        """Puts what is under way, if anything is."""
        batch, self._under_way = self._under_way, None
        if batch is None:
            return
        self._put_results(result_of(batch.results, self._control))
        self._done(batch.following, batch.count)

    def _put_results(self, packed: Iterable[bytes]) -> None:
        """What the pipeline made of the batches. Raises JobFailed."""
        made = (result for data in packed for result in self._outcomes.of(data))
        results = self._statements.after(made, self._outcomes, self._shelf)
        if isinstance(self._task, FrameSinkTask):
            import pyarrow as pa

            tables = [result.table() for result in results]
            if tables:  # a statement may leave nothing
                table = pa.concat_tables(tables)
                self._put(self._engine.session().createDataFrame(table), table.num_rows)
            return
        for result in results:
            self._put(result.records() if isinstance(self._task, SinkTask) else result.table(), result.count)

    def _resubmit(self, blob: bytes) -> Future[list[bytes]]:
        return self._rides.submit(self._spec.id, [blob], self._lane)

    def _wait_to_retry(self, seconds: float) -> None:
        """Raises Rebalanced when partitions went: whoever has them next shall try."""
        if self._rebalances == self._rebalances_seen:
            self._partitions.pause()
            sit_out(seconds, self._control, self._partitions.keep_alive)
            self._partitions.resume(self._context.paused)
        if self._rebalances != self._rebalances_seen:
            self._half_put = True
            raise Rebalanced("partitions went before records were to be tried again")

    def _start_over(self) -> None:
        self._partitions.failure = None
        if self._shelf is not None:
            self._shelf.clear()
        if self._half_put:
            # Records come again that were put and not committed. A task learns that as always: by close and open.
            self._half_put = False
            if self._partitions.assigned:
                self._task.close(list(self._partitions.positions))
                self._partitions.begin_anew()
        self._drop_batch()

    def _drop_batch(self) -> None:
        """What was fetched and not put comes again."""
        self._under_way = None
        self._metrics.active = 0
        self._partitions.go_back()

    def _done(self, following: Mapping[TopicPartition, int], count: int) -> None:
        self._metrics.active -= count
        held = self._partitions.positions
        held |= {where: offset for where, offset in following.items() if where in held}

    def _put(self, content: Any, count: int) -> None:
        """The same again after RetriableError, until it goes, or the task is asked to stop, or partitions go."""
        while True:
            began = time.monotonic()
            try:
                self._task.put(content)
                self._metrics.put_ms.add((time.monotonic() - began) * 1000)
                self._metrics.sent.add(count)
                return
            except RetriableError as error:
                self._metrics.errors.retries += 1
                pause = self._context.take_timeout(_RETRY_S)
                log.warning("put() failed and is tried again in %.1f s: %s", pause, error)
                self._wait_to_retry(pause)

    def _see_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._listener.on_topic(topic)

    # --- far behind ---------------------------------------------------------------------------------------------------

    def _look_behind(self, now: float) -> None:
        self._next_lag = now + _LAG_EVERY_S
        self._metrics.lag = self._partitions.lag()
        self._metrics.partitions = len(self._partitions.positions)
        if self._metrics.lag >= _FAR_BEHIND:
            self._catch_up()

    def _catch_up(self) -> None:
        self._finish_batch()
        self._context.apply()
        self._partitions.pause()
        try:
            held = dict(self._partitions.positions)
            ranges = {
                where: (max(held[where], low), high)
                for where, (low, high) in self._partitions.ends().items()
                if max(held[where], low) < high
            }
            # A shelf of its own: what was read and not put goes with it, and so does what comes after that.
            with self._engine.shelf() as shelf:
                self._read_ranges(ranges, shelf)
        finally:
            self._partitions.go_back()
            self._partitions.resume(self._context.paused)
        self._context.apply()

    def _read_ranges(self, ranges: Ranges, shelf: Shelf | None) -> None:
        total = sum(end - start for start, end in ranges.values())
        log.info("Far behind: the executors read %d records", total)
        began = time.monotonic()
        ahead: tuple[Future[Any], Ranges] | None = None
        most = _STATEMENT_RECORDS if self._statements else _RANGE_RECORDS
        parts = chunks(ranges, max(1000, min(most, int(_RANGE_BYTES / self._record_bytes))))
        for chunk in [*parts, None]:
            following = (self._lane.submit(partial(self._ranges.read, chunk, shelf)), chunk) if chunk else None
            if ahead is not None and not self._take_range(*ahead):
                break
            ahead = following
            # What was read ahead does not come next, when the task refuses or wants to go elsewhere.
            if self._context.wished or (self._commits.due and not self._commit()):
                break
        else:
            log.info("Caught up with %d records in %.1f s", total, time.monotonic() - began)
            return
        self._engine.cancel(str(self._spec.id))

    def _take_range(self, results: Future[Any], ranges: Ranges) -> bool:
        """Puts what the executors read; False when the task has to let go: paused, stopping, partitions gone, which may
        have come back since, to begin elsewhere."""
        content = result_of(results, self._control, self._partitions.keep_alive)
        if self._control.stopping or self._control.paused or self._rebalances != self._rebalances_seen:
            return False
        count = sum(end - start for start, end in ranges.values())
        for where in ranges:
            self._see_topic(where.topic)
        self._metrics.read.add(count)
        self._metrics.batch_size.add(count)
        if isinstance(content, list):
            self._put_results(content)
        else:
            self._put(content, count)
        self._metrics.active += count
        self._done({where: end for where, (_, end) in ranges.items()}, count)
        return True

    # --- pausing, rebalances ------------------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Stays in the group with its offsets committed, and fetches nothing."""
        self._finish_batch()
        self._commit()
        self._partitions.pause()
        self._report_paused()
        while self._control.paused and self._control.wait(_IDLE_S):
            self._partitions.keep_alive()
        self._metrics.resume()
        if not self._control.stopping:
            self._partitions.resume(self._context.paused)
            self._listener.on_running()

    def _report_paused(self) -> None:
        self._metrics.pause()
        self._listener.on_paused()

    def _opened(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        log.info("Partitions assigned: %s", ", ".join(map(str, partitions)))
        self._task.open(partitions)
        self._next_lag = 0.0
        return self._context.take_seeks(partitions)

    def _closing(self, partitions: Sequence[TopicPartition]) -> None:
        self._rebalances += 1
        try:
            self._finish_batch()
        finally:
            self._commit(closing=partitions)
            self._task.close(partitions)

    def _lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._under_way = None
        self._rebalances += 1
        self._task.close(partitions)
