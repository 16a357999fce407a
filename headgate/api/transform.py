"""Transform and Predicate: plain Python on one record; the chain loops, so the author need not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final, Generic, TypeVar

from headgate.api.config import ConfigDef
from headgate.api.plugin import Plugin
from headgate.api.record import Record

R = TypeVar("R", bound=Record)

EVERYTHING: Final = frozenset(
    {"topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"}
)
"""The parts of a record."""


class Transform(Plugin, ABC, Generic[R]):
    """Record in, record or nothing out. No side effects: Spark may run a batch again."""

    config: ClassVar[ConfigDef] = ConfigDef()
    uses: frozenset[str] = EVERYTHING
    """The parts of a record that `apply` looks at, known after `configure`. In a sink, what nobody uses is not fetched:
    it is None, or no headers, whatever Kafka has. Topic, partition and offset are always there."""
    takes_predicate: ClassVar[bool] = True
    """Whether a predicate may decide to which records it is applied."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Called once, before `apply`; the prefix (`transforms.<alias>.`) is stripped from the keys."""
        self.settings = self.config.parse(config)

    @abstractmethod
    def apply(self, record: R) -> R | None:
        """The changed record, the same record, or None to drop it. Raises DataError."""

    def close(self) -> None:
        """Called when the chain is thrown away."""


class Predicate(Plugin, ABC, Generic[R]):
    """Decides whether the transform that names it is applied to a record."""

    config: ClassVar[ConfigDef] = ConfigDef()
    uses: frozenset[str] = EVERYTHING
    """The parts of a record that `test` looks at, as of a Transform."""

    def configure(self, config: Mapping[str, str]) -> None:
        self.settings = self.config.parse(config)

    @abstractmethod
    def test(self, record: R) -> bool: ...

    def close(self) -> None:
        """Called when the chain is thrown away."""
