"""InsertHeader: adds the same header to every record."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import HIGH, STRING, ConfigDef, Header, Key, Record, Transform
from headgate.api.frame import Frame, HeaderColumns, NotByColumns, Values
from headgate.pipeline.columns.structs import repeated, single
from headgate.pipeline.transforms.keys import not_null
from headgate.pipeline.values import parse


class InsertHeader(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.InsertHeader",)
    config = ConfigDef(
        Key("header", STRING, validator=not_null, importance=HIGH, doc="Name of the header."),
        Key(
            "value.literal",
            STRING,
            validator=not_null,
            importance=HIGH,
            doc="Value of the header. What looks like a number, boolean, list, map, date or time becomes one.",
        ),
    )

    uses = frozenset()

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        schema, value = parse(self.settings["value.literal"])
        self._header = Header(self.settings["header"], value, schema)
        self._column = single(value, schema)

    def apply(self, record: Record) -> Record:
        return record.replace(headers=(*record.headers, self._header))

    def apply_to_columns(self, frame: Frame) -> Frame:
        if self._column is None:
            raise NotByColumns("a header that columns may change")
        values = Values(repeated(self._column, frame.count), self._header.schema)
        given, added = frame.headers.given, (*frame.headers.added, (self._header.key, values))
        return frame.with_headers(HeaderColumns(given, added))
