"""Fakes for the source side: a task that polls what it is told to, Kafka that answers when it is told to, offsets."""

from __future__ import annotations

import json
import queue
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import pyarrow as pa
from fakes import TASK, Clock, Engine, Letters, Listener, QuickControl, TopicAdmin, errors_config, make_ports, task_spec

from headgate.api import (
    ConnectError,
    Consumed,
    RetriableError,
    SourceFrame,
    SourceRecord,
    SourceTable,
    SourceTask,
    Transform,
)
from headgate.metrics import SourceMetrics, Window
from headgate.model import (
    Boundary,
    Config,
    ConnectorType,
    Offset,
    Partition,
    PluginRef,
    PluginSpec,
    StepSpec,
    TaskSpec,
    TopicPartition,
    TransactionSpec,
)
from headgate.pipeline.batch import Produced, produced, slim
from headgate.producer.errors import (
    FatalProducerError,
    Operation,
    OperationTimeoutError,
    ProducerClosedError,
    ProducerError,
    ProducerStateError,
    TransactionAbortableError,
    TransactionStateError,
)
from headgate.producer.states import CALLS, Answer, Event, State, step
from headgate.tasks.control import Control
from headgate.tasks.ports import Ports, RefusedRecord
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.batch import Batch, Made
from headgate.tasks.source.loop import SourceLoop
from headgate.tasks.source.polled import End, Polled

WAIT_S: Final = 20.0
"""Nothing here takes long: who waits for so long waits in vain."""
PARTITION: Final = {"p": 0}
OFFSETS_TOPIC: Final = "offsets"


class WatchedList(list[Any]):
    """Another thread fills it, and a test waits for that."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._changed = threading.Condition()

    def append(self, item: Any) -> None:
        with self._changed:
            super().append(item)
            self._changed.notify_all()

    def await_that(self, holds: Callable[[Self], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: holds(self), WAIT_S), f"waited in vain, there is {list(self)}"

    def await_item(self, item: Any, times: int = 1) -> None:
        self.await_that(lambda items: items.count(item) >= times)


class Scripted:
    """Does at the next calls of a method what a test wants: raises an exception, calls a function, gives a value."""

    def __init__(self) -> None:
        self.calls = WatchedList()
        self._next: dict[str, deque[Any]] = defaultdict(deque)

    def at(self, call: str, *wanted: Any) -> None:
        """One of them for each call, in this order; None: the call goes as always."""
        self._next[call] += wanted

    def has_happened(self, call: str) -> bool:
        """Whether all that was wanted of these calls was met."""
        return not self._next[call]

    def called(self, call: str) -> Any:
        self.calls.append(call)
        wanted = self._next[call].popleft() if self._next[call] else None
        if isinstance(wanted, BaseException):
            raise wanted
        return wanted() if callable(wanted) else wanted


# --- offsets ----------------------------------------------------------------------------------------------------------


class TaskOffsets(Scripted):
    """Fits `tasks.source.offsets.TaskOffsets`."""

    topic = OFFSETS_TOPIC

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Offset] = {}
        self.copied: list[tuple[Partition, Offset | None]] = []

    def at_zero(self) -> Offset | None:
        """The offset of PARTITION."""
        return self.stored.get(json.dumps(PARTITION))

    def entries(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[bytes, bytes | None]]:
        self.called("entries")
        return [(json.dumps(partition).encode(), json.dumps(offset).encode()) for partition, offset in offsets]

    def committed(self, key: bytes, value: bytes) -> None:
        """One of the entries is in the topic."""
        self.stored[key.decode()] = json.loads(value)

    def copy(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        self.called("copy")
        self.copied += offsets

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        self.called("get")
        assert connector == TASK.connector
        return [self.stored.get(json.dumps(each)) for each in partitions]

    def put(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None:
        self.called("put")
        assert connector == TASK.connector
        self.stored |= {json.dumps(partition): offset for partition, offset in offsets if offset is not None}

    def close(self) -> None:
        self.called("close")


# --- at least once ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefusedMessage:
    number: int
    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


@dataclass(frozen=True)
class Refused:
    message: RefusedMessage
    reason: str = "too large"


class Sender(Scripted):
    """Fits `tasks.ports.Sender`. Kafka has what was sent when `flush` says so: it does unless told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.rows: list[tuple[str, str]] = []
        """Topic and value of all that was sent."""
        self.arrived = 0
        """How many of them Kafka has answered for."""
        self.refuses: set[str] = set()
        """Values that Kafka does not take; `flush` tells of them."""
        self.closed = False
        self.in_the_way: str | None = None
        self._pending: list[RefusedMessage] = []
        self._on_refused: Callable[[RefusedRecord], None] | None = None
        self.may_go_on: Callable[[], bool] | None = None

    def rest(self) -> None:
        self.called("rest")

    def trouble(self, since: float) -> str | None:
        return self.in_the_way

    def made(
        self, config: Config, may_go_on: Callable[[], bool], on_refused: Callable[[RefusedRecord], None]
    ) -> Sender:
        """For Ports."""
        self.may_go_on, self._on_refused = may_go_on, on_refused
        return self

    @property
    def unanswered(self) -> int:
        return len(self.rows) - self.arrived

    @property
    def values(self) -> list[str]:
        return [value for _, value in self.rows]

    def send(self, table: pa.Table) -> None:
        self.called("send")
        for topic, value in _rows(table):
            if value in self.refuses:
                self._pending.append(RefusedMessage(self.count, topic, value.encode()))
            self.rows.append((topic, value))
            self.count += 1

    def flush(self, seconds: float) -> bool:
        arrived = self.called("flush" if seconds else "look")
        pending, self._pending = self._pending, []
        for message in pending:
            assert self._on_refused is not None
            self._on_refused(Refused(message))
        if arrived is None:
            self.arrived = len(self.rows)
        return arrived is not False

    def close(self) -> None:
        self.closed = True
        self.called("close")


