"""Arrow batches: what the pipeline takes and gives, and how it travels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from headgate.api.frame import HEADERS
from headgate.java.text import decode_utf8

Batch: TypeAlias = "pa.RecordBatch | pa.Table"


_ORIGINAL: Final = "original_"
_PLACE: Final = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
_CONTENT: Final = [("key", pa.binary()), ("value", pa.binary())]

CONSUMED: Final = pa.schema(
    [*_PLACE, ("timestamp", pa.int64()), ("timestamp_type", pa.string()), *_CONTENT, ("headers", HEADERS)]
)
"""What a sink chain takes: records as Kafka has them. A batch may lack columns that the chain does not need."""

PRODUCED: Final = pa.schema(
    [("row", pa.int32()), *_PLACE[:2], *_CONTENT, ("timestamp", pa.int64()), ("headers", HEADERS)]
)
"""What a source chain gives: records for the producer, each with the index of the one it was made from."""

TABLE: Final = pa.schema(
    [
        *_PLACE,
        ("timestamp", pa.int64()),
        ("key", pa.string()),
        ("value", pa.string()),
        *((_ORIGINAL + name, kind) for name, kind in _PLACE),
    ]
)
"""What a sink chain gives to tasks that take columns, which choose some of these."""

RAW_HEADERS: Final = f"{_ORIGINAL}headers"
"""One more column, of HEADERS, for those that take Form.TYPED."""


class Produced(NamedTuple):
    """One row of PRODUCED."""

    row: int
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: list[tuple[str, bytes | None]] | None


@cache
def table_schema(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([TABLE.field(name) for name in columns])


def consumed_name(column: str) -> str:
    """Which column of CONSUMED a column of TABLE is made of. The original ones are as Kafka has them, whatever
    transforms do."""
    return column.removeprefix(_ORIGINAL)


def produced(rows: Iterable[Produced]) -> pa.Table:
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(PRODUCED)
    arrays = [_array(values, field.type) for values, field in zip(columns, PRODUCED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PRODUCED)


def slim(table: pa.Table) -> pa.Table:
    """PRODUCED rows for the way to the worker: without the columns that hold nothing, and a topic named once. Without
    the column `row`, too, where it says what all can see: that none was left out."""
    count = table.num_rows
    kept = [name for name in PRODUCED.names[2:] if name == "value" or table.column(name).null_count < count]
    if count and table.column("row")[-1].as_py() != count - 1:
        kept = ["row", *kept]
    topics = table.column("topic").unique()
    topic = table.column("topic")
    if len(topics) == 1:
        topic = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), count), topics)
    return pa.Table.from_arrays([topic, *(table.column(name) for name in kept)], names=["topic", *kept])


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    # Most records have no headers, no partition, no key: a column of nulls costs nothing.
    if not any(value is not None for value in values):
        return pa.nulls(len(values), kind)
    if kind == HEADERS:
        return pa.array([_structs(headers) for headers in values], kind)
    return pa.array(values, kind)


def header_column(headers: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    """HEADERS; null where there are none."""
    return _array([each or None for each in headers], HEADERS)


def _structs(headers: Sequence[tuple[str, bytes | None]] | None) -> list[dict[str, Any]] | None:
    return headers and [{"key": key, "value": value} for key, value in headers]  # type: ignore[return-value]


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can say and UTF-8 cannot: "?", as in Java
        return pa.array([each and each.encode(errors="replace").decode() for each in values], kind)


_FEW: Final = 50
"""Up to so many rows, Python is quicker than the calls of Arrow's functions."""


def text_column(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Bytes as strings, all at once when they are many and all are UTF-8; U+FFFD stands for what is not."""
    try:
        return column.cast(pa.string()) if len(column) > _FEW else _decoded(column)
    except pa.ArrowInvalid:
        return _decoded(column)


def _decoded(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.array([None if data is None else decode_utf8(data) for data in column.to_pylist()], pa.string())


def joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """In one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def rows(batch: Batch, columns: Sequence[str], absent: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The batch row by row; a column that it lacks has the same `absent` value in every row."""
    count = batch.num_rows
    present = set(batch.schema.names)
    lists = [
        batch.column(name).to_pylist() if name in present else [missing] * count
        for name, missing in zip(columns, absent, strict=True)
    ]
    return zip(*lists, strict=True)


def interleaved(pieces: list[tuple[pa.Array, pa.Table]], schema: pa.Schema, end: int | None) -> pa.Table:
    """Tables of rows with these numbers, as one in the order of the numbers, up to one of them."""
    pieces = sorted((piece for piece in pieces if len(piece[0])), key=lambda piece: piece[0][0].as_py())
    if not pieces:
        return schema.empty_table()
    table = pa.concat_tables([piece for _, piece in pieces])
    rows = np.concatenate([numbers.to_numpy() for numbers, _ in pieces])
    if end is not None:
        kept = rows < end
        table, rows = table.filter(pa.array(kept)), rows[kept]
    if np.all(rows[:-1] < rows[1:]):
        return table
    return table.combine_chunks().take(pa.array(np.argsort(rows)))


def pieces(table: pa.Table, most: int) -> list[pa.Table]:
    """Of about so many bytes, so that several cores share it."""
    step = max(1, -(-table.num_rows // max(1, -(-table.nbytes // most))))
    return [table.slice(start, step) for start in range(0, table.num_rows, step)]


_IPC: Final = pa.ipc.IpcWriteOptions()
"""The defaults; without it, pyarrow asks the environment for them each time."""


def to_ipc(batch: Batch) -> bytes:
    sink = pa.BufferOutputStream()
    write_ipc(batch, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def write_ipc(batch: Batch, file: Any) -> None:
    """To a stream of pyarrow's."""
    with pa.ipc.new_stream(file, batch.schema, options=_IPC) as writer:
        writer.write(batch)


def from_ipc(data: Any) -> pa.Table:
    """From bytes or a buffer; not copied."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
