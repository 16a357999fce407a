"""In-memory doubles of what the runtime offers to connectors and tasks. They remember what was asked of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headgate.api.context import TopicPartition
from headgate.api.reach import Reach
from headgate.api.record import SinkRecord, SourceRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class MemoryOffsets:
    """An OffsetReader, and where a test commits the offsets to be read."""

    def __init__(self, committed: Iterable[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = ()) -> None:
        self._offsets: dict[str, Mapping[str, Any]] = {}
        for partition, offset in committed:
            self.commit(partition, offset)

    def commit(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        """None forgets the partition."""
        key = json.dumps(partition, sort_keys=True)
        if offset is None:
            self._offsets.pop(key, None)
        else:
            # Through JSON, as in Kafka: what does not survive that must not survive here.
            self._offsets[key] = json.loads(json.dumps(offset))

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._offsets.get(json.dumps(partition, sort_keys=True))

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]


class MemoryConnectorContext:
    """A ConnectorContext for sources and sinks."""

    def __init__(
        self,
        name: str = "connector",
        offset_reader: MemoryOffsets | None = None,
        cluster: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self.name = name
        self.session = session
        self.cluster = dict(cluster or {})
        self.offset_reader = offset_reader or MemoryOffsets()
        self.reconfigurations = 0
        self.errors: list[Exception] = []

    def spark(self) -> SparkSession:
        assert self.session is not None, "a connector that uses Spark needs a context with a session"
        return self.session

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        self.errors.append(error)


class MemoryTransactionContext:
    """A TransactionContext. None among what was asked for stands for the end of the next batch."""

    def __init__(self) -> None:
        self.commits: list[SourceRecord | None] = []
        self.aborts: list[SourceRecord | None] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self.commits.append(record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self.aborts.append(record)


class MemorySourceTaskContext:
    def __init__(
        self,
        config: Mapping[str, str],
        offset_reader: MemoryOffsets | None = None,
        transaction_context: MemoryTransactionContext | None = None,
        cluster: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
        takes_frames: bool = False,
    ) -> None:
        self.config = config
        self.cluster = dict(cluster or {})
        self.offset_reader = offset_reader or MemoryOffsets()
        self.transaction_context = transaction_context
        self.takes_frames = takes_frames
        self.required: list[Reach] = []
        self.session = session

    def require(self, reach: Reach) -> None:
        self.required.append(reach)

    def spark(self) -> SparkSession:
        assert self.session is not None, "a task that uses Spark needs a context with a session"
        return self.session


class MemoryReporter:
    """An ErrantRecordReporter that sets everything aside at once."""

    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, Exception]] = []

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        self.reported.append((record, error))
        done: Future[None] = Future()
        done.set_result(None)
        return done


class MemorySinkTaskContext:
    """`rewound`, `paused`, `timeouts`, `commit_requests` and `required` hold what the task asked for."""

    def __init__(
        self,
        config: Mapping[str, str],
        assignment: Iterable[TopicPartition] = (),
        reporter: MemoryReporter | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self.config = config
        self.session = session
        self.assignment = frozenset(assignment)
        self.reporter = reporter
        self.rewound: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.timeouts: list[int] = []
        self.commit_requests = 0
        self.required: list[Reach] = []

    def offset(self, partition: TopicPartition, offset: int) -> None:
        self.rewound[partition] = offset

    def timeout(self, milliseconds: int) -> None:
        self.timeouts.append(milliseconds)

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused.difference_update(partitions)

    def request_commit(self) -> None:
        self.commit_requests += 1

    def require(self, reach: Reach) -> None:
        self.required.append(reach)

    def spark(self) -> SparkSession:
        assert self.session is not None, "a task that uses Spark needs a context with a session"
        return self.session
