"""A sink loop on the bench: with a task that notes what it is told and does what it is told, and fakes all around."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakes import Clock, Consumer, Engine, Letters, Listener, QuickControl, TopicAdmin, make_ports, task_spec

from headgate.api import FrameSinkTask, SinkTask, TableSinkTask
from headgate.metrics import SinkMetrics
from headgate.model import Config, TargetState, TaskSpec, TopicPartition
from headgate.tasks.sink.loop import SinkLoop

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
Answer = Exception | Callable[..., Any] | None
"""What a call does: raises this; or calls this; or nothing out of the ordinary."""


def values(where: TopicPartition, start: int, end: int) -> list[str]:
    return [f"{where.partition}:{offset}" for offset in range(start, end)]


class SinkBench:
    """`journal` has the calls of the task, and of the consumer what others notice: commits, and that it leaves."""

    def __init__(
        self,
        ends: Mapping[TopicPartition, int],
        kind: type = SinkTask,
        most: int = 10,
        paused: bool = False,
        consumer: Config | None = None,
        **spec: Any,
    ) -> None:
        """`ends`: how many records each partition has; `most`: records in one fetch; `spec`: see `fakes.task_spec`."""
        self.journal: list[tuple[Any, ...]] = []
        self.clock = Clock()
        self.control = QuickControl(self.clock, paused)
        self.listener = Listener()
        self.engine = Engine()
        self.letters = Letters()
        self.admin = TopicAdmin("dead")
        self.metrics = SinkMetrics()
        self.consumer = Consumer(ends, self.journal)
        self.consumer.within_fetch = [lambda: self.consumer.assign(*ends)]
        self.consumer.when_idle = self.control.stop
        self.on_start: list[Answer] = []
        self.on_open: list[Answer] = []
        self.on_put: list[Answer] = []
        self.on_pre_commit: list[Answer] = []
        self.on_close: list[Answer] = []
        self.spec: TaskSpec = task_spec(
            _KINDS[kind](self),
            consumer={"max.poll.records": str(most)} if consumer is None else consumer,
            target_state=TargetState.PAUSED if paused else TargetState.STARTED,
            **{"connector_config": {"topics": "t"}, **spec},
        )
        self.ports = make_ports(
            self.engine,
            self.clock,
            consumer=self.consumer.connect,
            letters=lambda *_: self.letters,
            topics=lambda *_: self.admin,
        )
        self.loop = SinkLoop(self.spec, self.control, self.listener, self.ports, self.metrics)
        self.task: Any = None
        """Once the loop has made it."""

    def run(self) -> None:
        self.loop.run()

    def then(self, *events: Callable[[], object]) -> None:
        """These happen within the fetches that follow, one in each."""
        self.consumer.within_fetch += events

    @property
    def context(self) -> Any:
        return self.task.context

    # --- what became of it --------------------------------------------------------------------------------------------

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        """Of the journal, these kinds of entries."""
        return [entry for entry in self.journal if entry[0] in names]

    @property
    def puts(self) -> list[list[str]]:
        return [entry[1] for entry in self.of("put")]

    @property
    def put(self) -> list[str]:
        """Every value that the task took, in its order."""
        return [value for each in self.puts for value in each]

    # --- for the task -------------------------------------------------------------------------------------------------

    def happens(self, script: list[Answer], *given: Any) -> Any:
        answer = script.pop(0) if script else None
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else answer(*given)


class _Noting:
    """What every kind of sink task does here."""

    bench: SinkBench

    def __init__(self) -> None:
        self.bench.task = self

    def start(self, config: Mapping[str, str]) -> None:
        self.bench.journal.append(("start",))
        self.bench.happens(self.bench.on_start)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.bench.journal.append(("open", sorted(partitions)))
        self.bench.happens(self.bench.on_open, partitions)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.bench.journal.append(("pre_commit", dict(offsets)))
        allowed = self.bench.happens(self.bench.on_pre_commit, offsets)
        return offsets if allowed is None else allowed

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        self.bench.journal.append(("close", sorted(partitions)))
        self.bench.happens(self.bench.on_close, partitions)

    def stop(self) -> None:
        self.bench.journal.append(("stop",))

    def take(self, found: list[str]) -> None:
        try:
            self.bench.happens(self.bench.on_put, found)
        except Exception:
            self.bench.journal.append(("put in vain", found))
            raise
        self.bench.journal.append(("put", found))


def _records(at: SinkBench) -> type:
    class Records(_Noting, SinkTask):
        bench = at

        def put(self, records: Any) -> None:
            self.take([record.value for record in records])

    return Records


def _table(at: SinkBench) -> type:
    class Table(_Noting, TableSinkTask):
        bench = at

        def put(self, table: Any) -> None:
            self.take(table["value"].to_pylist())

    return Table


def _frame(at: SinkBench) -> type:
    class Framed(_Noting, FrameSinkTask):
        bench = at
        columns = ("value",)

        def put(self, frame: Any) -> None:
            self.take([value.strip('"') for value in frame.values()])

    return Framed


_KINDS: Mapping[type, Callable[[SinkBench], type]] = {SinkTask: _records, TableSinkTask: _table, FrameSinkTask: _frame}
