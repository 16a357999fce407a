"""Mirror: copies topics, and finds new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from headgate.api import ConfigValue, ConnectError, ExactlyOnceSupport, SourceConnector
from headgate.api.reach import Reach, client_reaches
from headgate.connectors.mirror.cluster import Cluster
from headgate.connectors.mirror.config import (
    ALIAS,
    CONFIG,
    FROM_JSON,
    GROUP,
    JSON,
    SOURCE_PREFIX,
    MirrorConfig,
    validated,
)
from headgate.connectors.mirror.lookout import Lookout
from headgate.connectors.mirror.positions import check_change, dealt, written
from headgate.connectors.mirror.task import ONE_CLUSTER, PARTITIONS, MirrorTask
from headgate.kafka.settings import ClientConfigError

_FIRST_LOOK_S: Final = 10.0
_STOP_S: Final = 4.0


class Mirror(SourceConnector):
    """Copies topics of a Kafka cluster into another one, or into other topics of the same."""

    aliases = ("headgate.connectors.Mirror",)
    config = CONFIG
    task_class: ClassVar[type[MirrorTask]] = MirrorTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return client_reaches(config, SOURCE_PREFIX)

    def __init__(self) -> None:
        self._lookout: Lookout | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._raw = dict(config)
        parsed = MirrorConfig.of({"name": self.context.name, **config})
        self._group = parsed.group
        known = self.context.cluster
        try:
            source = Cluster(parsed.clients(known))
            target = Cluster(known) if known.get("bootstrap.servers") else None
        except ClientConfigError as error:
            raise ConnectError(str(error)) from error
        self._lookout = Lookout(
            parsed, source, target, self.context.request_task_reconfiguration, self.context.raise_error
        )
        self._lookout.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """None while the cluster that is read does not answer: tasks could not read it either."""
        assert self._lookout is not None
        seen = self._lookout.take(_FIRST_LOOK_S)
        if seen is None:
            return []
        one = str(seen.one_cluster).lower()
        return [
            {**self._raw, GROUP: self._group, ONE_CLUSTER: one, PARTITIONS: written(partitions)}
            for partitions in dealt(seen.partitions, max_tasks)
        ]

    def stop(self) -> None:
        lookout, self._lookout = self._lookout, None
        if lookout is not None:
            lookout.stop(_STOP_S)

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        alias = CONFIG[ALIAS].parse(config.get(ALIAS, CONFIG[ALIAS].default))
        for partition, offset in offsets:
            if offset is not None:  # anything may be reset: what is of no use must be possible to clean up
                check_change(alias, partition, offset)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def leading_transforms(cls, config: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [(name, {}) for key, name in FROM_JSON.items() if config.get(key, "").strip() == JSON]
