"""Filter: drops every record that comes to it, so it needs a predicate."""

from __future__ import annotations

from headgate.api import Record, Transform


class Filter(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.Filter",)

    def apply(self, record: Record) -> None:
        return None
