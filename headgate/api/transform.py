"""Transform and Predicate: plain Python on one record; the chain loops, so the author need not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

from headgate.api.config import ConfigDef
from headgate.api.plugin import Plugin
from headgate.api.record import Record

R = TypeVar("R", bound=Record)


class Transform(Plugin, ABC, Generic[R]):
    """Record in, record or nothing out. No side effects: Spark may run a batch again."""

    config: ClassVar[ConfigDef] = ConfigDef()

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

    def configure(self, config: Mapping[str, str]) -> None:
        self.settings = self.config.parse(config)

    @abstractmethod
    def test(self, record: R) -> bool: ...

    def close(self) -> None:
        """Called when the chain is thrown away."""
