"""What was polled of a source: with its offsets, joined with its neighbours, cut into pieces for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Any, Final

from headgate.api.record import Header, SourceRecord
from headgate.api.task import RowsFrom, SourceTable
from headgate.model import Offset, Partition
from headgate.pipeline.batch import pieces

_PIECE_BYTES: Final = 2 * 1024 * 1024
"""What is larger than this is cut."""
_RECORD_BYTES: Final = 500
"""What a record counts as; its real size is not worth measuring."""
_COLUMNS: Final = ("key", "value", "timestamp", "partition", "headers")


class End(Enum):
    """How a task ends a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class Polled:
    """One poll: rows or records, and the offsets that stand behind them."""

    content: SourceTable | Sequence[SourceRecord]
    rows: int
    size: int
    offsets: tuple[tuple[Partition, Offset], ...]
    end: End | None = None
    """What the task wants of the transaction that this is the last of; None: it goes on."""

    @classmethod
    def of(cls, content: SourceTable | Sequence[SourceRecord], end: End | None = None) -> Polled:
        if isinstance(content, SourceTable):
            latest = _latest(content.places or [content])
            return cls(content, content.table.num_rows, content.table.nbytes, latest, end)
        return cls(content, len(content), len(content) * _RECORD_BYTES, _latest(content), end)

    def record(self, row: int) -> SourceRecord:
        content = self.content
        if not isinstance(content, SourceTable):
            return content[row]
        partition, offset = content.place(row)
        known = {name: content.table[name][row].as_py() for name in _COLUMNS if name in content.table.column_names}
        headers = tuple(Header(each["key"], each["value"]) for each in known.pop("headers", None) or ())
        return SourceRecord(
            topic=content.topic,
            **known,
            headers=headers,
            key_schema=content.key_schema,
            value_schema=content.value_schema,
            source_partition=partition,
            source_offset=offset,
        )


def _latest(found: Sequence[SourceRecord | SourceTable | RowsFrom]) -> tuple[tuple[Partition, Offset], ...]:
    """The last offset of each partition, as far as they are known."""
    latest = {
        repr(each.source_partition): (each.source_partition, each.source_offset)
        for each in found
        if each.source_partition is not None and each.source_offset is not None
    }
    return tuple(latest.values())


def ended(polled: Sequence[Polled]) -> list[list[Polled]]:
    """Cut behind each that ends a transaction."""
    parts: list[list[Polled]] = [[]]
    for each in polled:
        parts[-1].append(each)
        if each.end is not None:
            parts.append([])
    return [part for part in parts if part]


def joined(contents: Sequence[SourceTable | Sequence[SourceRecord]]) -> list[SourceTable | list[SourceRecord]]:
    """Neighbours that can travel together, put together: many small polls are one batch."""
    import pyarrow as pa

    together: list[SourceTable | list[SourceRecord]] = []
    for kind, found in groupby(contents, _kind):
        members: list[Any] = list(found)
        if kind is None:
            together.append([record for member in members for record in member])
        elif len(members) == 1:
            together.append(members[0])
        else:
            table = pa.concat_tables([member.table for member in members])
            together.append(replace(members[0], table=table, source_partition=None, source_offset=None, places=()))
    return together


def _kind(content: SourceTable | Sequence[SourceRecord]) -> Any:
    if not isinstance(content, SourceTable):
        return None
    return content.topic, content.table.schema, content.value_schema, content.key_schema


def cut(content: SourceTable) -> list[SourceTable]:
    return [replace(content, table=piece, places=()) for piece in pieces(content.table, _PIECE_BYTES)]
