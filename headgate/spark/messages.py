"""Messages of the consumer as Arrow columns, for the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_NO_TIME: Final = 0
_TYPES: Final = {1: "CreateTime", 2: "LogAppendTime"}


def _timestamp(message: Any) -> int | None:
    kind, milliseconds = message.timestamp()
    return None if kind == _NO_TIME else milliseconds


def _headers(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None


_COLUMNS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "topic": lambda message: message.topic(),
    "partition": lambda message: message.partition(),
    "offset": lambda message: message.offset(),
    "timestamp": _timestamp,
    "timestamp_type": lambda message: _TYPES.get(message.timestamp()[0]),
    "key": lambda message: message.key(),
    "value": lambda message: message.value(),
    "headers": _headers,
}


def batch_of(messages: Sequence[Any], needed: frozenset[str]) -> pa.Table:
    """Only the columns that the chain needs."""
    import pyarrow as pa

    from headgate.pipeline.batch import CONSUMED

    fields = [field for field in CONSUMED if field.name in needed]
    arrays = [pa.array([_COLUMNS[field.name](m) for m in messages], field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