def _rows(table: pa.Table) -> list[tuple[str, str]]:
    return [(row["topic"], row["value"].decode()) for row in table.to_pylist()]


def made_table(*values: str, topic: str = "t") -> pa.Table:
    """As the engine gives it back."""
    return slim(
        produced(Produced(row, topic, None, None, each.encode(), None, None) for row, each in enumerate(values))
    )


# --- exactly once -----------------------------------------------------------------------------------------------------


class TransactionalSender(Scripted):
    """Fits `tasks.ports.TransactionalSender`, and holds its caller to the producer's own state table: what that does
    not allow is ProducerStateError. A scripted error has the effect that it speaks of; one whose `outcome_unknown` is
    set has committed in spite of what it says."""

    def __init__(self, offsets: TaskOffsets) -> None:
        super().__init__()
        self.timeout = 60.0
        self.state = State.UNINITIALISED
        self.committed: list[list[str]] = []
        """The values of each transaction; those of offsets are told to `offsets`."""
        self.consumed: list[tuple[Mapping[TopicPartition, int], Any]] = []
        self.shrinking: list[ProducerError] = []
        """The errors that are about the size which records have together."""
        self.one_by_one = False
        """The topic takes no larger batches."""
        self.config: Config = {}
        self._offsets = offsets
        self._values: list[str] = []
        self._entries: list[tuple[bytes, bytes]] = []
        self._consumed: list[tuple[Mapping[TopicPartition, int], Any]] = []
        self._settled = False
        """A commit that was said to have failed had not."""

    @property
    def values(self) -> list[str]:
        """Of all that was committed."""
        return [value for values in self.committed for value in values]

    def made(self, config: Config, still_mine: Callable[[], bool]) -> TransactionalSender:
        """For Ports."""
        self.called("create")
        self.config = config
        return self

    def _do(self, call: Operation, before: Event | None = None) -> None:
        answer = CALLS[self.state, call]
        if answer is Answer.CLOSED:
            raise ProducerClosedError(call.value)
        if answer is not Answer.ALLOWED:
            raise ProducerStateError(f"{call.value} is not allowed in state {self.state.name}")
        if before is not None:
            self.state = step(self.state, before)
        try:
            self.called(call.value)
        except FatalProducerError:
            self.state = State.FATAL_ERROR
            raise
        except TransactionAbortableError as error:
            self.state = State.ABORTABLE_ERROR
            if error.outcome_unknown:
                self._commit()
                self._settled = True
            raise
        except OperationTimeoutError:
            if call is Operation.INIT:
                self.state = State.INITIALISING
            raise

    def init(self, seconds: float) -> None:
        self._do(Operation.INIT)
        self._drop()
        self.state = State.READY

    def renew(self) -> None:
        self.called("renew")
        self.state = State.UNINITIALISED

    def begin(self) -> None:
        self._do(Operation.BEGIN)
        self.state = State.IN_TRANSACTION

    def send_table(self, table: pa.Table, settle: Callable[[], None]) -> None:
        values = [value for _, value in _rows(table)]
        for piece in [[each] for each in values] if self.one_by_one else [values]:
            self._do(Operation.SEND)
            self._values += piece
            if self.one_by_one:
                settle()

    def send(self, topic: str, value: bytes | None, key: bytes | None) -> None:
        self._do(Operation.SEND)
        assert topic == OFFSETS_TOPIC
        assert key is not None
        assert value is not None
        self._entries.append((key, value))

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group_metadata: Any) -> None:
        self._do(Operation.SEND_OFFSETS)
        self._consumed.append((offsets, group_metadata))

    def flush(self, seconds: float) -> None:
        self._do(Operation.FLUSH)

    def commit(self, seconds: float) -> None:
        self._do(Operation.COMMIT, Event.COMMIT_STARTED)
        self._commit()
        self.state = State.READY

    def _commit(self) -> None:
        self.committed.append(self._values)
        self.consumed += self._consumed
        for key, value in self._entries:
            self._offsets.committed(key, value)
        self._drop()

    def abort(self, seconds: float) -> None:
        self._do(Operation.ABORT, Event.ABORT_STARTED)
        if self._settled:
            self.state = State.FATAL_ERROR
            raise TransactionStateError("abort: it was committed")
        self._drop()
        self.state = State.READY

    def _drop(self) -> None:
        self._values, self._entries, self._consumed, self._settled = [], [], [], False

    def shrinks(self, error: ProducerError) -> bool:
        return error in self.shrinking

    def close(self) -> None:
        self.called("close")
        self.state = State.CLOSED


