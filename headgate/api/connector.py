"""SourceConnector and SinkConnector: task configs, validation, alter_offsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from headgate.api.config import ConfigDef, ConfigValue
from headgate.api.context import ConnectorContext, SourceConnectorContext, TopicPartition
from headgate.api.plugin import Plugin
from headgate.api.task import Task


class Connector(Plugin, ABC):
    """Splits the work into tasks. Its methods are never called from two threads at once and may block for seconds."""

    config: ClassVar[ConfigDef] = ConfigDef()
    task_class: ClassVar[type[Task]]
    context: ConnectorContext
    """Set before `start`."""

    @classmethod
    def task_class_for(cls, config: Mapping[str, str]) -> type[Task]:
        """The class of the tasks of a connector with this configuration, which is valid; `task_class` as a rule."""
        return cls.task_class

    def start(self, config: Mapping[str, str]) -> None:
        """Called when the connector shall run, with its configuration."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most `max_tasks` task configurations; empty means nothing to do yet.

        Called by the owning worker after `start()` and after each request to reconfigure."""

    def stop(self) -> None:
        """Called when the connector shall not run any more; it may be started again later."""

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        """What is wrong with this configuration; override to check keys against each other. Called before `start`."""
        return self.config.validate(config)


class ExactlyOnceSupport(Enum):
    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class SourceConnector(Connector):
    context: SourceConnectorContext

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        """A user asks to change these partitions' offsets; None resets one. Called before anything is written, on an
        instance that was not started, whose context has `name` and `spark` only.

        True: the offsets are fine, and changed wherever else this connector keeps them. False, the default: the
        connector does not know. UnsupportedOperation: never possible. ConnectError: not these offsets."""
        return False

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """Whether exactly-once delivery holds with this configuration; None when the author has not said."""
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        return False

    @classmethod
    def leading_transforms(cls, config: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Transforms that records go through before those of the user, by the names that a user would give, each with
        its configuration; none as a rule. They run on the executors, and what fails there is treated as the user's
        `errors.*` keys say. Not for work that `poll` could not leave to them."""
        return ()


class SinkConnector(Connector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """As for sources, with the offsets of the consumer group."""
        return False
