"""RecordIsTombstone: whether a record's value is null."""

from __future__ import annotations

import pyarrow as pa

from headgate.api import Predicate, Record
from headgate.api.frame import Frame


class RecordIsTombstone(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",)

    uses = frozenset({"value"})

    def test(self, record: Record) -> bool:
        return record.value is None

    def test_columns(self, frame: Frame) -> pa.Array | bool:
        values = frame.value.data
        return values.is_null() if 0 < values.null_count < frame.count else bool(values.null_count)
