"""InsertField: adds fields with the record's topic, partition, offset or timestamp, or with a fixed text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import Any, Final, TypeAlias

from headgate.api import ConfigError, DataError, Record, Schema, SinkRecord, SourceRecord, Struct
from headgate.api import schema as schemas
from headgate.api.config import STRING, ConfigDef, Key
from headgate.pipeline.columns.frame import Column, Frame
from headgate.pipeline.logical import datetime_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.text import java_class
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import members_of, rebuilt, require_map, require_struct, struct_of, values_of

Reader: TypeAlias = Callable[[Record], Any]
ColumnReader: TypeAlias = Callable[[Frame], Column]

_PURPOSE: Final = "field insertion"
_NAMING: Final = "A ! at the end makes the field required, a ? or nothing optional."


def _field_key(name: str, what: str) -> Key:
    return Key(name, STRING, default=None, doc=f"Name of the field for {what}. {_NAMING}")


@dataclass(frozen=True, slots=True)
class _Insertion:
    name: str
    schema: Schema
    read: Reader
    """For a map; None inserts nothing."""
    read_typed: Reader
    """For a struct."""
    column: ColumnReader
    """For a frame."""


class InsertField(PartTransform):
    config = ConfigDef(
        _field_key("topic.field", "the topic"),
        _field_key("partition.field", "the partition"),
        _field_key("offset.field", "the offset, in sinks only"),
        _field_key("timestamp.field", "the timestamp"),
        _field_key("static.field", "a fixed text"),
        Key("static.value", STRING, default=None, doc="The text for static.field."),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        fixed = self.settings["static.value"]
        if self.settings["static.field"] is not None and fixed is None:
            name = self.settings["static.field"]
            raise ConfigError.invalid("static.value", None, f"No value specified for static field: {name}")
        possible: Sequence[tuple[str, Schema, Reader, Reader, ColumnReader]] = (
            ("topic.field", schemas.STRING, _TOPIC, _TOPIC, methodcaller("column", "topic")),
            ("partition.field", schemas.INT32, _PARTITION, _PARTITION, methodcaller("column", "partition")),
            ("offset.field", schemas.INT64, _offset, _offset, methodcaller("column", "offset")),
            ("timestamp.field", schemas.TIMESTAMP, _TIMESTAMP, _timestamp, methodcaller("column", "timestamp")),
            ("static.field", schemas.STRING, lambda _: fixed, lambda _: fixed, methodcaller("repeated", fixed)),
        )
        sources = ("topic", "partition", "offset", "timestamp")
        self.uses = type(self).uses | {source for source in sources if self.settings[f"{source}.field"] is not None}
        self._insertions = [
            _insertion(self.settings[key], schema, read, read_typed, column)
            for key, schema, read, read_typed, column in possible
            if self.settings[key] is not None
        ]
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        self._readers = [(each.name, each.read) for each in self._insertions]
        self._typed_readers = [each.read_typed for each in self._insertions]
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._extended)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if value is None:
            return record
        if schema is None:
            changed = dict(require_map(value, _PURPOSE))
            for name, read in self._readers:
                inserted = read(record)
                if inserted is not None:
                    changed[name] = inserted
            return self.put(record, None, changed)
        given = require_struct(value, _PURPOSE)
        items = values_of(given, replace_null=self._replace_null)
        if None in items:
            struct_of(given.schema, items)  # a required field may not be null; inserted ones may
        made = self._schemas(schema)
        items += [read(record) for read in self._typed_readers]
        return self.put(record, made, Struct.of(made, items))

    def _extended(self, schema: Schema) -> Schema:
        return rebuilt(schema, [*members_of(schema), *((each.name, each.schema) for each in self._insertions)])


def _insertion(field: str, schema: Schema, read: Reader, read_typed: Reader, column: ColumnReader) -> _Insertion:
    required = field.endswith("!")
    name = field[:-1] if field.endswith(("!", "?")) else field
    return _Insertion(name, schema if required else schema.as_optional(), read, read_typed, column)


def _offset(record: Record) -> int:
    if isinstance(record, SinkRecord):
        return record.offset
    kind = "org.apache.kafka.connect.source.SourceRecord" if isinstance(record, SourceRecord) else java_class(record)
    raise DataError(f"Only SinkRecord supported for [{_PURPOSE}], found: {kind}")


def _timestamp(record: Record) -> dt.datetime | None:
    return None if record.timestamp is None else datetime_of(record.timestamp)


_TOPIC: Final = attrgetter("topic")
_PARTITION: Final = attrgetter("partition")
_TIMESTAMP: Final = attrgetter("timestamp")


class InsertFieldKey(OfKey, InsertField):
    aliases = ("org.apache.kafka.connect.transforms.InsertField$Key",)


class InsertFieldValue(OfValue, InsertField):
    aliases = ("org.apache.kafka.connect.transforms.InsertField$Value",)

    def apply_to_columns(self, frame: Frame) -> Frame:
        return frame.with_value({**frame.fields, **{each.name: each.column(frame) for each in self._insertions}})
