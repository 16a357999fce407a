"""A source that counts, run with transactions on the worker's Spark, and readers that tell what came of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from checks import read_committed
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import await_

from headgate.api import SourceRecord, SourceTable, SourceTask
from headgate.api import schema as types
from headgate.cli.assembly import StandaloneWorker
from headgate.cli.task_ports import task_ports
from headgate.metrics import SourceMetrics
from headgate.model import (
    Boundary,
    ChainSpec,
    ConnectorType,
    PluginRef,
    PluginSpec,
    StepSpec,
    TargetState,
    TaskId,
    TaskSpec,
    TransactionSpec,
)
from headgate.storage.offset_log import OffsetLog
from headgate.storage.topic_log import TopicLog
from headgate.storage.topic_writer import TopicWriter
from headgate.tasks.runner import TaskThread, ThreadRunner
from headgate.tasks.source.offsets import OffsetsFor, shared

STRING: Final = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"))
HEADERS: Final = PluginSpec(PluginRef("headgate.pipeline.converters.simple_header", "SimpleHeaderConverter"))
PARTITION: Final = {"source": "numbers"}


@dataclass
class Script:
    """What all instances of a task do."""

    topic: str
    released: int = 0
    """The numbers from 0 up to this one may be polled."""
    per_poll: int = 10
    value: Callable[[int], str] = str
    columns: bool = False
    asks: Callable[[CountingTask, Sequence[SourceRecord]], object] = lambda *_: None
    """Called in `poll`, with what it is about to return."""
    starts: list[int] = field(default_factory=list)
    """Where each instance began."""
    stops: int = 0
    told: list[str] = field(default_factory=list)
    commits: int = 0


class CountingTask(SourceTask):
    """Its offset is how far it came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._woken = threading.Event()

    def start(self, config: Mapping[str, str]) -> None:
        self.next = int((self.context.offset_reader.offset(PARTITION) or {"next": 0})["next"])
        self.script.starts.append(self.next)

    def poll(self) -> Sequence[SourceRecord] | SourceTable | None:
        script = self.script
        numbers = range(self.next, min(self.next + script.per_poll, script.released))
        if not numbers:
            self._woken.wait(0.02)
            return None
        self.next = numbers.stop
        if script.columns:
            values = pa.table({"value": [script.value(number) for number in numbers]})
            offset = {"next": numbers.stop}
            return SourceTable(
                topic=script.topic, table=values, source_partition=PARTITION, source_offset=offset,
                value_schema=types.STRING,
            )  # fmt: skip
        records = [
            SourceRecord(
                topic=script.topic,
                value=script.value(number),
                value_schema=types.STRING,
                source_partition=PARTITION,
                source_offset={"next": number + 1},
            )
            for number in numbers
        ]
        script.asks(self, records)
        return records

    def commit(self) -> None:
        self.script.commits += 1

    def stop_requested(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self.script.stops += 1


class TellingTask(CountingTask):
    """Wants to know of each record."""

    def commit_record(self, record: SourceRecord) -> None:
        self.script.told.append(record.value)


class Desk:
    """A listener that notes what it is told. The two questions are answered by `fence` and `confirm`."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.trace: str | None = None
        self.topics: list[str] = []
        self.fence: Callable[[], None] = lambda: None
        self.confirm: Callable[[], None] = lambda: None

    def on_running(self) -> None:
        self.events.append("running")

    def on_paused(self) -> None:
        self.events.append("paused")

    def on_failed(self, trace: str) -> None:
        self.trace = trace
        self.events.append("failed")

    def on_stopped(self) -> None:
        self.events.append("stopped")

    def on_topic(self, topic: str) -> None:
        self.topics.append(topic)

    def await_fencing(self) -> None:
        self.events.append("fencing")
        self.fence()

    def confirm_start(self) -> None:
        self.events.append("confirmed")
        self.confirm()


@dataclass
class Running:
    thread: TaskThread
    desk: Desk
    runner: ThreadRunner
    spec: TaskSpec

    def await_event(self, name: str, times: int = 1, seconds: float = 60.0) -> None:
        def there() -> bool:
            assert name == "failed" or self.desk.trace is None, self.desk.trace
            return self.desk.events.count(name) >= times

        await_(there, f"{name} of {self.desk.events}", seconds)

    def await_failure(self, seconds: float = 60.0) -> str:
        self.await_event("failed", seconds=seconds)
        assert self.desk.trace is not None
        return self.desk.trace

    def stop(self, seconds: float = 30.0) -> None:
        """As the worker does, with all the patience in the world."""
        ended = threading.Event()
        self.thread.when_ended(ended.set)
        self.thread.stop()
        assert ended.wait(seconds), "the task did not stop"
        assert self.desk.trace is None, self.desk.trace


class Bench:
    """One connector of its own, its target topic and its offsets topic."""

    def __init__(self, worker: StandaloneWorker, bootstrap: str, name: str) -> None:
        self.worker, self.bootstrap, self.name = worker, bootstrap, name
        self.target, self.offsets_topic = f"{name}-target", f"{name}-offsets"
        self.transactional_id = f"group-{name}-0"
        self.script = Script(self.target)
        self.open = ExitStack()
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.create(self.target)
        self.create(self.offsets_topic, **{"cleanup.policy": "compact"})
        self.log = self.offset_log(self.offsets_topic)
        self._started: list[Running] = []
        self.open.callback(self._end)

    def create(self, topic: str, **config: str) -> None:
        self.admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(20)

    def alter(self, topic: str, **config: str) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        asked = self.admin.incremental_alter_configs([resource])
        for each in asked.values():
            each.result(20)

    def offset_log(self, topic: str) -> OffsetLog:
        clients = {"bootstrap.servers": self.bootstrap, "fetch.max.wait.ms": "100"}
        log = OffsetLog(TopicLog(topic, clients, self.admin, read_committed=True), TopicWriter(topic, clients))
        log.start()
        self.open.callback(log.close)
        return log

    def spec(
        self,
        boundary: Boundary = Boundary.POLL,
        interval_ms: int = 60_000,
        *,
        task: type[CountingTask] = CountingTask,
        steps: Iterable[StepSpec] = (),
        errors: Mapping[str, str] | None = None,
        state: TargetState = TargetState.STARTED,
        **producer: Any,
    ) -> TaskSpec:
        """Dots in the producer's keys are written as underscores."""
        identity = TaskId(self.name, 0)
        settings = {key.replace("_", "."): str(value) for key, value in producer.items()}
        make: Any = lambda: task(self.script)  # noqa: E731
        return TaskSpec(
            id=identity,
            task_class=make,
            type=ConnectorType.SOURCE,
            version=None,
            config={},
            connector_config={},
            chain=ChainSpec(identity, ConnectorType.SOURCE, STRING, STRING, HEADERS, tuple(steps), errors or {}),
            target_state=state,
            producer={
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "delivery.timeout.ms": str(2**31 - 1),
                **settings,
            },
            transaction=TransactionSpec(self.transactional_id, boundary, interval_ms),
        )

    def start(
        self, spec: TaskSpec | None = None, desk: Desk | None = None, offsets: OffsetsFor | None = None
    ) -> Running:
        spec, desk = spec or self.spec(), desk or Desk()
        runner = ThreadRunner(task_ports(self.worker.engine, offsets or shared(self.log), self.worker.config.sandbox))
        running = Running(runner.start(spec, desk), desk, runner, spec)
        self._started.append(running)
        return running

    def elsewhere(self) -> Bench:
        """The same connector with instances that follow a script of their own."""
        other = object.__new__(Bench)
        other.__dict__.update(self.__dict__)
        other.script = replace(self.script, starts=[], told=[])
        return other

    def _end(self) -> None:
        for each in self._started:
            ended = threading.Event()
            each.thread.when_ended(ended.set)
            each.thread.cancel()
            assert ended.wait(30)

    # --- what came of it ----------------------------------------------------------------------------------------------

    def written(self, topic: str | None = None) -> list[str]:
        """What a reader of committed records sees, in order; no transaction is open."""
        return [value.decode() for value in read_committed(self.bootstrap, topic or self.target)]

    def offset(self, topic: str | None = None) -> int:
        """The committed one, by a reader of its own."""
        return last_offset(self.bootstrap, topic or self.offsets_topic)

    def check(self, count: int) -> None:
        """The two checks: everything up to there exactly once, and the offset behind it."""
        await_(lambda: self.offset() >= count, f"offset {count}", 60)
        expected = [self.script.value(number) for number in range(count)]
        found = self.written()
        assert found == expected, f"{len(found)} of {count}; doubled: {len(found) - len(set(found))}"
        assert self.offset() == count


def metrics(running: Running) -> SourceMetrics:
    found = running.runner.metrics.get(running.spec.id, SourceMetrics())
    assert isinstance(found, SourceMetrics)
    return found


def last_offset(bootstrap: str, topic: str) -> int:
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checks",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
    )
    found, deadline = 0, time.monotonic() + 20
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = reader.poll(1.0)
            assert time.monotonic() < deadline
            if message is None:
                continue
            error = message.error()
            if error is None:
                value = message.value()
                if value is not None:
                    found = json.loads(value)["next"]
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        reader.close()
