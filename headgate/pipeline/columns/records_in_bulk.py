"""RecordsInBulk: all records of a batch made at once, for transforms that take records, and then shown by columns.

That works where nothing fails. Where anything does, each record gets its turn alone; but no transform is asked twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Converter, Schema, SinkRecord
from headgate.api.frame import NotByColumns, ReadsColumns, Values
from headgate.java.json import loads_all
from headgate.pipeline.batch import Batch, joined
from headgate.pipeline.chain import Chain
from headgate.pipeline.columns.objects import objects, values_alike
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.inherited import said_of

Show = Callable[[Values], pa.Array]


@dataclass(frozen=True, slots=True)
class RecordsInBulk:
    chain: Chain
    show: Show

    def records(self, batch: Batch) -> list[SinkRecord]:
        """As converters make them; none where they cannot all be made at once, or some cannot be made at all."""
        try:
            return self._records(batch)
        except Exception:  # one by one it will be seen whose it is
            return []

    def table(self, records: Sequence[SinkRecord], schema: pa.Schema) -> pa.Table | None:
        """What a sink gets for them; None where they are of several kinds, or some cannot be shown."""
        try:
            return pa.Table.from_arrays([self._column(field, records) for field in schema], schema=schema)
        except Exception:
            return None

    def _records(self, batch: Batch) -> list[SinkRecord]:
        columns = {name: joined(batch.column(name)) for name in batch.schema.names}
        headers = columns.get("headers")
        if headers is not None and pc.any(pc.greater(pc.list_value_length(headers), 0), min_count=0).as_py():
            raise NotByColumns("headers")
        count, topics = batch.num_rows, _listed(columns["topic"])
        key_schema, keys = _read(self.chain.key, topics, columns.get("key"), count)
        value_schema, values = _read(self.chain.value, topics, columns.get("value"), count)

        none = pa.nulls(count)
        known = (_listed(columns.get(name, none)) for name in ("partition", "offset", "timestamp", "timestamp_type"))
        return [
            SinkRecord.unchecked(
                {
                    "topic": topic,
                    "value": value,
                    "key": key,
                    "value_schema": value_schema,
                    "key_schema": key_schema,
                    "partition": partition,
                    "timestamp": timestamp,
                    "headers": (),
                    "offset": offset,
                    "timestamp_type": timestamp_type,
                    "original_topic": topic,
                    "original_partition": partition,
                    "original_offset": offset,
                }
            )
            for topic, key, value, partition, offset, timestamp, timestamp_type in zip(
                topics, keys, values, *known, strict=True
            )
        ]

    def _column(self, field: pa.Field, records: Sequence[SinkRecord]) -> pa.Array:
        items = list(map(attrgetter(field.name), records))
        if field.name not in ("key", "value") or not records:
            return pa.array(items, field.type)
        schemas = list(map(attrgetter(f"{field.name}_schema"), records))
        return self.show(values_alike(items, schemas)).cast(field.type)


def _listed(column: pa.Array) -> list[Any]:
    """Of texts, most are the same, and need not be made for each row."""
    distinct = column.unique() if pa.types.is_string(column.type) else column
    listed: list[Any] = distinct.to_pylist() if len(distinct) == 1 else column.to_pylist()
    return listed * len(column) if len(listed) == 1 else listed


def _read(
    converter: Converter, topics: list[str], data: pa.Array | None, count: int
) -> tuple[Schema | None, list[Any]]:
    """The schema that all have, and the values."""
    if data is None:
        return None, [None] * count
    if type(converter) is JsonConverter and not converter.enveloped:  # what is no column yet is sooner read as objects
        return None, loads_all(data.to_pylist())
    if not said_of(type(converter), "read_columns", "to_connect") or len(set(topics)) > 1:
        raise NotByColumns("a converter that gives records")
    groups = list(cast(ReadsColumns, converter).read_columns(topics[0], data))
    if len(groups) != 1 or len(groups[0].rows) != count:
        raise NotByColumns("values of several kinds")
    return groups[0].values.schema, objects(groups[0].values)
