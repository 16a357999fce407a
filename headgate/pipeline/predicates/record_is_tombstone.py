"""RecordIsTombstone: whether a record's value is null."""

from __future__ import annotations

from headgate.api import Predicate, Record


class RecordIsTombstone(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",)

    def test(self, record: Record) -> bool:
        return record.value is None
