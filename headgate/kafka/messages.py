"""Messages of the consumer as Arrow columns, for the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from headgate.model import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}


def _timestamp(message: Any) -> int | None:
    kind, milliseconds = message.timestamp()
    return milliseconds if kind in _TYPES and milliseconds >= 0 else None  # a producer may send -1: none


def _headers(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None


# Where a method of the message is the answer, it is called without a function of ours in between.
_COLUMNS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "topic": methodcaller("topic"),
    "partition": methodcaller("partition"),
    "offset": methodcaller("offset"),
    "timestamp": _timestamp,
    "timestamp_type": lambda message: _TYPES.get(message.timestamp()[0]),
    "key": methodcaller("key"),
    "value": methodcaller("value"),
    "headers": _headers,
}


def batch_of(messages: Sequence[Any], needed: frozenset[str]) -> pa.Table:
    """Only the columns that the chain needs."""
    import pyarrow as pa

    from headgate.pipeline.batch import CONSUMED

    fields = [field for field in CONSUMED if field.name in needed]
    arrays = [pa.array(list(map(_COLUMNS[field.name], messages)), field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def following(messages: Sequence[Any]) -> dict[TopicPartition, int]:
    """Where to go on after these. One name for each partition, not one for each message."""
    last = dict(zip(((message.topic(), message.partition()) for message in messages), messages, strict=True))
    return {TopicPartition(*where): message.offset() + 1 for where, message in last.items()}
