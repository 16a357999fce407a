"""ExtractField: one field becomes the whole key or value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.api import STRING, ConfigDef, DataError, Key, Record, Schema
from headgate.api.frame import Frame, Values
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.field_path import SYNTAX, FieldPath
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import require_map, require_struct

_PURPOSE: Final = "field extraction"


class ExtractField(PartTransform):
    config = ConfigDef(
        Key("field", STRING, doc="Name of the field to take out, or the path to it."), REPLACE_NULL, SYNTAX
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._field: str = self.settings["field"]
        self._path = FieldPath.parse(self._field, self.settings["field.syntax.version"])
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._found)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None:
            found = None if value is None else self._path.in_map(require_map(value, _PURPOSE))
            return self.put(record, None, found)
        given = None if value is None else require_struct(value, _PURPOSE)
        made = self._schemas(schema)
        found = None if given is None else self._path.in_struct(given, replace_null=self._replace_null)
        return self.put(record, made, found)

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        made = None if given.schema is None else self._schemas(given.schema)
        found = self._path.in_columns(given, replace_null=self._replace_null)
        return self.put_columns(frame, Values(found.data, made))

    def _found(self, schema: Schema) -> Schema:
        found = self._path.field_of(schema)
        if found is None:
            raise DataError(f"Unknown field: {self._field}")
        return found


class ExtractFieldKey(OfKey, ExtractField):
    aliases = ("org.apache.kafka.connect.transforms.ExtractField$Key",)


class ExtractFieldValue(OfValue, ExtractField):
    aliases = ("org.apache.kafka.connect.transforms.ExtractField$Value",)
