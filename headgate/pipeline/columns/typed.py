"""TypedTable: rows with keys and values as columns of their own types, for sinks that take Form.TYPED.

A batch with several schemas or shapes is several tables, in the order of its rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.api import DataError, Schema, SinkRecord
from headgate.api.frame import NotByColumns
from headgate.pipeline.batch import RAW_HEADERS, TABLE, column_of, from_ipc, to_ipc
from headgate.pipeline.columns.objects import values_of

_PARTS: Final = ("key", "value")


@dataclass(frozen=True, slots=True)
class TypedTable:
    table: pa.Table
    key_schema: Schema | None = None
    """Of the columns, if they are there."""
    value_schema: Schema | None = None

    def with_headers(self, headers: pa.Array) -> TypedTable:
        """HEADERS, one for each row."""
        return replace(self, table=self.table.append_column(RAW_HEADERS, headers))


@dataclass(frozen=True, slots=True)
class TypedTables:
    tables: Sequence[TypedTable]

    @property
    def count(self) -> int:
        """Of rows."""
        return sum(each.table.num_rows for each in self.tables)

    def pack(self) -> bytes:
        packed = [(to_ipc(each.table), each.key_schema, each.value_schema) for each in self.tables]
        return pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)

    @classmethod
    def unpack(cls, data: Any) -> TypedTables:
        packed = pickle.loads(data)  # noqa: S301 - of a result, as in blob.py
        return cls([TypedTable(from_ipc(table), *schemas) for table, *schemas in packed])


@dataclass(frozen=True, slots=True)
class TypedRow:
    record: SinkRecord
    parts: dict[str, pa.Array]
    """Key and value, as far as they are wanted, each as a column of one row."""

    @classmethod
    def of(cls, record: SinkRecord, columns: Sequence[str]) -> TypedRow:
        """Raises DataError for what has no one type."""
        return cls(record, {part: _column(record, part) for part in _PARTS if part in columns})

    @property
    def kind(self) -> Any:
        """Equal for rows that fit into one table."""
        return [(id(getattr(self.record, f"{part}_schema")), str(each.type)) for part, each in self.parts.items()]


def _column(record: SinkRecord, part: str) -> pa.Array:
    schema, value = getattr(record, f"{part}_schema"), getattr(record, part)
    try:
        return pa.array([value]) if schema is None else values_of(schema, [value]).data
    except (pa.ArrowException, NotByColumns, OverflowError, UnicodeEncodeError) as error:
        raise DataError(f"The {part} of the record has no one type for a column: {error}") from error


def tables_of(rows: Sequence[TypedRow], columns: Sequence[str]) -> Iterator[tuple[int, TypedTable]]:
    """Neighbours of one kind together, with how many they are."""
    for _, found in groupby(rows, lambda row: row.kind):
        alike = list(found)
        first = alike[0]
        made = {
            name: pa.concat_arrays([row.parts[name] for row in alike])
            if name in first.parts
            else column_of([getattr(row.record, name) for row in alike], TABLE.field(name).type)
            for name in columns
        }
        schemas = {f"{part}_schema": getattr(first.record, f"{part}_schema") for part in first.parts}
        yield len(alike), TypedTable(pa.table(made), **schemas)


def in_order(pieces: Sequence[tuple[pa.Array, TypedTable]], end: int | None) -> TypedTables:
    """Pieces of a batch, whose rows have these ascending numbers, cut so that all come in order, up to a number."""
    if not pieces:
        return TypedTables(())
    rows = np.concatenate([numbers.to_numpy() for numbers, _ in pieces])
    piece = np.concatenate([np.full(len(numbers), index) for index, (numbers, _) in enumerate(pieces)])
    place = np.concatenate([np.arange(len(numbers)) for numbers, _ in pieces])
    order = np.argsort(rows)
    order = order if end is None else order[rows[order] < end]
    made = []
    for run in np.split(order, np.flatnonzero(np.diff(piece[order])) + 1):
        if len(run):
            whole = pieces[piece[run[0]]][1]
            table = whole.table.slice(int(place[run[0]]), len(run))
            made.append(TypedTable(table, whole.key_schema, whole.value_schema))
    return TypedTables(made)
