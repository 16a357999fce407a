"""DeadLetter: a failed record as it is kept in the dead letter queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headgate.api import ConfigError, ConnectError, DataError, RetriableError, UnsupportedOperation
from headgate.log import masked
from headgate.model import TaskId
from headgate.pipeline.failure import ConsumedRecord, Failure, RawHeaders, class_name

_PREFIX: Final = "__connect.errors."
_APACHES: Final = {
    class_name(error): name
    for error, name in (
        (ConnectError, "org.apache.kafka.connect.errors.ConnectException"),
        (DataError, "org.apache.kafka.connect.errors.DataException"),
        (RetriableError, "org.apache.kafka.connect.errors.RetriableException"),
        (ConfigError, "org.apache.kafka.common.config.ConfigException"),
        (UnsupportedOperation, "java.lang.UnsupportedOperationException"),
    )
}
"""What Apache's workers name for the same: whoever reads dead letters may look for it."""


class DeadLetter(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: RawHeaders
    timestamp: int | None

    @classmethod
    def of(cls, failure: Failure, task: TaskId, with_context: bool) -> DeadLetter:
        """The record as it was, and what went wrong as headers behind its own."""
        record = failure.record
        context = _context(failure, task) if with_context else ()
        return cls(record.key, record.value, (*record.headers, *context), record.timestamp)


def _context(failure: Failure, task: TaskId) -> RawHeaders:
    """Apache's names in Apache's order. Sources, which have no dead letters there, say where the record came from."""
    record = failure.record
    named: list[tuple[str, str | None]] = [("topic", record.topic)]
    if isinstance(record, ConsumedRecord):
        named += [("partition", str(record.partition)), ("offset", str(record.offset))]
    else:
        named += [("source.partition", _json(record.source_partition)), ("source.offset", _json(record.source_offset))]
    named += [
        ("connector.name", task.connector),
        ("task.id", str(task.task)),
        ("stage", failure.stage.value),
        ("class.name", failure.plugin),
        ("exception.class.name", _APACHES.get(failure.error, failure.error)),
        ("exception.message", None if failure.message is None else masked(failure.message)),
        ("exception.stacktrace", masked("".join(failure.trace))),
    ]
    # A lone surrogate, which Python may have in a text, has no UTF-8: it is shown by its number.
    return tuple(
        (_PREFIX + name, None if text is None else text.encode(errors="backslashreplace")) for name, text in named
    )


def _json(position: Mapping[str, Any] | None) -> str:
    return json.dumps(position, separators=(",", ":"), ensure_ascii=False, default=str)
