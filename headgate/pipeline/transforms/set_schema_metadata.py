"""SetSchemaMetadata: gives the schema another name or version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headgate.api import HIGH, INT, STRING, ConfigDef, ConfigError, DataError, Key, Record, Schema, Struct
from headgate.api.frame import Frame, NotByColumns, arrow_type
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import fields_of, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import members_of, struct_of, values_of


class SetSchemaMetadata(PartTransform):
    config = ConfigDef(
        Key("schema.name", STRING, default=None, importance=HIGH, doc="The new name of the schema."),
        Key("schema.version", INT, default=None, importance=HIGH, doc="The new version of the schema."),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._name: str | None = self.settings["schema.name"]
        self._version: int | None = self.settings["schema.version"]
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._schemas = SchemaCache(self._renamed)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None and value is None:
            return record
        if schema is None:
            raise DataError("Schema required for [updating schema metadata]")
        made = self._schemas(schema)
        if isinstance(value, Struct):
            value = struct_of(made, values_of(value, replace_null=self._replace_null))
        return self.put(record, made, value)

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        if given.schema is None:
            refuse("no schema", given.data.is_valid())
            return frame
        made = self._schemas(given.schema)
        if arrow_type(made) != given.data.type:
            raise NotByColumns("a name that is not true of the schema")
        fields = fields_of(given, replace_null=self._replace_null)
        return self.put_columns(frame, structs_of(made, fields.values(), given))

    def _renamed(self, schema: Schema) -> Schema:
        members_of(schema)  # as Apache does, this takes structs only
        made = replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
            default=None,
        )
        if schema.default is None:
            return made
        return replace(made, default=Struct.of(made, schema.default.values))


class SetSchemaMetadataKey(OfKey, SetSchemaMetadata):
    aliases = ("org.apache.kafka.connect.transforms.SetSchemaMetadata$Key",)


class SetSchemaMetadataValue(OfValue, SetSchemaMetadata):
    aliases = ("org.apache.kafka.connect.transforms.SetSchemaMetadata$Value",)
