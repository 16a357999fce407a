"""The loop of a sink task: fetch, through the pipeline, put, commit.

While the engine has one batch, the next one is fetched. A task that is far behind lets executors read for it: the
consumer stays in the group, its partitions paused, and goes on after what they have read.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from headgate.api.task import Form, FrameSinkTask, SinkTask
from headgate.log import only_logged
from headgate.metrics import SinkMetrics
from headgate.model import EngineUnavailable, PartitionStart, RangeUnread, TaskSpec, TopicPartition
from headgate.pipeline.blob import Packed, pack, pack_spec, sink_job
from headgate.pipeline.shelf import Payload, Shelf, drop
from headgate.pipeline.sink_chain import Output, SinkChain
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.control import Control, Rebalanced, StartOver
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.ports import Fetched, Ports, RangeReader, Ranges, TaskListener
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink import catch_up
from headgate.tasks.sink.commits import Commits
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.sink.puts import Puts
from headgate.tasks.sink.state import Flight, SinkState, SinkStep
from headgate.tasks.statements import Statements
from headgate.tasks.waiting import patience, result_of, sit_out

log = logging.getLogger(__name__)

_IDLE_S: Final = 0.5
_MOST_RECORDS: Final = 5_000
_MOST_ROWS: Final = 20_000
_LAG_EVERY_S: Final = 5.0
_LAG_BUSY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Submitted:
    """What stands behind a Flight of the state."""

    results: Future[list[Packed]]
    payload: Payload


@dataclass(eq=False)
class SinkLoop:
    """Fits `ports.Rebalances`, too: partitions come and go within the consumer's calls, on the task's thread."""

    _spec: TaskSpec
    _control: Control
    _listener: TaskListener
    _ports: Ports
    _metrics: SinkMetrics
    _task: Any = None
    state: SinkState = field(default_factory=SinkState)
    _submitted: deque[_Submitted] = field(default_factory=deque)
    _shelf: Shelf | None = None
    _next_lag: float = 0.0
    _record_bytes: float = 1000.0

    def __post_init__(self) -> None:
        self._engine, self._clock = self._ports.engine, self._ports.clock
        self._last_records, self._next_catch_up = self._clock(), 0.0

    def wake(self) -> None:
        """From another thread: the task shall stop. The loop looks at its control often enough, the plugin cannot."""
        if self._task is not None:
            self._task.stop_requested()

    def run(self) -> None:
        control = self._control
        if control.paused:
            self._report_paused()
            control.wait_while_paused()
            self._metrics.resume()
        if control.stopping:
            return
        self._metrics.activity.enter("the start of Spark")
        self._engine.ready(lambda: control.stopping)
        self._metrics.activity.enter("start()")
        self._prepare()
        try:
            with self._engine.shelf() as self._shelf:
                self._work()
        finally:
            self._close()

    def _work(self) -> None:
        control = self._control
        self._task.start(dict(self._spec.config))
        topics = [topic.strip() for topic in self._spec.connector_config.get("topics", "").split(",") if topic.strip()]
        pattern = self._spec.connector_config.get("topics.regex") or None
        self._joining = f"the wait for partitions of {pattern or ', '.join(topics)}"
        self._consumer.subscribe(topics, pattern)
        self._listener.on_running()
        while not control.stopping:
            control.check()
            self.state = self.state.turned()
            try:
                self._pause() if control.paused else self._turn()
            except StartOver:
                self._start_over()
        if not control.cancelled:
            self._finish_all()

    def _prepare(self) -> None:
        spec, ports = self._spec, self._ports
        self._task = spec.task_class()
        self._output = Output.of(self._task)
        runner = self._engine.statements(spec, self._output)
        self._statements = Statements(runner, spec.id, self._engine, self._control)
        # Built here too, though executors run it: a wrong setting is found before the first record.
        self._sink, self._chain = SinkChain(self._statements.first, self._output), pack_spec(self._statements.first)
        most = _MOST_RECORDS if isinstance(self._task, SinkTask) else _MOST_ROWS
        self._most = int(spec.consumer.get("max.poll.records", 0)) or most
        # A frame cannot tell of single records that failed, and a statement wants to see them all.
        single = (self._sink.policy.plain or self._sink.passthrough) and not self._statements
        framed, typed = isinstance(self._task, FrameSinkTask), self._output.form is Form.TYPED
        frames = single and framed and not typed  # whose types are known only when it is there
        self._ranges = self._engine.ranges(spec, self._chain, self._sink, frames)
        self._together = bool(self._statements) or (framed and not frames and not typed)
        self._reporter = Reporter(spec, self._metrics.errors, self._control, ports)
        control, clock = self._control, self._clock
        by_records = self._metrics.by_records
        outcomes = Outcomes(spec.id, self._reporter, control, self._engine, clock, self._wait_to_retry, by_records)
        self._consumer = ports.consumer(spec.consumer, self, spec.buffer_bytes)
        spark = partial(self._engine.trouble, spec.id)
        self._metrics.activity.witnesses.update({"Kafka": self._consumer.trouble, "Spark": spark})
        session, errant = BorrowedSession(self._engine, spec.id, control, framed), self._reporter.errant(self._sink)
        self._context = RuntimeSinkContext(spec.config, lambda: self.state.assigned, session, errant, ports.require)
        self._task.context = self._context
        self._puts = Puts(
            self._task, self._engine, self._statements, outcomes, self._context, self._metrics, clock,
            self._wait_to_retry,
        )  # fmt: skip
        self._commits = Commits(spec, self._task, self._context, self._consumer, self._reporter, self._metrics, clock)

    def _close(self) -> None:
        """In the order that tasks expect: offsets, close, stop; and then out of the group."""
        self._statements.close()
        if self._ranges is not None:
            self._ranges.close()
        given_up = self._control.cancelled
        if given_up:  # it may not write any more, and somebody waits for its partitions
            self._consumer.abandon()
        elif held := list(self.state.assigned):
            with only_logged("The task could not be closed"):
                self._commit(closing=held)
                self._task.close(held)
        with only_logged("The task could not be stopped"):
            self._task.stop()
        if not given_up:
            self._consumer.close()
        self._reporter.close()

    # --- one turn -----------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        idle = self.state.step is SinkStep.NONE
        self._metrics.activity.stay("the wait for records" if self.state.assigned else self._joining)
        fetched = self._consumer.fetch(self._most, patience(self._clock() - self._last_records) if idle else 0)
        if self.state.rebalanced:
            raise Rebalanced("partitions went while records were fetched")
        if fetched is not None:
            self._submit(fetched)
        if not idle:
            self._finish()
        self._grant()
        full = fetched is not None and len(fetched) >= self._most
        if self._clock() >= self._next_lag or full:
            self._look_behind(ask=fetched is None and idle)
        if self._commits.take_due():
            self._finish_all()
            self._commit()

    def _submit(self, fetched: Fetched) -> None:
        self._see_topics(fetched.following)
        count, self._last_records = len(fetched), self._clock()
        self._metrics.read.add(count)
        self._metrics.batch_size.add(count)
        self._metrics.active += count
        batch = fetched.table(self._sink.needed)
        self._record_bytes = max(1.0, batch.nbytes / count)
        job = sink_job(self._chain, self._output, batch, self._shelf)
        self._submitted.append(_Submitted(self._engine.submit(self._spec.id, [pack(job)]), job.payload))
        self.state = self.state.submitted(Flight(fetched.following, count))

    def _finish(self) -> None:
        """Puts the batch in front."""
        front = self._submitted[0]
        results = result_of(front.results, self._control)
        drop(front.payload)
        self.state = self.state.taken()
        self._puts.results(results, self._shelf)
        self._metrics.active -= self.state.flights[0].count
        self.state = self.state.put()
        self._submitted.popleft()

    def _finish_all(self) -> None:
        while self.state.step is SinkStep.WORKING:
            self._finish()

    def _grant(self) -> None:
        """Does what the task wishes. What was fetched ahead is not what comes next when it wants to go elsewhere."""
        seeks = self._context.take_seeks()
        if seeks:
            if self.state.step is not SinkStep.NONE:
                self._forget()
                seeks = {**self.state.positions, **seeks}
            self._consumer.seek(seeks)
            self.state = self.state.rewound(seeks)
        if self._context.paused:
            self._consumer.pause(sorted(self._context.paused & self.state.assigned))
        if self._context.take_resumed():
            self._consumer.resume(self._context.paused)

    def _commit(self, closing: Sequence[TopicPartition] = ()) -> bool:
        # One that was given up on may not write any more: another may have its partitions by now.
        if self._control.cancelled:
            return True
        self.state, willing = self._commits.commit(self.state, closing)
        if not willing and not closing:
            pause = self._commits.pause_s()
            if not self._control.paused:
                self._rest(pause)
        return willing

    def _wait_to_retry(self, seconds: float) -> None:
        self.state = self.state.waits()
        self._rest(seconds)
        self.state = self.state.again()

    def _rest(self, seconds: float) -> None:
        """Raises Rebalanced when partitions went: whoever has them next shall try."""
        if not self.state.rebalanced:
            self._consumer.pause()
            sit_out(seconds, self._control, self._clock, self._keep_alive)
            self._consumer.resume(self._context.paused)
        if self.state.rebalanced:
            raise Rebalanced("partitions went before records were to be tried again")

    def _start_over(self) -> None:
        """What was under way comes again, as far as it is still this task's."""
        if self._shelf is not None:
            self._shelf.clear()
        self._forget()
        if self.state.half_put:
            # Records come again that were put and not committed. A task learns that as always: by close and open.
            held = list(self.state.assigned)
            if held:
                self._task.close(held)
            self.state = self.state.begun_anew(self._opened(held) if held else {})
        self._consumer.seek(self.state.positions)

    def _forget(self) -> None:
        """What was fetched and not put."""
        self._submitted.clear()
        self._metrics.active = 0
        self.state = self.state.dropped()

    def _see_topics(self, partitions: Iterable[TopicPartition]) -> None:
        for topic in dict.fromkeys(where.topic for where in partitions):
            self._listener.on_topic(topic)

    # --- far behind ---------------------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        """While nothing is fetched, others still want to know how far behind the task is."""
        self._consumer.keep_alive()
        if self._clock() >= self._next_lag:
            self._see_lag(ask=True)

    def _see_lag(self, ask: bool) -> int:
        """As far as it is known. Records that come tell it; without them only the broker does, if it is there."""
        lag = self._consumer.lag(self.state.positions, ask=ask)
        self._next_lag = self._clock() + (_LAG_EVERY_S if ask else _LAG_BUSY_S)
        self._metrics.see_lag(lag)
        self._metrics.partitions = len(self.state.positions)
        return lag or 0

    def _look_behind(self, ask: bool) -> None:
        far = self._see_lag(ask) >= catch_up.FAR_BEHIND
        if far and self._ranges is not None and self._clock() >= self._next_catch_up:
            self._finish_all()
            self._grant()
            self._catch_up(self._ranges)

    def _catch_up(self, reader: RangeReader) -> None:
        self._consumer.pause()
        try:
            ranges = catch_up.left(dict(self.state.positions), self._consumer.ends())
            # A shelf of its own: what was read and not put goes with it, and so does what comes after that.
            with self._engine.shelf() as shelf:
                self._read(reader, ranges, shelf)
        finally:
            self._consumer.seek(self.state.positions)
            self._consumer.resume(self._context.paused)
        self._grant()

    def _read(self, reader: RangeReader, ranges: Ranges, shelf: Shelf | None) -> None:
        total, began = sum(end - start for start, end in ranges.values()), self._clock()
        log.info("Far behind: the executors read %d records", total)
        sizes = catch_up.sizes(reader, self._together, self._record_bytes, self._spec.buffer_bytes)
        try:
            with closing(catch_up.read(reader, ranges, sizes, shelf, self._control, self._keep_alive)) as pieces:
                for content, piece in pieces:
                    if not self._take_range(content, piece, shelf):
                        return
        except (EngineUnavailable, RangeUnread) as error:
            if self.state.step is not SinkStep.NONE:
                raise  # it is about what was being put: some of that may have been put
            log.warning("The executors' reading was lost, the consumer goes on: %s", error)
            self._next_catch_up = self._clock() + catch_up.AGAIN_S
            self._engine.ready(lambda: self._control.stopping)
            return
        log.info("Caught up with %d records in %.1f s", total, self._clock() - began)

    def _take_range(self, content: Any, ranges: Ranges, shelf: Shelf | None) -> bool:
        """Puts what the executors read; False when what they read ahead does not come next: the task is paused or
        stopping, refuses or wants to go elsewhere, partitions have gone, which may have come back since, to begin
        elsewhere."""
        if self._control.stopping or self._control.paused or self.state.rebalanced:
            return False
        count = sum(end - start for start, end in ranges.values())
        self._see_topics(ranges)
        self._metrics.read.add(count)
        self._metrics.batch_size.add(count)
        self.state = self.state.submitted(Flight({where: end for where, (_, end) in ranges.items()}, count)).taken()
        if isinstance(content, list):
            self._puts.results(content, shelf)
        else:
            self._puts.content(lambda: content, count)
        self.state = self.state.put()
        self._consumer.pause()  # it was resumed if something was tried again, and more is to be read
        return not (self._context.wished or (self._commits.take_due() and not self._commit()))

    # --- pausing, rebalances ------------------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Stays in the group with its offsets committed, and fetches nothing."""
        self._finish_all()
        self._commit()
        self._consumer.pause()
        self._report_paused()
        while self._control.paused and self._control.wait(_IDLE_S):
            self._keep_alive()
        self._metrics.resume()
        if not self._control.stopping:
            self._consumer.resume(self._context.paused)
            self._listener.on_running()

    def _report_paused(self) -> None:
        self._metrics.pause()
        self._listener.on_paused()

    def on_assigned(self, starts: Mapping[TopicPartition, PartitionStart]) -> Mapping[TopicPartition, int]:
        before = self.state
        self.state = before.assigned_with(starts, {})
        try:
            self.state = before.assigned_with(starts, self._opened(list(starts)))
        except Exception:
            self.state = before  # what the task could not open it is not asked about
            raise
        return {where: self.state.positions[where] for where in starts}

    def _opened(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where the task wants to begin, if it says so."""
        log.info("Partitions assigned: %s", ", ".join(map(str, partitions)))
        self._context.session.call(partial(self._task.open, partitions), "open()")
        self._next_lag = 0.0
        return self._context.take_seeks(partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.state = replace(self.state, rebalanced=True)
        try:
            self._finish_all()
        finally:
            try:
                self._commit(closing=partitions)
                self._task.close(partitions)
            finally:
                self.state = self.state.without(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.state = self.state.without(partitions)
        self._task.close(partitions)
