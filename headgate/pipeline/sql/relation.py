"""Relation: what a statement finds as the table `records`, the rows of a whole batch with one type for each column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.sql.column import Side, conformed
from headgate.pipeline.sql.rows import ORIGINAL, LastRecord, Origins, sides_of
from headgate.pipeline.sql.types import NULL, filled, merged_all, size, with_field

_MOST_FIELDS: Final = 1000
"""Maps whose names are data have no end of fields: no more than so many are remembered."""


@dataclass(frozen=True, slots=True)
class Relation:
    table: pa.Table
    key: Side
    value: Side

    @property
    def visible(self) -> pa.Table:
        return self.table.drop_columns([name for name in ORIGINAL if name in self.table.column_names])

    @property
    def topics(self) -> list[str]:
        found: list[str] = self.table.column("topic").unique().to_pylist()
        return found

    def of_topic(self, topic: str) -> Relation:
        return replace(self, table=self.table.filter(pc.equal(self.table.column("topic"), topic)))

    @property
    def origins(self) -> Origins:
        table = self.table
        (last,) = table.slice(table.num_rows - 1).select(["topic", "partition"]).to_pylist()
        latest = pc.max(table.column("timestamp")).cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).as_py()
        known = Origins(**last, timestamp=latest, key=self.key, value=self.value)
        if "offset" not in table.column_names:
            return known
        names = ["topic", "partition", "original_topic", "original_partition"]
        ends = table.group_by(names).aggregate([("offset", "max")]).to_pylist()
        places = {
            (each["topic"], each["partition"]): LastRecord(
                each["original_topic"], each["original_partition"], each["offset_max"]
            )
            for each in ends
        }
        return replace(known, places=places, timestamp_type=table.column("timestamp_type")[-1].as_py())


class Relations:
    """Makes the relations of one statement. It remembers the fields of values without a schema: one that is in this
    batch and not in the next must not make the statement fail."""

    def __init__(self, named: Iterable[tuple[str, ...]], declared: pa.DataType | None = None) -> None:
        """`named` are the paths that the statement names, `declared` is the type of the value, if somebody said so."""
        self._named = tuple(named)
        self._declared = declared
        self._met = {"key": NULL, "value": NULL}
        self._sides = {"key": Side(), "value": Side()}

    def of(self, tables: Sequence[pa.Table]) -> Relation:
        """Of all blobs of a batch, at least one row. Raises DataError."""
        types: dict[str, pa.DataType] = {}
        for name, side in zip(("key", "value"), sides_of(tables), strict=True):
            types[name] = self._type(name, side, merged_all(table.schema.field(name).type for table in tables))
        if self._declared is not None:
            types["value"] = self._declared
        made = []
        for table in tables:
            for name, kind in types.items():
                place = table.schema.get_field_index(name)
                array = conformed(table.column(place).combine_chunks(), kind, name)
                table = table.set_column(place, name, array)
            made.append(table.replace_schema_metadata(None))
        return Relation(pa.concat_tables(made), self._sides["key"], self._sides["value"])

    def _type(self, name: str, side: Side, found: pa.DataType) -> pa.DataType:
        if found.equals(NULL):  # nothing but nulls: they say nothing
            found = self._met[name]
        else:
            self._sides[name] = side
        typed = self._sides[name].typed
        if not typed:
            complete = filled(found, self._met[name])
            found = complete if size(complete) <= _MOST_FIELDS else found
        if size(found) <= _MOST_FIELDS:
            self._met[name] = found
        if not typed:
            for path in (path[1:] for path in self._named if path[0] == name):
                found = with_field(found, path)
        return found
