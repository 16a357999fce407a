"""Converter: bytes <-> (schema, value), for keys, values and headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from headgate.api.config import ConfigDef
from headgate.api.plugin import Plugin
from headgate.api.schema import Schema


class Converter(Plugin, ABC):
    """Built on executors, once per Python worker and configuration; never called from two threads at once."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Called once, before anything else; the prefix (`value.converter.`) is stripped from the keys."""
        self.settings = self.config.parse(config)

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes for Kafka; None is a tombstone. Raises DataError."""

    @abstractmethod
    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """The schema (None: schemaless) and the value. Raises DataError."""


class HeaderConverter(Plugin, ABC):
    """The same for the values of headers."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:
        self.settings = self.config.parse(config)

    @abstractmethod
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None: ...

    @abstractmethod
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> tuple[Schema | None, Any]: ...
