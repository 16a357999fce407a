"""What a sink task gets to talk to the runtime with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.api.reach import Reach
from headgate.model import TopicPartition
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.reporter import ErrantReporter


@dataclass(eq=False)
class RuntimeSinkContext:
    """Fits `headgate.api.SinkTaskContext`. Wishes are noted, and granted by the loop between two batches."""

    config: Mapping[str, str]
    _assigned: Callable[[], frozenset[TopicPartition]]
    session: BorrowedSession
    reporter: ErrantReporter | None = None
    require: Callable[[Reach], None] = lambda reach: None
    paused: frozenset[TopicPartition] = frozenset()
    _seeks: dict[TopicPartition, int] = field(default_factory=dict)
    _timeout_s: float | None = None
    _commit_requested: bool = False
    _resumed: bool = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._assigned()

    def offset(self, partition: TopicPartition, offset: int) -> None:
        self._seeks[partition] = offset

    def timeout(self, milliseconds: int) -> None:
        self._timeout_s = milliseconds / 1000

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused -= set(partitions)
        self._resumed = True

    def request_commit(self) -> None:
        self._commit_requested = True

    def spark(self) -> Any:
        return self.session.get()

    # --- for the loop -------------------------------------------------------------------------------------------------

    def take_timeout(self, otherwise: float) -> float:
        seconds, self._timeout_s = self._timeout_s, None
        return otherwise if seconds is None else seconds

    def take_commit_request(self) -> bool:
        requested, self._commit_requested = self._commit_requested, False
        return requested

    def take_resumed(self) -> bool:
        """Whether partitions were resumed since this was asked last."""
        resumed, self._resumed = self._resumed, False
        return resumed

    @property
    def wished(self) -> dict[TopicPartition, int]:
        """Where the task wants to go on instead, of the partitions that it has."""
        held = self._assigned() if self._seeks else ()
        return {where: offset for where, offset in self._seeks.items() if where in held}

    def take_seeks(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """What was wished for these partitions, or for all that the task has; others are forgotten."""
        wished = self.wished
        taken = {where: offset for where, offset in wished.items() if partitions is None or where in partitions}
        self._seeks = {where: offset for where, offset in wished.items() if where not in taken}
        return taken
