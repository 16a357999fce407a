"""ValueToKey: makes a new key of some fields of the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from headgate.api import HIGH, LIST, ConfigDef, Key, Record, Schema, Transform
from headgate.api.frame import Frame, Values
from headgate.api.schema import struct
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, nulls, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.keys import REPLACE_NULL, some_and_no_blanks
from headgate.pipeline.transforms.structs import member_of, require_map, require_struct, struct_of, values_of

_PURPOSE: Final = "copying fields from value to key"


class ValueToKey(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.ValueToKey",)
    config = ConfigDef(
        Key("fields", LIST, validator=some_and_no_blanks, importance=HIGH, doc="Names of the fields of the value."),
        REPLACE_NULL,
    )

    uses = frozenset({"value"})

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._fields: Sequence[str] = list(dict.fromkeys(self.settings["fields"]))
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._plans = SchemaCache(self._plan)

    def apply(self, record: Record) -> Record:
        if record.value_schema is None:
            given = require_map(record.value, _PURPOSE)
            return record.replace(key_schema=None, key={name: given.get(name) for name in self._fields})
        value = require_struct(record.value, _PURPOSE)
        made, taken = self._plans(value.schema)
        items = values_of(value, replace_null=self._replace_null)
        return record.replace(key_schema=made, key=struct_of(made, [items[index] for index in taken]))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = frame.value
        refuse("null where fields are taken from", nulls(given.data))
        fields = fields_of(given, replace_null=self._replace_null)
        if given.schema is None:
            nothing = Values.nulls(frame.count)
            return frame.with_key(maps_of({name: fields.get(name, nothing) for name in self._fields}, given))
        made, _ = self._plans(given.schema)
        return frame.with_key(structs_of(made, [fields[name] for name in self._fields], given))

    def _plan(self, schema: Schema) -> tuple[Schema, Sequence[int]]:
        members = [member_of(schema, name) for name in self._fields]
        return struct({member.name: member.schema for member in members}), [member.index for member in members]
