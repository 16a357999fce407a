"""HoistField: the whole key or value becomes the only field of a struct or map."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import STRING, ConfigDef, DataError, Key, Record, Schema
from headgate.api.schema import struct
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import struct_of


class HoistField(PartTransform):
    config = ConfigDef(Key("field", STRING, doc="Name of the only field."))

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._field: str = self.settings["field"]
        self._schemas = SchemaCache(self._around)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None:
            return self.put(record, None, {self._field: value})
        made = self._schemas(schema)
        return self.put(record, made, struct_of(made, [value]))

    def _around(self, schema: Schema) -> Schema:
        if not self._field:
            raise DataError("fieldName cannot be null.")
        return struct({self._field: schema})


class HoistFieldKey(OfKey, HoistField):
    aliases = ("org.apache.kafka.connect.transforms.HoistField$Key",)


class HoistFieldValue(OfValue, HoistField):
    aliases = ("org.apache.kafka.connect.transforms.HoistField$Value",)
