"""Fakes of what tasks get from others, see `tasks/ports.py`: no broker, no Spark, and no time that passes by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.model import (
    ChainSpec,
    Config,
    ConnectorType,
    EngineUnavailable,
    NewTopic,
    PartitionStart,
    PluginRef,
    PluginSpec,
    StepSpec,
    TargetState,
    TaskId,
    TaskSpec,
    TopicPartition,
)
from headgate.pipeline import blob
from headgate.pipeline.batch import CONSUMED
from headgate.pipeline.shelf import Shelf
from headgate.pipeline.sink_chain import Output, SinkChain
from headgate.tasks import ports
from headgate.tasks.control import Control

if TYPE_CHECKING:
    from headgate.tasks.ports import Ranges

TEXT = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"))
HEADERS = PluginSpec(PluginRef("headgate.pipeline.converters.simple_header", "SimpleHeaderConverter"))
TASK = TaskId("orders", 2)
_FOR_EVER = 1000


def _not_expected(*_: Any) -> Any:
    raise AssertionError("nobody should need this")


# --- specs ------------------------------------------------------------------------------------------------------------


def chain_spec(
    kind: ConnectorType = ConnectorType.SINK, steps: Sequence[StepSpec] = (), errors: Config | None = None
) -> ChainSpec:
    return ChainSpec(TASK, kind, TEXT, TEXT, HEADERS, tuple(steps), errors or {})


def task_spec(
    task_class: type,
    kind: ConnectorType = ConnectorType.SINK,
    steps: Sequence[StepSpec] = (),
    errors: Config | None = None,
    target_state: TargetState = TargetState.STARTED,
    **more: Any,
) -> TaskSpec:
    """Of a task with text keys and values. `more`: other fields of TaskSpec."""
    fields: dict[str, Any] = {"version": None, "config": {}, "connector_config": {}, **more}
    return TaskSpec(TASK, task_class, kind, chain=chain_spec(kind, steps, errors), target_state=target_state, **fields)


def errors_config(**errors: str) -> Config:
    """`errors.*` keys, written with underscores: `tolerance`, `deadletterqueue_topic_name`."""
    return {f"errors.{key.replace('_', '.')}": value for key, value in errors.items()}


# --- time, and the outside --------------------------------------------------------------------------------------------


class Clock:
    """Moved by hand."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def move(self, seconds: float) -> None:
        self._now += seconds


class QuickControl(Control):
    """Does not wait: time passes on the clock instead. Before that, the next of `while_waiting` happens."""

    def __init__(self, clock: Clock, paused: bool = False) -> None:
        super().__init__(paused)
        self._clock = clock
        self.waits: list[float] = []
        self.while_waiting: list[Callable[[], object]] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        assert len(self.waits) < _FOR_EVER, "it waits for ever"
        if self.while_waiting:
            self.while_waiting.pop(0)()
        self._clock.move(seconds)
        self.check()
        return not self.stopping

    def wait_while_paused(self) -> None:
        while self.paused and self.wait(1.0):
            pass


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.traces: list[str] = []
        self.topics: list[str] = []
        self.fencing: Exception | None = None
        """What `await_fencing` raises."""
        self.refusal: Exception | None = None
        """What `confirm_start` raises."""
        self.when_paused: Callable[[], object] = lambda: None

    def on_running(self) -> None:
        self.events.append("running")

    def on_paused(self) -> None:
        self.events.append("paused")
        self.when_paused()

    def on_failed(self, trace: str) -> None:
        self.events.append("failed")
        self.traces.append(trace)

    def on_stopped(self) -> None:
        self.events.append("stopped")

    def on_topic(self, topic: str) -> None:
        self.topics.append(topic)

    def await_fencing(self) -> None:
        self.events.append("await fencing")
        if self.fencing is not None:
            raise self.fencing

    def confirm_start(self) -> None:
        self.events.append("confirm start")
        if self.refusal is not None:
            raise self.refusal


# --- the engine -------------------------------------------------------------------------------------------------------


@dataclass
class Submission:
    task: TaskId
    blobs: list[bytes]
    future: Future[list[blob.Packed]] = field(default_factory=Future)

    def run(self) -> None:
        self.future.set_result([blob.run(each) for each in self.blobs])


class StatementRunner:
    """Without statements, unless it is given functions: each makes jobs of tables."""

    def __init__(self, first: ChainSpec, *statements: Callable[[Sequence[pa.Table]], Any]) -> None:
        self.first = first
        self._statements = statements
        self.asked: list[int] = []
        """How many rows each was asked about."""
        self.lost = 0
        """How often the engine dies before it answers."""
        self.closed = False

    def __len__(self) -> int:
        return len(self._statements)

    def select(self, index: int, tables: Sequence[pa.Table], shelf: Shelf | None) -> Future[list[blob.Job]]:
        self.asked.append(sum(table.num_rows for table in tables))
        if self.lost:
            self.lost -= 1
            return failed(EngineUnavailable("the driver died"))
        return done(self._statements[index](tables))

    def close(self) -> None:
        self.closed = True


