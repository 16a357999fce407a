"""The source offsets of a task: read when it starts, stored behind its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from headgate.model import Offset, Partition, TaskSpec


class TaskOffsets(Protocol):
    """Of one task's connector, for as long as the task lives. May block."""

    @property
    def topic(self) -> str:
        """Where offsets are written in a transaction. Asked for by tasks with transactions only, as the next two."""

    def entries(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[bytes, bytes | None]]:
        """The records of that topic that say so. Raises when an offset cannot be written."""

    def copy(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """They were committed with a transaction: wherever else they shall be, as well as it goes."""

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        """As they were committed when the call began."""

    def put(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None: ...

    def close(self) -> None:
        """The task has ended."""


OffsetsFor = Callable[[TaskSpec], TaskOffsets]
"""Called from the task's thread, each time it starts. May block."""


class Store(Protocol):
    """Of all tasks."""

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]: ...

    def put(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None: ...


class TopicStore(Store, Protocol):
    @property
    def topic(self) -> str: ...

    def entries(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[bytes, bytes | None]]: ...


class Shared:
    """Fits TaskOffsets: a store that does not end with one of its tasks. For transactions it must be a TopicStore."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def topic(self) -> str:
        return cast(TopicStore, self._store).topic

    def entries(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[bytes, bytes | None]]:
        return cast(TopicStore, self._store).entries(connector, offsets)

    def copy(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """There is no other place."""

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        return self._store.get(connector, partitions)

    def put(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None:
        self._store.put(connector, offsets)

    def close(self) -> None:
        """Others use it, too."""


def shared(store: Store) -> OffsetsFor:
    """The same store for all tasks."""
    offsets = Shared(store)
    return lambda _: offsets
