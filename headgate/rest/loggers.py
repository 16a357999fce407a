"""Loggers: Python's loggers by the levels and rules of Kafka Connect's logging API."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

ROOT: Final = "root"

# From the highest down. Python has no OFF and no ALL: beyond its last level, and as low as a level can be set.
LEVELS: Final = {"OFF": 60, "FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5, "ALL": 1}
_PYTHON_WORDS: Final = {"CRITICAL": 50, "WARNING": 30}


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    level: str
    last_modified: int | None
    """Epoch milliseconds of the last change through this class."""


class UnknownLevel(ValueError):
    pass


@dataclass(eq=False)
class Loggers:
    """All loggers of a process. `root` stands for Python's nameless one."""

    _manager: logging.Manager = logging.root.manager
    _now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _modified: dict[str, int] = field(default_factory=dict)

    def all(self) -> dict[str, LoggerLevel]:
        """Sorted by name."""
        return {name: self._level(name, logger) for name, logger in sorted(self._existing().items())}

    def get(self, name: str) -> LoggerLevel | None:
        logger = self._existing().get(_canonical(name))
        return None if logger is None else self._level(_canonical(name), logger)

    def set(self, name: str, level: str) -> list[str]:
        """Set the logger and all whose names begin with its; returns those that this changed, sorted.

        A logger that does not exist yet is made, and counts as changed. Raises UnknownLevel."""
        number = level_number(level)
        name = _canonical(name)
        before = self._existing()
        if name not in before:
            self._manager.getLogger(name)
        matching = {
            each: logger
            for each, logger in self._existing().items()
            if name == ROOT or (each.startswith(name) and each != ROOT)
        }
        # All levels are read before the first is set: children without one of their own show their parent's.
        changed = sorted(
            each for each, logger in matching.items() if each not in before or logger.getEffectiveLevel() != number
        )
        for logger in matching.values():
            logger.setLevel(number)
        self._modified.update(dict.fromkeys(changed, self._now_ms()))
        return changed

    def _existing(self) -> dict[str, logging.Logger]:
        known = self._manager.loggerDict.copy()
        found = {name: logger for name, logger in known.items() if isinstance(logger, logging.Logger)}
        return {**found, ROOT: self._manager.root}

    def _level(self, name: str, logger: logging.Logger) -> LoggerLevel:
        return LoggerLevel(level_word(logger.getEffectiveLevel()), self._modified.get(name))


def level_number(text: str) -> int:
    found = {**LEVELS, **_PYTHON_WORDS}.get(text.strip().upper())
    if found is None:
        raise UnknownLevel(text)
    return found


def level_word(number: int) -> str:
    """The word for the level, or for the next one below a level without a word."""
    return next((word for word, least in LEVELS.items() if number >= least), "ALL")


def _canonical(name: str) -> str:
    return ROOT if name.lower() == ROOT else name
