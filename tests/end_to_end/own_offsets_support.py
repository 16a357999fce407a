"""A sink that keeps its offsets itself, as authors are told to, run on the worker's Spark; it notes what it has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as Native
from confluent_kafka.admin import AdminClient, NewTopic
from exactly_once_support import HEADERS, STRING, Desk, Running
from harness import await_

from headgate.api import SinkRecord, SinkTask
from headgate.cli.assembly import StandaloneWorker
from headgate.model import ChainSpec, ConnectorType, StepSpec, TargetState, TaskId, TaskSpec, TopicPartition


def nothing(*_: object) -> None: ...


@dataclass
class Store:
    """What the sink's own system has. It does not look for doubles: what comes twice is there twice."""

    kept: dict[TopicPartition, list[str]] = field(default_factory=dict)
    next: dict[TopicPartition, int] = field(default_factory=dict)
    opened: list[tuple[TopicPartition, ...]] = field(default_factory=list)
    commits: int = 0
    on_put: Callable[[KeepingTask, Sequence[SinkRecord]], None] = nothing
    on_commit: Callable[[KeepingTask, Mapping[TopicPartition, int]], None] = nothing
    """Both may raise."""

    def all_kept(self) -> int:
        return sum(map(len, self.kept.values()))


class KeepingTask(SinkTask):
    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[TopicPartition, list[SinkRecord]] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.store.opened.append(tuple(partitions))
        for where in partitions:
            self.begin(where)

    def begin(self, where: TopicPartition) -> None:
        self.waiting[where] = []
        if where in self.store.next:
            self.context.offset(where, self.store.next[where])

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.store.on_put(self, records)
        for record in records:
            self.waiting[TopicPartition(record.topic, record.partition or 0)].append(record)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        try:
            self.store.on_commit(self, offsets)
        except Exception:
            for where in self.waiting:
                self.begin(where)
            raise
        self.store.commits += 1
        for where, until in offsets.items():
            done = [each.value for each in self.waiting[where] if each.offset < until]
            self.waiting[where] = self.waiting[where][len(done) :]
            self.store.kept.setdefault(where, []).extend(done)
            self.store.next[where] = until
        return offsets

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        for where in partitions:
            del self.waiting[where]


class SinkBench:
    """One connector of its own, its topic and its group."""

    def __init__(self, worker: StandaloneWorker, bootstrap: str, name: str, partitions: int) -> None:
        self.worker, self.name, self.topic, self.group = worker, name, f"{name}-topic", f"connect-{name}"
        self.bootstrap = bootstrap
        self.store = Store()
        self.wheres = [TopicPartition(self.topic, number) for number in range(partitions)]
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.admin.create_topics([NewTopic(self.topic, partitions, 1)])[self.topic].result(20)
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._sent = 0
        self._started: list[Running] = []

    def send(self, count: int) -> None:
        """So many more records to each partition; the values are their offsets."""
        for number in range(self._sent, self._sent + count):
            for where in self.wheres:
                self._producer.produce(self.topic, str(number).encode(), partition=where.partition)
            if number % 10_000 == 0:
                self._producer.flush(30)
        assert self._producer.flush(30) == 0
        self._sent += count

    def commit(self, offset: int) -> None:
        """The group's offset of all partitions, while nobody is in it."""
        wanted = [Native(where.topic, where.partition, offset) for where in self.wheres]
        request = [ConsumerGroupTopicPartitions(self.group, wanted)]
        self.admin.alter_consumer_group_offsets(request)[self.group].result(20)

    def committed(self) -> dict[TopicPartition, int]:
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])[self.group]
        found = asked.result(20).topic_partitions
        return {TopicPartition(each.topic, each.partition): each.offset for each in found}

    def start(
        self,
        task: int = 0,
        steps: Iterable[StepSpec] = (),
        flush_ms: int = 100,
        consumer: Mapping[str, str] | None = None,
    ) -> Running:
        identity = TaskId(self.name, task)
        make: Any = lambda: KeepingTask(self.store)  # noqa: E731
        errors = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "200"}
        spec = TaskSpec(
            id=identity,
            task_class=make,
            type=ConnectorType.SINK,
            version=None,
            config={},
            connector_config={"topics": self.topic},
            chain=ChainSpec(identity, ConnectorType.SINK, STRING, STRING, HEADERS, tuple(steps), errors),
            target_state=TargetState.STARTED,
            consumer={
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": "200",
                "fetch.max.wait.ms": "20",  # a consumer that was sent elsewhere waits for its last fetch first
                **(consumer or {}),
            },
            flush_interval_ms=flush_ms,
        )
        desk = Desk()
        running = Running(self.worker.runner.start(spec, desk), desk, self.worker.runner, spec)
        self._started.append(running)
        running.await_event("running", seconds=180)  # the first one waits for Spark
        return running

    def check(self, first: int = 0) -> None:
        """Each record from `first` on, once, in its order; and the group has heard of it."""
        expected = {where: [str(number) for number in range(first, self._sent)] for where in self.wheres}
        self.await_(lambda: self.store.all_kept() >= sum(map(len, expected.values())), "all records")
        assert self.store.kept == expected
        self.await_(lambda: self.committed() == dict.fromkeys(self.wheres, self._sent), "the group's offsets")

    def await_(self, condition: Callable[[], object], what: str) -> None:
        """On a busy machine too; but not when a task has failed."""

        def there() -> object:
            assert not any(each.desk.trace for each in self._started), [each.desk.trace for each in self._started]
            return condition()

        await_(there, what, 120)

    def end(self) -> None:
        for each in self._started:
            ended = threading.Event()
            each.thread.when_ended(ended.set)
            each.thread.cancel()
            assert ended.wait(30)
