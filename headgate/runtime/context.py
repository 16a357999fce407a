"""What a connector gets to talk to the runtime with. Its calls may come from any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from headgate.model import Config
from headgate.runtime.ports import OffsetStore

Opened = Callable[[], AbstractContextManager[OffsetStore]]


class StoreOffsetReader:
    """Fits `headgate.api.OffsetReader`."""

    def __init__(self, opened: Opened, connector: str) -> None:
        self._opened = opened
        self._connector = connector

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        with self._opened() as store:
            return store.get(self._connector, partitions)


class RuntimeConnectorContext:
    """Fits `headgate.api.SourceConnectorContext`."""

    def __init__(
        self,
        name: str,
        offsets: Opened,
        reconfigure: Callable[[], None],
        fail: Callable[[Exception], None],
        cluster: Callable[[], Config],
    ) -> None:
        self.name = name
        self._cluster = cluster
        self.offset_reader = StoreOffsetReader(offsets, name)
        self._reconfigure = reconfigure
        self._fail = fail

    @property
    def cluster(self) -> Config:
        return self._cluster()

    def request_task_reconfiguration(self) -> None:
        self._reconfigure()

    def raise_error(self, error: Exception) -> None:
        self._fail(error)
