"""Naming: what a topic is called where it is copied to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigError

TOPIC: Final = "${topic}"
SOURCE: Final = "${source}"
_PARTS: Final = re.compile(r"(\$\{[^}]*\})")
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]*")
_LONGEST: Final = 249


def valid_format(name: str, value: Any) -> None:
    """A validator of `topic.format`."""
    if value is None:
        return
    for part in _PARTS.split(value):
        if part not in (TOPIC, SOURCE) and not _LEGAL.fullmatch(part):
            reason = f"{part!r} can be no part of a topic's name; {TOPIC} and {SOURCE} stand for names"
            raise ConfigError.invalid(name, value, reason)
    if value in ("", ".", ".."):
        raise ConfigError.invalid(name, value, "No topic can be called so")


def valid_alias(name: str, value: Any) -> None:
    """A validator of `source.alias`."""
    if not value or not _LEGAL.fullmatch(value):
        raise ConfigError.invalid(name, value, "Letters, digits, dots, hyphens and underscores, at least one of them")


@dataclass(frozen=True, slots=True)
class Naming:
    format: str
    alias: str
    """Of the cluster that is read."""

    def name(self, topic: str) -> str:
        return self.format.replace(SOURCE, self.alias).replace(TOPIC, topic)

    def keeps(self, topic: str) -> bool:
        """Whether a topic has the same name as before."""
        return self.name(topic) == topic

    def makes(self, topic: str) -> bool:
        """Whether this is a name that some topic gets here."""
        first, *rest = re.escape(self.format.replace(SOURCE, self.alias)).split(re.escape(TOPIC))
        if not rest:
            return self.name("") == topic
        return re.fullmatch(first + "(.+)" + r"\1".join(rest), topic) is not None


def too_long(name: str) -> bool:
    return len(name) > _LONGEST
