"""OffsetPolicy: where to begin with a partition that was never read, or that does not reach to where it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from headgate.api import ConfigError

_TIMESTAMP: Final = "timestamp:"


class Begin(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class OffsetPolicy:
    begin: Begin
    timestamp: int = 0
    """Milliseconds since the epoch."""

    @classmethod
    def parse(cls, text: str) -> OffsetPolicy:
        """Raises ValueError, with what is wrong."""
        if text.startswith(_TIMESTAMP):
            return cls(Begin.TIMESTAMP, _milliseconds(text.removeprefix(_TIMESTAMP).strip()))
        if text not in ("earliest", "latest", "committed"):
            raise ValueError("It must be earliest, latest, committed or timestamp:<instant>")
        return cls(Begin(text))

    def start(self, wanted: int | None, low: int, high: int) -> int:
        """The offset at which a partition is begun that has those from `low` to before `high`. `wanted` is what the
        group or the clock says; None: nothing."""
        if self.begin is Begin.LATEST:
            return high
        if self.begin is Begin.EARLIEST:
            return low
        if wanted is None:  # a group that has nothing yet; a moment after the last record
            return high if self.begin is Begin.TIMESTAMP else low
        return min(max(wanted, low), high)

    def __str__(self) -> str:
        return f"{_TIMESTAMP}{self.timestamp}" if self.begin is Begin.TIMESTAMP else self.begin.value


def valid_policy(name: str, value: Any) -> None:
    """A validator of `offset.policy`."""
    try:
        OffsetPolicy.parse(value or "")
    except ValueError as error:
        raise ConfigError.invalid(name, value, str(error)) from None


def _milliseconds(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "After timestamp: comes a number of milliseconds, or an instant such as 2030-01-31T12:00:00Z"
        ) from None
    if instant.tzinfo is None:
        raise ValueError("An instant says its zone: append Z for UTC, or an offset such as +01:00")
    found = round(instant.timestamp() * 1000)
    if found < 0:
        raise ValueError("An instant before 1970 is none of Kafka's")
    return found
