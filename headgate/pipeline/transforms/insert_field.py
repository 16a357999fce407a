"""InsertField: adds fields with the record's topic, partition, offset or timestamp, or with a fixed text."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

import pyarrow as pa

from headgate.api import ConfigError, DataError, Record, Schema, SinkRecord, SourceRecord, Struct
from headgate.api import schema as schemas
from headgate.api.config import STRING, ConfigDef, Key
from headgate.api.frame import Frame, NotByColumns, Values
from headgate.pipeline.columns.instants import timestamps
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, nulls, require
from headgate.pipeline.logical import datetime_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.text import java_class
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import members_of, rebuilt, require_map, require_struct, struct_of, values_of

Reader: TypeAlias = Callable[[Record], Any]
ColumnReader: TypeAlias = Callable[[Frame], pa.Array]

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
    """For the maps of a frame; structs have timestamps where these are numbers."""


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
            ("topic.field", schemas.STRING, _TOPIC, _TOPIC, _TOPIC),
            ("partition.field", schemas.INT32, _PARTITION, _PARTITION, _PARTITION),
            ("offset.field", schemas.INT64, _offset, _offset, _offsets),
            ("timestamp.field", schemas.TIMESTAMP, _TIMESTAMP, _timestamp, _TIMESTAMP),
            ("static.field", schemas.STRING, lambda _: fixed, lambda _: fixed, partial(_repeated, fixed)),
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

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> list[Frame]:
        given = self.take_columns(frame)
        if given.schema is None:
            fields_of(given)  # what is no map is refused while the rows are still those of this frame
            for each in self._insertions:
                null = nulls(each.column(frame))
                if null is not None and null.true_count < frame.count:  # these maps do not get the field
                    parts = [part for part in frame.split(null) if part is not None]
                    return [made for part in parts for made in self.apply_to_columns(part)]
        return self.change_known(frame, partial(self._columns, frame))

    def _columns(self, frame: Frame, given: Values) -> Values:
        fields = fields_of(given, replace_null=self._replace_null)
        inserted = [(each, each.column(frame)) for each in self._insertions]
        if given.schema is None:
            known = {each.name: Values(_widened(column)) for each, column in inserted if not column.null_count}
            return maps_of({**fields, **known}, given)
        require(given.schema, fields.values(), nulls(given.data))
        made = self._schemas(given.schema)
        typed = {each.name: Values(_typed(column, each.schema)) for each, column in inserted}
        return Values.of_fields({**fields, **typed}, frame.count, made, nulls(given.data))

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


def _offsets(frame: Frame) -> pa.Array:
    if frame.offset is None:
        raise NotByColumns("an offset, which only sinks have")
    return frame.offset


def _repeated(text: str, frame: Frame) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), frame.count)


def _widened(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _typed(column: pa.Array, schema: Schema) -> pa.Array:
    return timestamps(column) if schema.name == schemas.TIMESTAMP_NAME else column


_TOPIC: Final = attrgetter("topic")
_PARTITION: Final = attrgetter("partition")
_TIMESTAMP: Final = attrgetter("timestamp")


class InsertFieldKey(OfKey, InsertField):
    aliases = ("org.apache.kafka.connect.transforms.InsertField$Key",)


class InsertFieldValue(OfValue, InsertField):
    aliases = ("org.apache.kafka.connect.transforms.InsertField$Value",)
