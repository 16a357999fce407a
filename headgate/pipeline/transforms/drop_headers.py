"""DropHeaders: removes all headers of the given names."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import HIGH, LIST, ConfigDef, Key, Record, Transform
from headgate.pipeline.columns.frame import Frame
from headgate.pipeline.transforms.keys import some_and_no_blanks


class DropHeaders(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.DropHeaders",)
    config = ConfigDef(
        Key("headers", LIST, validator=some_and_no_blanks, importance=HIGH, doc="Names of the headers to remove.")
    )

    uses = frozenset()  # who uses headers, says so

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._names = frozenset(self.settings["headers"])

    def apply(self, record: Record) -> Record:
        kept = tuple(header for header in record.headers if header.key not in self._names)
        return record if len(kept) == len(record.headers) else record.replace(headers=kept)

    def apply_to_columns(self, frame: Frame) -> Frame:
        return frame  # headers are no column of a table
