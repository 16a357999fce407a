"""HttpSink: sends records to a REST API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from headgate.api import ConfigValue, SinkConnector, TopicPartition
from headgate.api.reach import Reach
from headgate.connectors.http import client_config
from headgate.connectors.http.sink_config import CONFIG, HttpSinkConfig, validated
from headgate.connectors.http.sink_task import HttpSinkTask


class HttpSink(SinkConnector):
    """Sends records to a REST API, each alone or many together."""

    aliases = ("headgate.connectors.HttpSink",)
    config = CONFIG
    task_class: ClassVar[type[HttpSinkTask]] = HttpSinkTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return client_config.reaches(config)

    def start(self, config: Mapping[str, str]) -> None:
        HttpSinkConfig.of(config)  # a wrong configuration fails here, not in every task
        self._task_config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config] * max_tasks

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """The API keeps no offsets: any are fine."""
        return True
