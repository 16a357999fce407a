"""SparkSink: records as rows, written with Spark to files, Delta or Iceberg tables, or whatever else it can write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from headgate.api import ConfigValue, Reach, SinkConnector, TopicPartition
from headgate.connectors.spark.sink.config import CONFIG, HEADERS, TABLES, SparkSinkConfig, reaches, validated
from headgate.connectors.spark.sink.exact_files import ledger_of
from headgate.connectors.spark.sink.target import move_offsets
from headgate.connectors.spark.sink.task import HeadersSparkSinkTask, SparkSinkTask, target_of


class SparkSink(SinkConnector):
    """Writes records as rows, with Spark. One task is enough: Spark is parallel inside."""

    aliases = ("headgate.connectors.SparkSink", "headgate.SparkSink")
    config = CONFIG
    task_class: ClassVar[type[SparkSinkTask]] = SparkSinkTask

    @classmethod
    def task_class_for(cls, config: Mapping[str, str]) -> type[SparkSinkTask]:
        return HeadersSparkSinkTask if HEADERS in SparkSinkConfig.of(config).metadata else cls.task_class

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return reaches(config)

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def start(self, config: Mapping[str, str]) -> None:
        self._task_config = {"name": self.context.name, **config}
        SparkSinkConfig.of(self._task_config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config]

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Those that the target keeps are changed with the group's."""
        settings = SparkSinkConfig.of(config)
        if settings.exactly_once and settings.format in TABLES:
            move_offsets(target_of(settings), self.context.spark(), offsets)
        elif settings.exactly_once:
            local = settings.location is not None and settings.location.local is not None
            ledger_of(settings, None if local else self.context.spark()).move(offsets)
        return True
