"""TimestampConverter: points in time as text, as Unix time, or as one of Connect's Date, Time and Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from headgate.api import HIGH, LOW, STRING, ConfigDef, ConfigError, DataError, Key, Record, Schema, Struct, one_of
from headgate.api.frame import Frame, Values
from headgate.java.dates.format import DateFormat
from headgate.pipeline.columns.instants import convert
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.instants import (
    NO_FORMAT,
    PRECISIONS,
    SCHEMAS,
    Instants,
    form_of_schema,
    form_of_value,
)
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import members_of, rebuilt, require_map, require_struct, struct_of, values_of

_PURPOSE: Final = "converting timestamp formats"


class TimestampConverter(PartTransform):
    config = ConfigDef(
        Key(
            "field", STRING, default="", importance=HIGH, doc="The field to convert; empty for the whole key or value."
        ),
        Key(
            "target.type",
            STRING,
            validator=one_of(*SCHEMAS),
            importance=HIGH,
            doc="The new form: string, unix, Date, Time or Timestamp.",
        ),
        Key(
            "format", STRING, default="", doc="Pattern of java.text.SimpleDateFormat, for writing and for reading text."
        ),
        Key(
            "unix.precision",
            STRING,
            default="milliseconds",
            validator=one_of(*PRECISIONS),
            importance=LOW,
            doc="The unit of Unix time, read or written. What is finer than milliseconds is lost.",
        ),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._field: str = self.settings["field"]
        self._form: str = self.settings["target.type"]
        pattern = self.settings["format"]
        if self._form == "string" and not pattern:
            raise ConfigError(NO_FORMAT)
        self._instants = Instants(_format(pattern) if pattern else None, self.settings["unix.precision"])
        self._write = self._instants.writer(self._form)
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._converted_schema)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None:
            if not self._field:
                return self.put(record, None, self._converted(value, None))
            if value is None:
                return record
            given = require_map(value, _PURPOSE)
            return self.put(record, None, {**given, self._field: self._converted(given.get(self._field), None)})
        if not self._field:
            return self.put(record, self._target(schema), self._converted(value, schema))
        struct = None if value is None else require_struct(value, _PURPOSE)
        made = self._schemas(schema)
        return self.put(record, made, None if struct is None else self._converted_struct(struct, made))

    def _converted(self, value: Any, schema: Schema | None) -> Any:
        """Of the field, or of the whole value; by its schema, if it has one, else by what it looks like."""
        try:
            form = None if schema is None else form_of_schema(schema)
            return None if value is None else self._write(self._instants.read(form or form_of_value(value), value))
        except DataError as error:
            if self._field:
                error.within(self._field)
            raise

    def _converted_struct(self, value: Struct, schema: Schema) -> Struct:
        items = values_of(value, replace_null=self._replace_null)
        member = value.schema.field(self._field)
        if member is not None:
            items[member.index] = self._converted(items[member.index], member.schema)
        return struct_of(schema, items)

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        if not self._field:
            made = None if given.schema is None else self._target(given.schema)
            return self.put_columns(frame, Values(self._convert(given), made))
        fields = fields_of(given, replace_null=self._replace_null)
        if given.schema is None:
            if given.data.null_count == len(given):
                return frame
            converted = self._convert(fields.get(self._field, Values.nulls(len(given))))
            return self.put_columns(frame, maps_of({**fields, self._field: Values(converted)}, given))
        schema = self._schemas(given.schema)
        if self._field in fields:
            fields[self._field] = Values(self._convert(fields[self._field]))
        return self.put_columns(frame, structs_of(schema, fields.values(), given))

    def _convert(self, values: Values) -> pa.Array:
        return convert(values, self._form, self._instants)

    def _target(self, schema: Schema) -> Schema:
        made = SCHEMAS[self._form]
        return made.as_optional() if schema.optional else made

    def _converted_schema(self, schema: Schema) -> Schema:
        members = [
            (name, self._target(member) if name == self._field else member) for name, member in members_of(schema)
        ]
        made = rebuilt(schema, members, optional=schema.optional)
        if schema.default is None:
            return made
        default = self._converted_struct(schema.default, made)
        return rebuilt(schema, members, optional=schema.optional, default=default)


def _format(pattern: str) -> DateFormat:
    try:
        return DateFormat(pattern)
    except ValueError as error:
        raise ConfigError(
            "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps:"
            f" {pattern} ({error})"
        ) from None


class TimestampConverterKey(OfKey, TimestampConverter):
    aliases = ("org.apache.kafka.connect.transforms.TimestampConverter$Key",)


class TimestampConverterValue(OfValue, TimestampConverter):
    aliases = ("org.apache.kafka.connect.transforms.TimestampConverter$Value",)
