"""What the runtime offers to a connector and its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from headgate.api.record import SinkRecord
from headgate.model import TopicPartition

__all__ = [
    "ConnectorContext",
    "ErrantRecordReporter",
    "OffsetReader",
    "SinkTaskContext",
    "SourceConnectorContext",
    "SourceTaskContext",
    "TopicPartition",
]


class OffsetReader(Protocol):
    """Reads the offsets that this connector's tasks have committed."""

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Where to go on in this source partition; None when nothing was ever committed."""

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]: ...


class ConnectorContext(Protocol):
    """May be used from any thread of the connector."""

    @property
    def name(self) -> str: ...

    def request_task_reconfiguration(self) -> None:
        """Ask the runtime to call `task_configs` again; nothing happens if the answer is the same as before."""

    def raise_error(self, error: Exception) -> None:
        """The connector cannot go on: it becomes FAILED with this error. Its tasks are not touched."""


class SourceConnectorContext(ConnectorContext, Protocol):
    @property
    def offset_reader(self) -> OffsetReader: ...


class SourceTaskContext(Protocol):
    @property
    def config(self) -> Mapping[str, str]:
        """The task configuration."""

    @property
    def offset_reader(self) -> OffsetReader: ...


class ErrantRecordReporter(Protocol):
    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Treat this record as failed (`errors.tolerance`); its offset is not committed before the future is done."""


class SinkTaskContext(Protocol):
    @property
    def config(self) -> Mapping[str, str]: ...

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset instead of the group's: for sinks that keep offsets in their own system."""

    def timeout(self, milliseconds: int) -> None:
        """How long to wait before the batch is put again after RetriableError."""

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Commit offsets at the next opportunity instead of at the interval."""

    @property
    def reporter(self) -> ErrantRecordReporter | None:
        """None unless the connector's configuration allows failed records to be set aside."""
