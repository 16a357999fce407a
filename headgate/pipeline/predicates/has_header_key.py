"""HasHeaderKey: whether a record has a header of this name."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import STRING, ConfigDef, Key, Predicate, Record, non_empty


class HasHeaderKey(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.HasHeaderKey",)
    config = ConfigDef(Key("name", STRING, validator=non_empty, doc="Name of the header."))

    uses = frozenset({"headers"})

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._name: str = self.settings["name"]

    def test(self, record: Record) -> bool:
        return any(header.key == self._name for header in record.headers)
