"""AnyPartConverter: a converter for all parts of a record, keys, values and headers, which it treats alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.api import LOW, STRING, ConfigDef, Converter, HeaderConverter, Key, Schema, one_of
from headgate.api.config import or_null

CONVERTER_TYPE: Final = Key(
    "converter.type",
    STRING,
    default=None,
    validator=or_null(one_of("key", "value", "header")),
    importance=LOW,
    doc="How this converter will be used.",
)
"""Which part it is for. The runtime sets it; users do not."""


class AnyPartConverter(Converter, HeaderConverter):
    config = ConfigDef(CONVERTER_TYPE)

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        self.settings = self.config.parse(config)

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return self.to_connect(topic, data)
