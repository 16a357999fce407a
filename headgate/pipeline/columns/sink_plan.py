"""SinkPlan: whether a sink's chain can go by columns, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Form
from headgate.api.frame import Frame, Group, Values
from headgate.pipeline.batch import TABLE, Batch, consumed_name, joined
from headgate.pipeline.chain import Chain
from headgate.pipeline.columns.as_json import as_json
from headgate.pipeline.columns.as_text import as_text
from headgate.pipeline.columns.groups import group
from headgate.pipeline.columns.reading import frames, read
from headgate.pipeline.columns.refused_rows import RefusedRows
from headgate.pipeline.columns.typed import TypedTable
from headgate.pipeline.converters.json_value import Options
from headgate.pipeline.inherited import said_of

T = TypeVar("T")

Columns: TypeAlias = Mapping[str, pa.Array]
"""Of a batch."""


def shown_as(form: Form) -> Callable[[Values], pa.Array]:
    """How keys and values become texts. It raises NotByColumns."""
    return as_text if form is Form.TEXT else lambda values: as_json(values, Options())


@dataclass(frozen=True, slots=True)
class SinkPlan:
    chain: Chain
    form: Form
    read: frozenset[str]
    """`key` and `value`, as far as somebody wants them."""
    headers: bool
    """Whether headers may be what their converter cannot read."""

    @classmethod
    def of(cls, chain: Chain, columns: tuple[str, ...], form: Form) -> SinkPlan | None:
        """None when some part of the chain knows records only, or has nothing to do."""
        wanted = set(columns)
        if chain.steps:  # then all of a record is converted: what can fail must be tried
            wanted |= chain.steps.uses | chain.fallible
        converters = {"key": chain.key, "value": chain.value}
        converters = {name: each for name, each in converters.items() if name in wanted}
        if not converters or not chain.steps.by_columns:
            return None
        if not all(said_of(type(each), "read_columns", "to_connect") for each in converters.values()):
            return None
        return cls(chain, form, frozenset(converters), bool(chain.steps) and "headers" in chain.fallible)

    def pieces(
        self, batch: Batch, refused: RefusedRows, finish: Callable[[Frame, Columns], T]
    ) -> Iterator[tuple[pa.Array, T]]:
        """Numbers of rows of the batch, and what `finish` makes of them. Rows that are neither here nor refused were
        dropped."""
        columns = {name: joined(batch.column(name)) for name in batch.schema.names}
        keys, values = (self._groups(name, columns, refused) for name in ("key", "value"))
        if self.headers and "headers" in columns:
            has_some = pc.greater(pc.list_value_length(columns["headers"]), 0).fill_null(False)
            refused.add(np.flatnonzero(has_some.to_numpy(zero_copy_only=False)), "headers")
        for frame in frames(columns, keys, values, refused):
            for changed in self.chain.steps.apply_to_columns(frame, refused):
                done = refused.accepted(changed, lambda it: finish(it, columns))
                if done is not None:
                    yield done[0].rows, done[1]

    def table(self, frame: Frame, columns: Columns, schema: pa.Schema) -> pa.Table:
        """Keys and values as texts."""
        show = shown_as(self.form)
        shown = {name: show(getattr(frame, name)) for name in ("key", "value") if name in schema.names}
        made = [
            _column(field.name, frame, columns) if field.name not in shown else shown[field.name] for field in schema
        ]
        return pa.Table.from_arrays(
            [each.cast(kind) for each, kind in zip(made, schema.types, strict=True)], schema=schema
        )

    def typed(self, frame: Frame, columns: Columns, names: Sequence[str]) -> TypedTable:
        """Keys and values as they are."""
        parts = {name: values for name, values in (("key", frame.key), ("value", frame.value)) if name in names}
        made = {
            name: parts[name].data if name in parts else _column(name, frame, columns).cast(TABLE.field(name).type)
            for name in names
        }
        return TypedTable(pa.table(made), **{f"{name}_schema": values.schema for name, values in parts.items()})

    def _groups(self, name: str, columns: Columns, refused: RefusedRows) -> list[Group]:
        topics = columns["topic"]
        if name not in self.read:
            return [group(Values.nulls(len(topics)))]
        converter = self.chain.key if name == "key" else self.chain.value
        return read(converter, topics, columns[name], refused)


def _column(name: str, frame: Frame, columns: Columns) -> pa.Array:
    """Of what is neither key nor value."""
    if consumed_name(name) == name:
        return getattr(frame, name)
    given = columns[consumed_name(name)]  # as Kafka has it, whatever transforms did
    return given if frame.count == len(given) else given.take(frame.rows)
