"""StringConverter: the text of a value, and nothing of its schema."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from headgate.api import HIGH, STRING, ConfigDef, ConfigError, Key, Schema
from headgate.api.frame import Group, NotByColumns, Values
from headgate.api.schema import OPTIONAL_STRING
from headgate.java.text import decode_utf8
from headgate.pipeline.batch import text_column
from headgate.pipeline.columns.as_text import as_text
from headgate.pipeline.columns.groups import group
from headgate.pipeline.converters.any_part import CONVERTER_TYPE, AnyPartConverter
from headgate.pipeline.text import text


class StringConverter(AnyPartConverter):
    aliases = ("org.apache.kafka.connect.storage.StringConverter",)
    config = ConfigDef(
        CONVERTER_TYPE,
        Key(
            "converter.encoding",
            STRING,
            default="UTF-8",
            importance=HIGH,
            doc="The name of the character set to use for encoding and decoding strings as byte arrays.",
        ),
    )

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        super().configure(config, is_key=is_key)
        name = self.settings["converter.encoding"]
        try:
            self._codec = codecs.lookup(name).name
        except LookupError:
            raise ConfigError.invalid("converter.encoding", name, "Unsupported encoding") from None

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        # What the encoding lacks becomes "?", as in Java.
        if self._codec == "utf-16":  # Java writes big-endian after the mark, Python in the machine's order
            return codecs.BOM_UTF16_BE + text(value, schema).encode("utf-16-be", errors="replace")
        return text(value, schema).encode(self._codec, errors="replace")

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return OPTIONAL_STRING, None
        if self._codec == "utf-8":
            return OPTIONAL_STRING, decode_utf8(data)
        if self._codec == "utf-16" and not data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
            return OPTIONAL_STRING, data.decode("utf-16-be", errors="replace")
        return OPTIONAL_STRING, data.decode(self._codec, errors="replace")

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        self._require_utf8()
        return as_text(values).cast(pa.binary())

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        self._require_utf8()
        yield group(Values(text_column(data), OPTIONAL_STRING))

    def _require_utf8(self) -> None:
        if self._codec != "utf-8":
            raise NotByColumns("text that is not UTF-8")


def is_utf8(converter: object) -> bool:
    """Whether this converter reads and writes text that is UTF-8 as it is."""
    return type(converter) is StringConverter and converter._codec == "utf-8"
