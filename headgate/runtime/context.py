"""What a connector gets to talk to the runtime with. Its calls may come from any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from headgate.model import Config
from headgate.runtime.ports import OffsetStore

Opened = Callable[[], AbstractContextManager[OffsetStore]]


@dataclass(frozen=True, slots=True)
class StoreOffsetReader:
    """Fits `headgate.api.OffsetReader`."""

    opened: Opened
    connector: str

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        with self.opened() as store:
            return store.get(self.connector, partitions)


@dataclass(frozen=True, slots=True)
class OffsetsContext:
    """As much of `headgate.api.ConnectorContext` as a connector has that was not started."""

    name: str
    spark: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class RuntimeConnectorContext:
    """Fits `headgate.api.SourceConnectorContext`."""

    name: str
    offset_reader: StoreOffsetReader
    request_task_reconfiguration: Callable[[], None]
    raise_error: Callable[[Exception], None]
    spark: Callable[[], Any]
    _cluster: Callable[[], Config]

    @property
    def cluster(self) -> Config:
        return self._cluster()
