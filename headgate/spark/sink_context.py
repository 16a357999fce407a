"""What a sink task gets to talk to the runtime with."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.model import TopicPartition
from headgate.spark.partitions import Partitions
from headgate.spark.reporter import ErrantReporter


class RuntimeSinkContext:
    """Fits `headgate.api.SinkTaskContext`. Wishes are noted and granted between two batches."""

    def __init__(
        self, config: Mapping[str, str], partitions: Partitions, reporter: ErrantReporter | None = None
    ) -> None:
        self.config = config
        self.reporter = reporter
        self._partitions = partitions
        self._seeks: dict[TopicPartition, int] = {}
        self._timeout_s: float | None = None
        self._commit_requested = False
        self.paused: frozenset[TopicPartition] = frozenset()
        self._resumed: frozenset[TopicPartition] = frozenset()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._partitions.assigned

    def offset(self, partition: TopicPartition, offset: int) -> None:
        self._seeks[partition] = offset

    def timeout(self, milliseconds: int) -> None:
        self._timeout_s = milliseconds / 1000

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused -= set(partitions)
        self._resumed |= set(partitions)

    def request_commit(self) -> None:
        self._commit_requested = True

    # --- for the loop -------------------------------------------------------------------------------------------------

    def take_timeout(self, otherwise: float) -> float:
        seconds, self._timeout_s = self._timeout_s, None
        return otherwise if seconds is None else seconds

    def take_commit_request(self) -> bool:
        requested, self._commit_requested = self._commit_requested, False
        return requested

    def take_seeks(self) -> dict[TopicPartition, int]:
        held = self._partitions.assigned
        seeks, self._seeks = {where: offset for where, offset in self._seeks.items() if where in held}, {}
        return seeks

    def apply(self) -> None:
        """Grants what was wished for."""
        held = self._partitions.assigned
        seeks = self.take_seeks()
        if seeks:
            self._partitions.seek(seeks)
        if self.paused & held:
            self._partitions.pause_some(sorted(self.paused & held))
        if self._resumed:
            self._resumed = frozenset()
            self._partitions.resume(self.paused)