# --- the task ---------------------------------------------------------------------------------------------------------


def record(value: str, offset: int | None = None, topic: str = "t") -> SourceRecord:
    """One of PARTITION, at this offset of it."""
    at = None if offset is None else {"n": offset}
    return SourceRecord(topic=topic, value=value, source_partition=PARTITION, source_offset=at)


def records(*numbers: int, topic: str = "t") -> list[SourceRecord]:
    """Each number is the value and the offset of its record."""
    return [record(str(number), number, topic) for number in numbers]


def source_table(*numbers: int, offset: int | None = None) -> SourceTable:
    at = offset if offset is not None else numbers[-1]
    values = pa.table({"value": pa.array(map(str, numbers), pa.string())})
    return SourceTable(topic="t", table=values, source_partition=PARTITION, source_offset={"n": at})


def source_frame(offset: int) -> SourceFrame:
    """One that the fake engine does not look into."""
    made: Any = _rows
    return SourceFrame(topic="t", frame=made, source_partition=PARTITION, source_offset={"n": offset})


def after(calls: WatchedList, call: str, polled: Any) -> Callable[[ScriptedTask], Any]:
    """Polls this when there was such a call."""

    def poll(_: ScriptedTask) -> Any:
        calls.await_item(call)
        return polled

    return poll


class Script(Scripted):
    """What the instances of a task do. They poll what `give` has given, whichever of them asks, and wait for more."""

    def __init__(self, *polls: Any) -> None:
        super().__init__()
        self._polls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.instances: list[ScriptedTask] = []
        self.begun_at: list[Offset | None] = []
        """The committed offset that each instance found."""
        self.acknowledged: list[Any] = []
        """The values of records that the task was told of one by one."""
        self.consumed: Consumed | None = None
        self.consumed_of: list[Any] = []
        self.numbers = 0
        """A CountingTask polls so many."""
        self.together = 1
        """So many at once."""
        self.give(*polls)

    def give(self, *polls: Any) -> None:
        """Records, a table or None; what is to be raised; a function of the task that gives such."""
        for each in polls:
            self._polls.put(each)

    def next(self) -> Any:
        return self._polls.get(timeout=WAIT_S)

    def task_class(self, base: type[ScriptedTask] | None = None) -> type[ScriptedTask]:
        return type("TheTask", (base or ScriptedTask,), {"script": self})


