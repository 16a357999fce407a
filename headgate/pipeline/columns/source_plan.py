"""SourcePlan: how a source's table goes through its chain by columns, if all of the chain can."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Converter, Record, SourceTable
from headgate.api.frame import Frame, NotByColumns, Values, WritesColumns
from headgate.pipeline.batch import PRODUCED, joined
from headgate.pipeline.chain import Chain
from headgate.pipeline.columns import reading
from headgate.pipeline.columns.given import given
from headgate.pipeline.columns.groups import group
from headgate.pipeline.columns.objects import values_alike
from headgate.pipeline.columns.refused_rows import RefusedRows
from headgate.pipeline.columns.sent_headers import all_headers, given_headers
from headgate.pipeline.converters.any_part import AnyPartConverter
from headgate.pipeline.inherited import said_of


@dataclass(frozen=True, slots=True)
class SourcePlan:
    chain: Chain

    def takes(self, count: int) -> bool:
        """Whether so many rows go by columns."""
        steps = self.chain.steps
        return count > 0 and steps.by_columns and (not steps or count >= reading.FEWEST)

    def tables(self, source: SourceTable, refused: RefusedRows) -> Iterator[tuple[pa.Array, pa.Table]]:
        """Numbers of rows, and the PRODUCED rows that have become of them. Rows that are neither here nor refused were
        dropped."""
        steps, count = self.chain.steps, source.table.num_rows
        try:
            columns = {name: joined(source.table.column(name)) for name in source.table.column_names}
            value = given(columns["value"], source.value_schema)
            key = given(columns.get("key", pa.nulls(count)), source.key_schema)
            known = self._known(source.topic, columns, count)
        except NotByColumns as refusal:
            refused.add_others([], refusal.why)
            return
        early = pc.less(known["timestamp"], 0).fill_null(False)
        refused.add(np.flatnonzero(early.to_numpy(zero_copy_only=False)), "no timestamp")
        for frame in reading.frames(known, [group(key)], [group(value)], refused, fewest=1):
            for changed in steps.apply_to_columns(frame, refused):
                for each in self._by_topic(changed):
                    done = refused.accepted(each, self._produced)
                    if done is not None:
                        yield done[0].rows, done[1]

    def produced(self, records: Sequence[tuple[int, Record]]) -> pa.Table:
        """PRODUCED rows of records that are done with their transforms, with their numbers. Raises NotByColumns where
        these are of several kinds, and what converters raise."""
        if not records:
            return PRODUCED.empty_table()
        rows, made = zip(*records, strict=True)
        topics = [each.topic for each in made]
        if any(each.headers for each in made) or len(set(topics)) > 1:
            raise NotByColumns("records of several kinds")
        timestamps = pa.array([each.timestamp for each in made], pa.int64())
        if (pc.min(timestamps).as_py() or 0) < 0:
            raise NotByColumns("no timestamp")
        return self._produced(
            Frame(
                rows=pa.array(rows, pa.int64()),
                topic=pa.array(topics, pa.string()),
                partition=pa.array([each.partition for each in made], pa.int32()),
                timestamp=timestamps,
                key=values_alike([each.key for each in made], [each.key_schema for each in made]),
                value=values_alike([each.value for each in made], [each.value_schema for each in made]),
            )
        )

    def _known(self, topic: str, columns: Mapping[str, pa.Array], count: int) -> dict[str, pa.Array]:
        """All that a frame has beside key and value."""
        timestamp = columns.get("timestamp", pa.nulls(count))
        if "timestamp" not in columns and "timestamp" in self.chain.steps.uses:
            timestamp = pa.repeat(pa.scalar(now_ms(), pa.int64()), count)
        known = {
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
            "partition": columns.get("partition", pa.nulls(count)).cast(pa.int32()),
            "timestamp": timestamp.cast(pa.int64()),
        }
        if "headers" in columns:
            known["headers"] = given_headers(self.chain.headers, topic, columns["headers"])
        return known

    def _by_topic(self, frame: Frame) -> Iterator[Frame]:
        """One for each topic, where a converter looks at it."""
        topics = frame.topic.unique()
        if len(topics) == 1 or all(isinstance(each, AnyPartConverter) for each in (self.chain.key, self.chain.value)):
            yield frame
            return
        for topic in topics:
            yield frame.where(pc.equal(frame.topic, topic))

    def _produced(self, frame: Frame) -> pa.Table:
        """Raises NotByColumns."""
        topic = frame.topic[0].as_py()
        columns = {
            "row": frame.rows.cast(pa.int32()),
            "topic": frame.topic,
            "partition": frame.partition,
            "key": _written(self.chain.key, topic, frame.key),
            "value": _written(self.chain.value, topic, frame.value),
            "timestamp": frame.timestamp,
            "headers": all_headers(self.chain.headers, topic, frame),
        }
        return pa.Table.from_arrays([columns[name] for name in PRODUCED.names], schema=PRODUCED)


def _written(converter: Converter, topic: str, values: Values) -> pa.Array:
    if values.data.null_count == len(values):  # the same for every row
        null = converter.from_connect(topic, values.schema, None)
        return pa.repeat(pa.scalar(null, pa.binary()), len(values))
    if not said_of(type(converter), "write_columns", "from_connect"):
        raise NotByColumns("a converter that takes records")
    return cast(WritesColumns, converter).write_columns(topic, values)


def now_ms() -> int:
    return int(time.time() * 1000)
