"""Messages of a consumer as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from headgate.model import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}


def timestamp_of(message: Any) -> int | None:
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
    "timestamp": timestamp_of,
    "timestamp_type": lambda message: _TYPES.get(message.timestamp()[0]),
    "key": methodcaller("key"),
    "value": methodcaller("value"),
    "headers": _headers,
}


class Messages:
    """At least one, in the order of their offsets within each partition."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @cached_property
    def following(self) -> dict[TopicPartition, int]:
        """Where to go on after them. One name for each partition, not one for each message."""
        found = self._messages
        last = dict(zip(((each.topic(), each.partition()) for each in found), found, strict=True))
        return {TopicPartition(*where): message.offset() + 1 for where, message in last.items()}

    def table(self, needed: frozenset[str]) -> pa.Table:
        """Only these columns."""
        import pyarrow as pa

        wanted = _part_of_schema(needed)
        arrays = [pa.array(list(map(_COLUMNS[field.name], self._messages)), field.type) for field in wanted]
        return pa.Table.from_arrays(arrays, schema=wanted)


@cache
def _part_of_schema(needed: frozenset[str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema() if field.name in needed])


@cache
def schema() -> pa.Schema:
    """Of all columns; the pipeline's CONSUMED is the same."""
    import pyarrow as pa

    headers = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
    types = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.binary(), pa.binary(), headers)
    return pa.schema([pa.field(name, kind) for name, kind in zip(_COLUMNS, types, strict=True)])