class ScriptedTask(SourceTask):
    script: ClassVar[Script]

    def start(self, config: Mapping[str, str]) -> None:
        self.script.instances.append(self)
        self.began = self.context.offset_reader.offset(PARTITION)
        self.script.begun_at.append(self.began)
        self.script.called("start")

    def poll(self) -> Sequence[SourceRecord] | SourceTable | SourceFrame | None:
        self.script.called("poll")
        wanted: Any = self.script.next()
        if isinstance(wanted, BaseException):
            raise wanted
        found: Sequence[SourceRecord] | SourceTable | SourceFrame | None = wanted(self) if callable(wanted) else wanted
        return found

    def commit(self) -> None:
        self.script.called("commit")

    def consumed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Consumed | None:
        self.script.consumed_of += offsets
        return self.script.consumed

    def stop_requested(self) -> None:
        self.script.calls.append("stop requested")
        self.script.give(None)

    def stop(self) -> None:
        self.script.called("stop")


class ToldTask(ScriptedTask):
    """Wants to know of each record."""

    def commit_record(self, record: SourceRecord) -> None:
        self.script.called("commit record")
        self.script.acknowledged.append(record.value)


class CountingTask(ScriptedTask):
    """Polls the numbers that come after its offset, up to `script.numbers`; then what the script gives."""

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._next = 1 if self.began is None else self.began["n"] + 1

    def poll(self) -> Sequence[SourceRecord] | SourceTable | SourceFrame | None:
        if self._next > self.script.numbers:
            return super().poll()
        self.script.called("poll")
        numbers = range(self._next, min(self._next + self.script.together, self.script.numbers + 1))
        self._next = numbers[-1] + 1
        return records(*numbers)


class OneByOneTask(CountingTask):
    """Polls when what it polled before is committed."""

    _woken = False

    def poll(self) -> Sequence[SourceRecord] | SourceTable | SourceFrame | None:
        self.script.calls.await_that(lambda _: self._woken or self._is_committed())
        return None if self._woken else super().poll()

    def _is_committed(self) -> bool:
        offset = self.context.offset_reader.offset(PARTITION)
        return self._next == (1 if offset is None else offset["n"] + 1)

    def stop_requested(self) -> None:
        self._woken = True
        super().stop_requested()


class Stubborn(Transform[Any]):
    """Fails for the value "bad"; for a value `again <n>`, so often as `failures` has of it, in a way that passes."""

    failures: ClassVar[dict[str, int]] = {}

    def apply(self, record: Any) -> Any:
        if record.value == "bad":
            raise ValueError("a bad record")
        if self.failures.get(record.value, 0) > 0:
            self.failures[record.value] -= 1
            raise RetriableError("not now")
        return None if record.value == "dropped" else record


STUBBORN: Final = StepSpec("stubborn", PluginSpec(PluginRef(__name__, "Stubborn")))
TOLERANT: Final = errors_config(tolerance="all")


# --- between the pump and Kafka ---------------------------------------------------------------------------------------


def batch_of(*contents: Any, end: End | None = None, more: bool = False) -> Batch:
    """What was polled, on its way; the last of it ends a transaction so."""
    polled = [Polled.of(each, end if each is contents[-1] else None) for each in contents]
    return Batch(polled, [each.rows for each in polled if each.rows], [], Future(), 0, more)


