"""Tolerance: the one place where a failed operation on a record is dealt with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from headgate.api import ConnectError, SourceRecord

T = TypeVar("T")

Consumed = tuple[Any, ...]
"""A record as it came from Kafka; the first three are topic, partition and offset, where known."""


class Stage(Enum):
    """What was done to the record."""

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"


class ToleranceExceeded(ConnectError):
    """A record failed, and the configuration does not allow to set it aside: the task fails with this."""

    def __init__(self, stage: Stage, plugin: str, record: str, cause: str) -> None:
        super().__init__(stage, plugin, record, cause)
        self.stage = stage
        self.plugin = plugin
        self.record = record
        self.cause = cause
        """The error as text: `__cause__` does not survive pickling."""

    def __str__(self) -> str:
        return (
            f"Tolerance exceeded in error handler: stage '{self.stage.value}' with class '{self.plugin}', "
            f"where {self.record}: {self.cause}"
        )


def attempt(stage: Stage, cls: type, fn: Callable[..., T], record: Consumed | SourceRecord, *args: Any) -> T:
    """What `fn(*args)` returns. Raises ToleranceExceeded, caused by what `fn` raised, naming the record."""
    try:
        return fn(*args)
    except Exception as error:
        plugin = f"{cls.__module__}.{cls.__qualname__}"
        raise ToleranceExceeded(stage, plugin, describe(record), f"{type(error).__name__}: {error}") from error


def describe(record: Consumed | SourceRecord) -> str:
    if isinstance(record, SourceRecord):
        return (
            f"source record is {{topic='{record.topic}', sourcePartition={_shown(record.source_partition)}, "
            f"sourceOffset={_shown(record.source_offset)}}}"
        )
    topic, partition, offset = record[:3]
    return f"consumed record is {{topic='{topic}', partition={partition}, offset={offset}}}"


def _shown(position: Mapping[str, Any] | None) -> str:
    return "null" if position is None else f"{{{', '.join(f'{name}={value}' for name, value in position.items())}}}"