class RangeReader:
    """Reads what `consumed` gives for the offsets, and runs the chain on it."""

    def __init__(self, chain: bytes, output: Output, frames: bool) -> None:
        self._chain = chain
        self._output = output
        self.frames = frames
        self.asked: list[Ranges] = []
        self.answers: list[Callable[[], Future[Any]] | None] = []
        """What becomes of the next ones, in their order, instead of being read. None: they are read."""
        self.cancelled = 0
        self.closed = False
        self.most, self.ahead = 8, 1

    def read(self, ranges: Ranges, shelf: Shelf | None) -> Future[Any]:
        self.asked.append(ranges)
        answer = self.answers.pop(0) if self.answers else None
        return done(self.content(ranges)) if answer is None else answer()

    def content(self, ranges: Ranges) -> Any:
        """What was read of them."""
        rows = [(where, offset) for where, (start, end) in sorted(ranges.items()) for offset in range(start, end)]
        table = consumed(rows)
        packed = blob.run(blob.pack(blob.sink_job(self._chain, self._output, table)))
        return Frame(blob.unpack(packed).table()) if self.frames else [packed]

    def cancel(self) -> None:
        self.cancelled += 1

    def close(self) -> None:
        self.closed = True


class FrameSender:
    """Sends nothing: `reports` are what comes of the next frames, or is raised; a function gives such."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.reports: list[Any] = []
        self.closed = 0

    def send(self, frame: Any) -> Future[Any]:
        self.sent.append(frame)
        report = self.reports.pop(0)
        if callable(report):
            report = report()
        if isinstance(report, Future):
            return report
        return failed(report) if isinstance(report, Exception) else done(report)

    def close(self) -> None:
        self.closed += 1


@dataclass
class Frame:
    """Stands for a DataFrame."""

    table: pa.Table

    def values(self) -> list[Any]:
        return list(self.table["value"].to_pylist())


class Engine:
    """Runs blobs at once, or, when it is `busy`, when it is told to."""

    def __init__(self) -> None:
        self.busy = False
        self.waiting: list[Submission] = []
        """Submitted to a busy engine and not run yet."""
        self.submissions: list[Submission] = []
        self.failures: list[Exception | None] = []
        """What becomes of the next submissions, in their order. None: they are run."""
        self.readiness: list[Exception | None] = []
        """What the next calls of `ready` raise. None: nothing."""
        self.asked_ready = 0
        self.cancelled: list[TaskId] = []
        self.forgotten: list[TaskId] = []
        self.shelves: list[Shelf] = []
        self.shelf_folder: str | None = None
        """Where shelves are made; None: there are none."""
        self.runner: StatementRunner | None = None
        self.refused_statement: Exception | None = None
        self.reader: RangeReader | None = None
        self.reads_ranges = True
        """The one that the task got."""
        self.frames = 0
        self.sender = FrameSender()
        self.asked_sender = 0
        self.in_the_way: str | None = None

    def trouble(self, task: TaskId) -> str | None:
        return self.in_the_way

    def ready(self, cancelled: Callable[[], bool]) -> None:
        self.asked_ready += 1
        error = self.readiness.pop(0) if self.readiness else None
        if error is not None:
            raise error
        if cancelled():
            raise EngineUnavailable("given up")

    def submit(self, task: TaskId, blobs: Sequence[bytes]) -> Future[list[blob.Packed]]:
        made = Submission(task, list(blobs))
        self.submissions.append(made)
        error = self.failures.pop(0) if self.failures else None
        if error is not None:
            made.future.set_exception(error)
        elif self.busy:
            self.waiting.append(made)
        else:
            made.run()
        return made.future

    def run_next(self) -> None:
        """The submission that has waited longest."""
        self.waiting.pop(0).run()

    def run_all(self) -> None:
        while self.waiting:
            self.run_next()

    def cancel(self, task: TaskId) -> None:
        self.cancelled.append(task)
        for each in self.waiting:
            each.future.set_exception(EngineUnavailable(f"What {task} had submitted was cancelled"))
        self.waiting.clear()

    def forget(self, task: TaskId) -> None:
        self.forgotten.append(task)

    @contextmanager
    def shelf(self) -> Iterator[Shelf | None]:
        made = None if self.shelf_folder is None else Shelf.new(self.shelf_folder)
        if made is not None:
            self.shelves.append(made)
        try:
            yield made
        finally:
            if made is not None:
                made.remove()

    def statements(self, spec: TaskSpec, output: Output | None) -> StatementRunner:
        if self.refused_statement is not None:
            raise self.refused_statement
        self.runner = self.runner or StatementRunner(spec.chain)
        return self.runner

    def ranges(self, spec: TaskSpec, chain: bytes, sink: SinkChain, frames: bool) -> RangeReader | None:
        self.reader = RangeReader(chain, sink.output, frames) if self.reads_ranges else None
        return self.reader

    def frame_sender(self, spec: TaskSpec, chain: bytes) -> FrameSender:
        self.asked_sender += 1
        return self.sender

    def frame(self, table: pa.Table) -> Frame:
        self.frames += 1
        return Frame(table)

    def session_for(self, task: TaskId) -> str:
        return f"the session of {task}"

    def explain(self, error: Exception) -> Exception:
        """A ConnectionError is what somebody sees whose driver has died."""
        return EngineUnavailable("the driver died") if isinstance(error, ConnectionError) else error


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


# --- Kafka ------------------------------------------------------------------------------------------------------------


def value_at(where: TopicPartition, offset: int) -> str:
    """Of the record that every partition of these tests has at this offset."""
    return f"{where.partition}:{offset}"


def consumed(rows: Sequence[tuple[TopicPartition, int]]) -> pa.Table:
    """Of these records, the columns that a sink chain takes."""
    return pa.Table.from_pylist(
        [
            {
                "topic": where.topic,
                "partition": where.partition,
                "offset": offset,
                "timestamp": 5,
                "timestamp_type": "CreateTime",
                "key": None,
                "value": value_at(where, offset).encode(),
                "headers": None,
            }
            for where, offset in rows
        ],
        schema=CONSUMED,
    )


@dataclass(frozen=True)
class Fetched:
    rows: Sequence[tuple[TopicPartition, int]]

    @property
    def following(self) -> Mapping[TopicPartition, int]:
        return {where: offset + 1 for where, offset in self.rows}

    def __len__(self) -> int:
        return len(self.rows)

    def table(self, needed: frozenset[str]) -> pa.Table:
        return consumed(self.rows).select([name for name in CONSUMED.names if name in needed])


class Consumer:
    """Gives the records of its partitions, from where it was told to, in the order of offsets.

    Rebalances are called for by `within_fetch` and `within_keep_alive`, one in each call: `lambda: consumer.assign(P)`.
    """

    def __init__(self, ends: Mapping[TopicPartition, int], journal: list[Any]) -> None:
        """`ends`: how many records each partition has. What matters to others than the loop goes to the journal."""
        self.topics = dict(ends)
        self.journal = journal
        self.low: dict[TopicPartition, int] = {}
        """What retention has taken."""
        self.committed: dict[TopicPartition, int] = {}
        """Of the group."""
        self.commit_errors: list[Exception | None] = []
        self.positions: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.all_paused = False
        self.in_the_way: str | None = None
        self.within_fetch: list[Callable[[], object]] = []
        self.within_keep_alive: list[Callable[[], object]] = []
        self.when_idle: Callable[[], object] = _not_expected
        """When there is nothing to fetch, nothing under way, and nothing else to happen."""
        self.sizes: list[int] = []
        """Most records, by each fetch."""
        self.seconds: list[float] = []
        self.sought: list[dict[TopicPartition, int]] = []
        self.known_lag: int | None = None
        """Instead of what it really is."""
        self.asked_lag: list[bool] = []
        """Whether the broker was to be asked, each time."""
        self.away = False
        """There is no broker to know how far behind it is."""
        self.config: Config = {}
        self.subscribed: tuple[list[str], str | None] | None = None
        self._rebalances: ports.Rebalances | None = None
        self._failure: Exception | None = None

    def trouble(self) -> str | None:
        return self.in_the_way

    def connect(self, config: Config, rebalances: ports.Rebalances, buffer_bytes: int) -> Consumer:
        """For `Ports.consumer`."""
        self.config, self._rebalances, self.buffer_bytes = config, rebalances, buffer_bytes
        return self

    # --- for tests ----------------------------------------------------------------------------------------------------

    def assign(self, *partitions: TopicPartition) -> None:
        assert self._rebalances is not None
        starts = {where: self._start(where) for where in partitions}
        try:
            self.positions |= self._rebalances.on_assigned(starts)
        except Exception as error:
            self._failure = self._failure or error

    def _start(self, where: TopicPartition) -> PartitionStart:
        low = self.low.get(where, 0)
        return PartitionStart(self.committed.get(where, low), where in self.committed, low, self.topics[where])

    def revoke(self, *partitions: TopicPartition) -> None:
        assert self._rebalances is not None
        self._tell(self._rebalances.on_revoked, partitions)

    def lose(self, *partitions: TopicPartition) -> None:
        assert self._rebalances is not None
        self._tell(self._rebalances.on_lost, partitions)

    def _tell(
        self, listener: Callable[[Sequence[TopicPartition]], None], partitions: tuple[TopicPartition, ...]
    ) -> None:
        try:
            listener(partitions)
        except Exception as error:
            self._failure = self._failure or error
        self.positions = {where: offset for where, offset in self.positions.items() if where not in partitions}
        self.paused -= set(partitions)

    def _happen(self, script: list[Callable[[], object]]) -> None:
        if script:
            script.pop(0)()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # --- for the loop -------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        self.subscribed = list(topics), pattern

    def fetch(self, most: int, seconds: float) -> Fetched | None:
        assert not self.all_paused, "it fetches what it has paused"
        self.sizes.append(most)
        self.seconds.append(seconds)
        assert len(self.sizes) < _FOR_EVER, "it fetches for ever"
        last = not self.within_fetch
        self._happen(self.within_fetch)
        rows: list[tuple[TopicPartition, int]] = []
        for where in sorted(self.positions.keys() - self.paused):
            end = min(self.positions[where] + most - len(rows), self.topics[where])
            rows += [(where, offset) for offset in range(self.positions[where], end)]
            self.positions[where] = max(end, self.positions[where])
        if not rows and last and seconds > 0:
            self.when_idle()
        return Fetched(rows) if rows else None

    def keep_alive(self) -> None:
        assert self.all_paused, "it would lose records"
        self._happen(self.within_keep_alive)

    def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        self.all_paused = self.all_paused or partitions is None
        self.paused |= self.positions.keys() if partitions is None else set(partitions)

    def resume(self, but: frozenset[TopicPartition] = frozenset()) -> None:
        self.all_paused = False
        self.paused &= but

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        assert offsets.keys() <= self.positions.keys(), "it has none of them"
        self.sought.append(dict(offsets))
        self.positions |= offsets

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        error = self.commit_errors.pop(0) if self.commit_errors else None
        if error is not None:
            raise error
        assert offsets.keys() <= self.positions.keys(), "it has none of them"
        self.journal.append(("commit", dict(offsets)))
        self.committed |= offsets

    def ends(self) -> Mapping[TopicPartition, tuple[int, int]]:
        return {where: (self.low.get(where, 0), self.topics[where]) for where in self.positions}

    def lag(self, positions: Mapping[TopicPartition, int], *, ask: bool) -> int | None:
        self.asked_lag.append(ask)
        if self.away:
            return None
        if self.known_lag is not None:
            return self.known_lag
        return max((self.topics[where] - offset for where, offset in positions.items()), default=0)

    def close(self) -> None:
        self.journal.append(("leave group",))

    def abandon(self) -> None:
        self.journal.append(("abandon group",))


class Letters:
    """Kafka answers for each letter at once, unless it is `slow`: then by the futures."""

    def __init__(self) -> None:
        self.failure: str | None = None
        self.sent: list[tuple[Any, ...]] = []
        self.futures: list[Future[Any]] = []
        self.slow = self.full = self.closed = False
        self.flushes: list[float] = []

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> Future[Any]:
        if self.full:
            raise BufferError
        self.sent.append((topic, value, key, tuple(headers), timestamp))
        self.futures.append(Future() if self.slow else done(None))
        return self.futures[-1]

    def flush(self, seconds: float) -> bool:
        self.flushes.append(seconds)
        return all(each.done() for each in self.futures)

    def close(self) -> None:
        self.closed = True


class TopicAdmin:
    def __init__(self, *existing: str, error: Exception | None = None) -> None:
        """`error`: what is raised when a topic is to be made."""
        self.existing = set(existing)
        self.error = error
        self.made: list[NewTopic] = []
        self.asked: list[str] = []

    def exists(self, topic: str) -> bool:
        self.asked.append(topic)
        return topic in self.existing

    def create(self, *topics: NewTopic) -> Sequence[str]:
        if self.error is not None:
            raise self.error
        missing = [each for each in topics if each.name not in self.existing]
        self.made += missing
        self.existing |= {each.name for each in missing}
        return [each.name for each in missing]


# --- all of it --------------------------------------------------------------------------------------------------------


def make_ports(
    engine: ports.Engine,
    clock: ports.Clock,
    consumer: Callable[[Config, ports.Rebalances, int], ports.Consumer] = _not_expected,
    letters: Callable[[Config, str, Callable[[], bool]], ports.Letters] = _not_expected,
    topics: Callable[[Config, ports.AskAgain], ports.TopicAdmin] = _not_expected,
    **others: Any,
) -> ports.Ports:
    """`others`: further fields of Ports; what is not given, the task must not ask for."""
    made: Mapping[str, Any] = {**dict.fromkeys(("offsets", "sender", "transactional"), _not_expected), **others}
    return ports.Ports(engine=engine, clock=clock, consumer=consumer, letters=letters, topics=topics, **made)
