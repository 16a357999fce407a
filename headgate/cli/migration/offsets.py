"""Where connectors will go on: sources by their offsets topics, sinks by the offsets of their consumer groups."""

from __future__ import annotations

from typing import Final

from headgate.cli.migration.findings import OffsetsFinding
from headgate.cli.migration.hiding import shown
from headgate.kafka.settings import ClientConfigError
from headgate.model import Config, ConnectorType
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.offsets import group_of
from headgate.storage.group_offsets import GroupOffsetsError, KafkaGroupOffsets
from headgate.storage.snapshot import OffsetTopic, SnapshotReader, UnreadableTopic

_BOOTSTRAP: Final = "bootstrap.servers"
_FAILURES: Final = 3
"""So many questions without an answer, and no more of them are asked."""


class Places:
    """Asks, and changes nothing."""

    def __init__(self, reader: SnapshotReader, shared: OffsetTopic, worker: WorkerConfig, timeout: float) -> None:
        self._reader = reader
        self._shared = shared
        self._worker = worker
        self._shared_topic = worker.raw["offset.storage.topic"].strip()
        self._groups = KafkaGroupOffsets(timeout)
        self._failures = 0

    def close(self) -> None:
        self._groups.close()

    def of(self, name: str, kind: ConnectorType, config: Config) -> OffsetsFinding:
        """`config` has its secrets in place."""
        sink = kind is ConnectorType.SINK
        where = self._group(name, config) if sink else self._topic(config)
        if self._failures >= _FAILURES:
            return OffsetsFinding(where, None, "not asked: Kafka did not answer for others")
        try:
            return OffsetsFinding(where, self._of_group(name, config) if sink else self._of_topic(name, config))
        except (GroupOffsetsError, UnreadableTopic, ClientConfigError) as error:
            self._failures += 1
            return OffsetsFinding(where, None, shown(str(error)))

    def _group(self, name: str, config: Config) -> str:
        return group_of(name, config, self._worker.prefixed("consumer."))

    def _topic(self, config: Config) -> str:
        topic, _ = task_spec.offsets_place(config, self._worker)
        return topic or self._shared_topic

    def _of_group(self, name: str, config: Config) -> int:
        return len(self._groups.read(self._admin(name, config), self._group(name, config)))

    def _of_topic(self, name: str, config: Config) -> int:
        """Of a topic of its own, and what the worker's has besides."""
        found = self._shared.partitions(name)
        topic, clients = task_spec.offsets_place(config, self._worker)
        elsewhere = clients.get(_BOOTSTRAP, self._worker.raw[_BOOTSTRAP]) != self._worker.raw[_BOOTSTRAP]
        if topic is not None and (topic != self._shared_topic or elsewhere):
            own = self._reader.offsets_of(topic, clients)
            found |= own.partitions(name) if own is not None else frozenset()
        return len(found)

    def _admin(self, name: str, config: Config) -> Config:
        made = task_spec.admin_config(name, config, self._worker)
        # Without what makes clients of the same settings different ones.
        return {key: value for key, value in made.items() if key != "client.id"}
