"""HoistField: the whole key or value becomes the only field of a struct or map."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import STRING, ConfigDef, DataError, Key, Record, Schema
from headgate.api.frame import Frame, Values
from headgate.api.schema import struct
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.columns.structs import require
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

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        made = None if given.schema is None else self._schemas(given.schema)
        if made is not None:
            require(made, [given], None)
        return self.put_columns(frame, Values.of_fields({self._field: given}, frame.count, made))

    def _around(self, schema: Schema) -> Schema:
        if not self._field:
            raise DataError("fieldName cannot be null.")
        return struct({self._field: schema})


class HoistFieldKey(OfKey, HoistField):
    aliases = ("org.apache.kafka.connect.transforms.HoistField$Key",)


class HoistFieldValue(OfValue, HoistField):
    aliases = ("org.apache.kafka.connect.transforms.HoistField$Value",)
