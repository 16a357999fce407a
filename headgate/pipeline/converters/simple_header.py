"""SimpleHeaderConverter: headers as text, from which numbers, lists, dates and so on are recognised again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headgate.api import HeaderConverter, Schema
from headgate.api.frame import NotByColumns, Values
from headgate.java.text import decode_utf8
from headgate.pipeline.columns.as_text import as_text
from headgate.pipeline.values import parse, show


class SimpleHeaderConverter(HeaderConverter):
    aliases = ("org.apache.kafka.connect.storage.SimpleHeaderConverter",)

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else show(value, schema).encode(errors="replace")

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return (None, None) if data is None else parse(decode_utf8(data))

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        """Of plain values."""
        kind = values.data.type
        if pa.types.is_nested(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind):
            raise NotByColumns("headers that are no plain values")
        return as_text(values).cast(pa.binary())
