"""Selection: which topics of a cluster are copied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigError, java_regex
from headgate.java.regex import compiled

_INTERNAL: Final = "__"
"""How Kafka's own topics begin."""


def valid_regexes(name: str, value: Any) -> None:
    for each in value or ():
        try:
            java_regex(name, each)
        except ConfigError as error:
            raise ConfigError.invalid(name, value, str(error)) from None


@dataclass(frozen=True, slots=True)
class Selection:
    """By names, or by a pattern; patterns are Java's and match whole names."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    exclude: tuple[str, ...] = ()

    def wants(self, topic: str) -> bool:
        if any(compiled(each).fullmatch(topic) for each in self.exclude):
            return False
        if self.pattern is None:
            return topic in self.topics
        return not topic.startswith(_INTERNAL) and compiled(self.pattern).fullmatch(topic) is not None

    def of(self, known: Iterable[str]) -> list[str]:
        return sorted(filter(self.wants, known))

    def missing(self, known: Iterable[str]) -> list[str]:
        """Topics that are named and not there."""
        return sorted({topic for topic in self.topics if self.wants(topic)} - set(known))
