"""Datagen: records out of nothing but a schema and a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headgate.api import ConfigValue, ExactlyOnceSupport, SourceConnector
from headgate.connectors.datagen.config import CONFIG, DatagenConfig, validated
from headgate.connectors.datagen.slices import SLICES, check_change
from headgate.connectors.datagen.task import TASK, TASKS, DatagenTask


class Datagen(SourceConnector):
    """Makes believable records of a schema, at a rate, the same ones for the same seed."""

    aliases = ("headgate.connectors.Datagen", "io.confluent.kafka.connect.datagen.DatagenConnector")
    config = CONFIG
    task_class: ClassVar[type[DatagenTask]] = DatagenTask

    def start(self, config: Mapping[str, str]) -> None:
        DatagenConfig.of(config)  # a wrong configuration fails here, not in every task
        self._raw = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        tasks = min(max_tasks, SLICES)
        return [{**self._raw, TASK: str(task), TASKS: str(tasks)} for task in range(tasks)]

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        for partition, offset in offsets:
            if offset is not None:  # anything may be reset: what is of no use must be possible to clean up
                check_change(partition, offset)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED
