"""Frame: records without schema as columns, and what a transform or predicate must know to take one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from headgate.pipeline.batch import Batch

Column: TypeAlias = pa.Array

_KNOWN: Final = ("topic", "partition", "offset", "timestamp")


class NotByColumns(Exception):
    """These records must be looked at one by one; nothing need be wrong with them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of a value are null, bool, int64, float64 or string."""

    count: int
    kafka: Mapping[str, Column]
    """What Kafka says of the records, and transforms have made of it."""
    value: Mapping[str, Column] | Column
    """The fields of maps that all have the same, in their order; or values that are no maps."""

    @classmethod
    def of(cls, batch: Batch, fields: Mapping[str, Column]) -> Frame:
        known = [name for name in _KNOWN if name in batch.schema.names]
        return cls(batch.num_rows, {name: joined(batch.column(name)) for name in known}, fields)

    @property
    def fields(self) -> Mapping[str, Column]:
        """Raises NotByColumns for values that are no maps."""
        if isinstance(self.value, Mapping):
            return self.value
        raise NotByColumns("not a map")

    def field(self, name: str) -> Column:
        """Null where there is no such field, as in a map."""
        found = self.fields.get(name)
        return pa.nulls(self.count) if found is None else found

    def column(self, name: str) -> Column:
        """Of what Kafka says. Raises NotByColumns when it is not known of all records."""
        column = self.kafka.get(name)
        if column is None or column.null_count:
            raise NotByColumns(f"{name} is not always known")
        return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column

    def repeated(self, value: str) -> Column:
        return pa.repeat(pa.scalar(value, pa.string()), self.count)

    def with_value(self, value: Mapping[str, Column] | Column) -> Frame:
        return replace(self, value=value)

    def with_topic(self, column: Column) -> Frame:
        return replace(self, kafka={**self.kafka, "topic": column})


class ByColumns(Protocol):
    """A transform that can also be applied to a frame, with the same result as record by record."""

    def apply_to_columns(self, frame: Frame) -> Frame | None:
        """None drops all records. Raises NotByColumns when only `apply` can tell."""


class DecidesByColumns(Protocol):
    """A predicate that can also be asked about a frame."""

    def test_columns(self, frame: Frame) -> bool:
        """The answer for all records. Raises NotByColumns when they differ."""


def is_text(column: Column) -> bool:
    return bool(pa.types.is_string(column.type))


def joined(column: pa.Array | pa.ChunkedArray) -> Column:
    """In one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
