"""SparkSource: PySpark data sources, and folders of files, read by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from headgate.api import ConfigValue, ConnectError, ExactlyOnceSupport, SourceConnector, SourceTask
from headgate.api.reach import Reach, ReachKind
from headgate.connectors.spark.location import Location
from headgate.connectors.spark.source.config import CONFIG, PATH, PROVIDER, SparkSourceConfig, validated
from headgate.connectors.spark.source.folder.mark import FolderMark
from headgate.connectors.spark.source.folder.task import FolderTask
from headgate.connectors.spark.source.offset import SOURCE, StreamPosition
from headgate.connectors.spark.source.provider import parts
from headgate.connectors.spark.source.task import DataSourceTask


class SparkSource(SourceConnector):
    """Reads with Spark: what any Python data source for PySpark offers as a stream, or the new files of a folder."""

    aliases = ("headgate.connectors.SparkSource", "headgate.SparkSource")
    config = CONFIG
    task_class: ClassVar[type[SourceTask]] = DataSourceTask

    @classmethod
    def task_class_for(cls, config: Mapping[str, str]) -> type[SourceTask]:
        return FolderTask if config.get(PATH) else DataSourceTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        if (provider := config.get(PROVIDER, "")) and (module := parts(provider)[0]):
            yield Reach(ReachKind.CODE, module, PROVIDER)
        if path := config.get(PATH, "").strip():
            yield Location.of(path).reach(ReachKind.READ, PATH)

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def start(self, config: Mapping[str, str]) -> None:
        SparkSourceConfig.of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One: Spark is parallel inside, and a stream has one end."""
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """An offset says which rows are done, and the rest can be read again from it: Spark asks the same of its
        sources."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        given = SparkSourceConfig.of(config)
        expected = {SOURCE: given.provider} if given.folder is None else {PATH: given.folder.path}
        for partition, offset in offsets:
            if offset is None:  # anything may be reset: what is of no use must be possible to clean up
                continue
            if dict(partition) != expected:
                raise ConnectError(f"The partition of this connector is {expected}, not {dict(partition)}")
            if given.folder is None:
                StreamPosition.read(offset)
            else:
                FolderMark.read(offset, given.by_time)
        return True
