"""HasHeaderKey: whether a record has a header of this name."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from headgate.api import STRING, ConfigDef, Key, Predicate, Record, non_empty
from headgate.api.frame import Frame
from headgate.pipeline.columns.headers import with_name
from headgate.pipeline.columns.refusing import refusing_errors


class HasHeaderKey(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.HasHeaderKey",)
    config = ConfigDef(Key("name", STRING, validator=non_empty, doc="Name of the header."))

    uses = frozenset({"headers"})

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._name: str = self.settings["name"]

    def test(self, record: Record) -> bool:
        return any(header.key == self._name for header in record.headers)

    @refusing_errors
    def test_columns(self, frame: Frame) -> pa.Array | bool:
        if any(name == self._name for name, _ in frame.headers.added):
            return True
        return frame.headers.given is not None and with_name(frame.headers.given, self._name)
