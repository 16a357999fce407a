"""The source offsets of a task: read when it starts, stored behind its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from headgate.model import Offset, Partition, TaskSpec

Change = tuple[Partition, Offset | None]
Entries = list[tuple[bytes, bytes | None]]
"""Keys and values of a topic."""


class Store(Protocol):
    """Of all tasks. May block."""

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        """As they were committed when the call began."""

    def put(self, connector: str, offsets: list[Change]) -> None: ...


class TopicStore(Store, Protocol):
    @property
    def topic(self) -> str:
        """Where offsets are written in a transaction."""

    def entries(self, connector: str, offsets: Sequence[Change]) -> Entries:
        """The records of that topic that say so. Raises when an offset cannot be written."""


class TaskOffsets(TopicStore, Protocol):
    """Of one task's connector, for as long as the task lives. `topic`, `entries` and `copy` are asked for by tasks with
    transactions only."""

    def copy(self, connector: str, offsets: Sequence[Change]) -> None:
        """They were committed with a transaction: wherever else they shall be, as well as it goes."""

    def close(self) -> None:
        """The task has ended."""


OffsetsFor = Callable[[TaskSpec], TaskOffsets]
"""Called from the task's thread, each time it starts. May block."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Fits TaskOffsets: a store that does not end with one of its tasks. For transactions it must be a TopicStore."""

    _store: Store

    @property
    def topic(self) -> str:
        return cast(TopicStore, self._store).topic

    def entries(self, connector: str, offsets: Sequence[Change]) -> Entries:
        return cast(TopicStore, self._store).entries(connector, offsets)

    def copy(self, connector: str, offsets: Sequence[Change]) -> None:
        """There is no other place."""

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        return self._store.get(connector, partitions)

    def put(self, connector: str, offsets: list[Change]) -> None:
        self._store.put(connector, offsets)

    def close(self) -> None:
        """Others use it, too."""


def shared(store: Store) -> OffsetsFor:
    """The same store for all tasks."""
    offsets = Shared(store)
    return lambda _: offsets
