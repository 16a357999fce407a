"""What records of the internal topics have in common: JSON values, and keys that name tasks."""

from __future__ import annotations

from typing import Any

from headgate.java.json import strict_loads
from headgate.model import TaskId


class MalformedRecord(ValueError):
    """Not what workers write there: ignored, but its offset counts."""


class NotJson(MalformedRecord):
    """The value is not JSON: of such a record in the config topic workers do not even count the offset."""


def value_of(record: bytes | None) -> Any:
    """None for a tombstone. Raises NotJson."""
    try:
        return None if record is None else strict_loads(record)
    except ValueError as error:
        raise NotJson(f"its value is not JSON: {error}") from error


def task_of(key: str) -> TaskId | None:
    """Of a key without its prefix; None if it does not end with the number of a task."""
    connector, dash, number = key.rpartition("-")
    return TaskId(connector, int(number)) if dash and number.isascii() and number.isdigit() else None
