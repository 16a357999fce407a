"""DropHeaders: removes all headers of the given names."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import HIGH, LIST, ConfigDef, Key, Record, Transform
from headgate.api.frame import Frame, HeaderColumns
from headgate.pipeline.columns.headers import without
from headgate.pipeline.columns.refusing import refusing_errors
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

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = None if frame.headers.given is None else without(frame.headers.given, self._names)
        added = tuple((name, values) for name, values in frame.headers.added if name not in self._names)
        return frame.with_headers(HeaderColumns(given, added))