class Outlet(Scripted):
    """Fits `tasks.source.batch.Outlet`: remembers what it was given."""

    forbidden: str | None = OFFSETS_TOPIC

    def __init__(self) -> None:
        super().__init__()
        self.added: list[tuple[str, str]] = []
        """Each value, and the value of the record that it was made of."""
        self.batches: list[Batch] = []
        self.failure: BaseException | None = None
        """What the pump has ended with."""
        self.turned_into: BaseException | None = None
        """What is made of that, if it is another."""

    @property
    def values(self) -> list[str]:
        return [value for value, _ in self.added]

    def add(self, made: Made) -> None:
        table, origin = made
        self.called("add")
        rows = table["row"].to_pylist() if "row" in table.column_names else range(table.num_rows)
        values = [value for _, value in _rows(table)]
        self.added += [(value, origin(row).value) for value, row in zip(values, rows, strict=True)]

    def end(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.called("end")

    def due(self) -> float | None:
        due: float | None = self.called("due")
        return due

    def commit_if_due(self) -> None:
        self.called("commit if due")

    def settle(self) -> None:
        self.called("settle")

    def failed(self, error: BaseException) -> BaseException:
        self.failure = error
        self.called("failed")
        return self.turned_into or error

    def close(self) -> None:
        self.called("close")


# --- all of it --------------------------------------------------------------------------------------------------------


class SourceControl(QuickControl):
    """But for a pause: that lasts until a test, which is another thread, ends it."""

    def wait_while_paused(self) -> None:
        Control.wait_while_paused(self)


@dataclass
class Source:
    """A source task with all that it is given, and what became of it."""

    script: Script = field(default_factory=Script)
    clock: Clock = field(default_factory=Clock)
    engine: Engine = field(default_factory=Engine)
    offsets: TaskOffsets = field(default_factory=TaskOffsets)
    sender: Sender = field(default_factory=Sender)
    letters: Letters = field(default_factory=Letters)
    admin: TopicAdmin = field(default_factory=TopicAdmin)
    listener: Listener = field(default_factory=Listener)

    def __post_init__(self) -> None:
        self.transactional = TransactionalSender(self.offsets)
        self.control = SourceControl(self.clock)
        self.metrics = SourceMetrics(transaction_size=Window())
        self.events = WatchedList()
        """What the listener was told."""
        self.listener.events = self.events
        self._under_way = WatchedList()
        self.engine.waiting = self._under_way
        self.frames = WatchedList()
        """That the engine was to send."""
        self.engine.sender.sent = self.frames
        self.ports: Ports = make_ports(
            self.engine,
            self.clock,
            offsets=lambda _: self.offsets,
            sender=self.sender.made,
            transactional=self.transactional.made,
            letters=lambda *_: self.letters,
            topics=lambda *_: self.admin,
        )

    def spec(self, boundary: Boundary | None = None, base: type[ScriptedTask] | None = None, **more: Any) -> TaskSpec:
        """With transactions that end so; None: without. `more`: of `fakes.task_spec`."""
        transaction = None if boundary is None else TransactionSpec("the-id", boundary, interval_ms=10_000)
        more = {"transaction": transaction, "flush_interval_ms": 60_000, "flush_timeout_ms": 5_000, **more}
        return task_spec(self.script.task_class(base), ConnectorType.SOURCE, **more)

    def await_under_way(self, count: int) -> None:
        """Until a busy engine has so many submissions."""
        self._under_way.await_that(lambda waiting: len(waiting) >= count)

    def reporter(self, spec: TaskSpec) -> Reporter:
        return Reporter(spec, self.metrics.errors, self.control, self.ports)

    def run(self, spec: TaskSpec) -> LoopThread:
        return LoopThread(SourceLoop(spec, self.control, self.listener, self.ports, self.metrics), self.control)


class LoopThread:
    """A task's thread, for the time of a `with`; it is given up on behind it, should it still run."""

    def __init__(self, loop: SourceLoop, control: QuickControl) -> None:
        self._loop = loop
        self._control = control
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.cancel()
            self.ended()

    def stop(self) -> None:
        self._control.stop()
        self._loop.wake()

    def cancel(self) -> None:
        self._control.cancel()
        self._loop.wake()

    def ended(self) -> BaseException | None:
        """Waits for its end: what it ended with."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the task does not end"
        return self._error

    def stopped(self) -> BaseException | None:
        """Asks it to stop, and waits for that."""
        self.stop()
        return self.ended()


def reassigned() -> ConnectError:
    """What a listener raises when another worker has the task by now."""
    return ConnectError("another worker has it")
