"""What the runtime offers to a connector and its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from headgate.api.reach import Reach
from headgate.api.record import SinkRecord, SourceRecord
from headgate.model import TopicPartition as TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class OffsetReader(Protocol):
    """Reads the offsets that this connector's tasks have committed."""

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Where to go on in this source partition; None when nothing was ever committed."""

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]: ...


class ConnectorContext(Protocol):
    """May be used from any thread of the connector."""

    @property
    def name(self) -> str: ...

    @property
    def cluster(self) -> Mapping[str, str]:
        """What any Kafka client needs to reach the cluster that records go to, by Apache's names: bootstrap.servers,
        security. Of sources; may hold passwords."""

    def spark(self) -> SparkSession:
        """The worker's session; waits for it. There in `alter_offsets` too, as `name` is."""

    def request_task_reconfiguration(self) -> None:
        """Ask the runtime to call `task_configs` again; nothing happens if the answer is the same as before."""

    def raise_error(self, error: Exception) -> None:
        """The connector cannot go on: it becomes FAILED with this error. Its tasks are not touched."""


class SourceConnectorContext(ConnectorContext, Protocol):
    @property
    def offset_reader(self) -> OffsetReader: ...


class TransactionContext(Protocol):
    """Where a source task says how its transactions end (KIP-618). May be used from any thread.

    With a record, the very object that `poll` returns: that record is the last of its transaction. Without: the last
    one that `poll` returns next is, also if that is an empty list. What was polled and not ended stays open. A task
    that asks for both at the same place fails."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None: ...

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """The records are dropped; their offsets are stored all the same, so that they do not come again."""


class SourceTaskContext(Protocol):
    @property
    def config(self) -> Mapping[str, str]:
        """The task configuration."""

    @property
    def cluster(self) -> Mapping[str, str]:
        """As in ConnectorContext."""

    @property
    def offset_reader(self) -> OffsetReader: ...

    @property
    def transaction_context(self) -> TransactionContext | None:
        """None unless records are delivered exactly once and `transaction.boundary` is `connector`."""

    @property
    def takes_frames(self) -> bool:
        """Whether `poll` may return a SourceFrame: not with exactly-once delivery, nor where the worker has to see each
        record, for a statement, a dead letter, a pause before another try, or a topic to be created."""

    def require(self, reach: Reach, /) -> None:
        """To be called right before something is opened that `reaches` names: a link may lead elsewhere by then.
        Raises ConfigError where the worker does not allow it."""

    def spark(self) -> SparkSession:
        """The worker's session; waits for it. Jobs that this thread starts are the task's, and a stop cancels them.
        When the JVM behind it dies, whatever was under way raises: let it out, and you are called again when there is a
        new one."""


class ErrantRecordReporter(Protocol):
    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Treat this record as failed (`errors.tolerance`); its offset is not committed before the future is done."""


class SinkTaskContext(Protocol):
    @property
    def config(self) -> Mapping[str, str]: ...

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset instead of the group's: for sinks that keep offsets in their own system. In `open`,
        reading begins there; later, it is the next record of the partition that is put."""

    def timeout(self, milliseconds: int) -> None:
        """How long to wait before the batch is put again after RetriableError."""

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Commit offsets at the next opportunity instead of at the interval."""

    @property
    def reporter(self) -> ErrantRecordReporter | None:
        """None unless the connector's configuration allows failed records to be set aside."""

    def require(self, reach: Reach, /) -> None:
        """As in SourceTaskContext."""

    def spark(self) -> SparkSession:
        """As in SourceTaskContext."""
