"""Filter: drops every record that comes to it, so it needs a predicate."""

from __future__ import annotations

from headgate.api import Record, Transform
from headgate.api.frame import Frame


class Filter(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.Filter",)

    uses = frozenset()

    def apply(self, record: Record) -> None:
        return None

    def apply_to_columns(self, frame: Frame) -> None:
        return None
