"""RecordIsTombstone: whether a record's value is null."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import Predicate, Record
from headgate.pipeline.columns.frame import Frame, NotByColumns


class RecordIsTombstone(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",)

    uses = frozenset({"value"})

    def test(self, record: Record) -> bool:
        return record.value is None

    def test_columns(self, frame: Frame) -> bool:
        nulls = 0 if isinstance(frame.value, Mapping) else frame.value.null_count
        if nulls not in (0, frame.count):
            raise NotByColumns("some values are null, some are not")
        return nulls > 0
