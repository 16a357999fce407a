"""ColumnPlan: whether a sink's chain can go by columns, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headgate.api import Form
from headgate.pipeline.batch import Batch, consumed_name, text_column
from headgate.pipeline.chain import Chain
from headgate.pipeline.columns.frame import Column, Frame, joined
from headgate.pipeline.columns.json_shape import Shape, runs
from headgate.pipeline.columns.shown import as_json, as_text, quoted
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.string import is_utf8
from headgate.pipeline.steps import Steps

_FEWEST: Final = 128
"""Rows that are worth the trouble: fewer are done sooner one by one."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of a batch, with their shape if they have one in common."""

    first: int
    end: int
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    steps: Steps
    form: Form

    @classmethod
    def of(cls, chain: Chain, columns: Sequence[str], form: Form) -> ColumnPlan | None:
        """None when some part of the chain knows records only."""
        if type(chain.value) is not JsonConverter or chain.value.enveloped or "value" not in columns:
            return None
        if not chain.steps.by_columns or (chain.steps and chain.fallible & {"key", "headers"}):
            return None
        if "key" in columns and not is_utf8(chain.key):
            return None
        return cls(chain.steps, form)

    def parts(self, batch: Batch) -> Iterator[RowRange]:
        """The whole batch, cut where the shape begins and ends to fit."""
        count, done = batch.num_rows, 0
        texts = _texts(batch) if count >= _FEWEST else None
        shape = None if texts is None else Shape.of(texts)
        if shape is not None:
            for first, end, fits in runs(shape.matches(texts)):
                if fits and end - first >= _FEWEST:
                    if done < first:
                        yield RowRange(done, first)
                    yield RowRange(first, end, shape)
                    done = end
        if done < count:
            yield RowRange(done, count)

    def table(self, batch: Batch, shape: Shape, schema: pa.Schema) -> pa.Table:
        """Of rows that all have this shape. Raises NotByColumns."""
        frame = self.steps.apply_to_columns(Frame.of(batch, shape.read(_texts(batch))))
        if frame is None:
            return schema.empty_table()
        made = {**frame.kafka, "value": as_json(frame) if self.form is Form.JSON else as_text(frame)}
        if "key" in schema.names:
            key = joined(text_column(batch.column("key")))
            made["key"] = quoted(key) if self.form is Form.JSON else key
        for name in set(schema.names) - made.keys():
            made[name] = joined(batch.column(consumed_name(name)))
        return pa.table({field.name: made[field.name].cast(field.type) for field in schema}, schema=schema)


def _texts(batch: Batch) -> Column | None:
    """None for what is not UTF-8."""
    try:
        return joined(batch.column("value").cast(pa.string()))
    except pa.ArrowInvalid:
        return None
