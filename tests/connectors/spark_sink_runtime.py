"""What the runtime promises a SparkSinkTask, played with plain values; and targets to look into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

import pyarrow as pa

from headgate.api import Schema, TopicPartition
from headgate.api.frame import arrow_type
from headgate.api.testing import MemoryReporter, MemorySinkTaskContext
from headgate.connectors.spark.sink.rows import OFFSET, PARTITION, TOPIC
from headgate.connectors.spark.sink.target import Opened, RowBatch, Target
from headgate.connectors.spark.sink.task import SparkSinkTask
from headgate.connectors.spark.sink.writing import Begin

WHERE = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)


def table(
    values: Sequence[Any],
    first: int = 0,
    where: TopicPartition = WHERE,
    keys: Sequence[Any] | None = None,
    schema: Schema | None = None,
) -> pa.Table:
    """Records of one partition, from this offset on."""
    count = len(values)
    return pa.table(
        {
            "timestamp": pa.array([1_700_000_000_000 + first + number for number in range(count)], pa.int64()),
            "key": pa.array([None] * count if keys is None else keys),
            "value": pa.array(values, None if schema is None else arrow_type(schema)),
            TOPIC: pa.array([where.topic] * count, pa.string()),
            PARTITION: pa.array([where.partition] * count, pa.int32()),
            OFFSET: pa.array(range(first, first + count), pa.int64()),
        }
    )


class MemoryTarget:
    """Keeps rows, and offsets if it shall; `before` and `after` are called around that, and may raise."""

    def __init__(self, schema: pa.Schema | None = None, exact: bool = False) -> None:
        self.schema, self.exact = schema, exact
        self.offsets: Mapping[TopicPartition, int] = {}
        self.batches: list[RowBatch] = []
        self.opened = 0
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def open(self, session: object) -> Opened:
        self.opened += 1
        return Opened(self.schema, self.offsets if self.exact else {})

    def write(self, session: object, batch: RowBatch) -> None:
        self.before()
        self.batches.append(batch)
        self.schema, self.offsets = batch.rows.schema, batch.offsets
        self.after()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in self.batches for row in batch.rows.to_pylist()]


class Delayed:
    """What is begun ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], None], Future[None]]] = []

    def __call__(self, session: object, work: Callable[[], None]) -> Future[None]:
        self.begun.append((work, Future()))
        return self.begun[-1][1]

    def end(self) -> None:
        work, ended = self.begun.pop(0)
        try:
            work()
        except Exception as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)


def at_once(session: object, work: Callable[[], None]) -> Future[None]:
    """What is begun has ended."""
    delayed = Delayed()
    ended = delayed(session, work)
    delayed.end()
    return ended


class SinkTrial:
    """One task with one partition, or more, and a clock."""

    def __init__(
        self, config: Mapping[str, str], target: Target | None = None, reporter: MemoryReporter | None = None,
        session: Any = None, begin: Begin | None = None,
    ) -> None:  # fmt: skip
        self.now = 0.0
        self.task = SparkSinkTask(lambda: self.now, begin or at_once)
        full = {"name": "sink", **config}
        # A target that keeps all in memory does nothing with its session.
        self.context = MemorySinkTaskContext(full, [WHERE, OTHER], reporter, cast(Any, session or object()))
        self.task.context = self.context
        self.task.start(full)
        if target is not None:
            self.task._target = target

    def put(self, *given: Any, **more: Any) -> None:
        self.task.put(table(*given, **more))

    def commit(self, *ends: int) -> Mapping[TopicPartition, int]:
        return self.task.pre_commit(dict(zip((WHERE, OTHER), ends, strict=False)))
