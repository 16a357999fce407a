"""HeaderFrom: copies or moves fields of the key or value into headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.api import HIGH, LIST, STRING, ConfigDef, ConfigError, Header, Key, Record, Schema, one_of
from headgate.api.frame import Frame, HeaderColumns, Values
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, nulls, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.keys import REPLACE_NULL, some
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import member_of, rebuilt, require_map, require_struct, struct_of, values_of


@dataclass(frozen=True, slots=True)
class _Plan:
    """For the structs of one schema."""

    schema: Schema
    kept: Sequence[int]
    headers: Sequence[tuple[str, int, Schema]]


class HeaderFrom(PartTransform):
    config = ConfigDef(
        Key("fields", LIST, validator=some, importance=HIGH, doc="Names of the fields whose values go into headers."),
        Key("headers", LIST, validator=some, importance=HIGH, doc="Names of the headers, in the order of the fields."),
        Key(
            "operation",
            STRING,
            validator=one_of("move", "copy"),
            importance=HIGH,
            doc="move takes the fields out of the key or value, copy leaves them there.",
        ),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        fields, headers = self.settings["fields"], self.settings["headers"]
        if len(fields) != len(headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._pairs = list(zip(headers, fields, strict=True))
        self._moves = self.settings["operation"] == "move"
        self._gone = frozenset(fields if self._moves else ())
        self._purpose = f"header {self.settings['operation']}"
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._plans = SchemaCache(self._plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None:
            given = require_map(value, self._purpose)
            added = [Header(header, given.get(field)) for header, field in self._pairs]
            kept = {name: item for name, item in given.items() if name not in self._gone}
            return self.put(record, None, kept).replace(headers=(*record.headers, *added))
        struct = require_struct(value, self._purpose)
        plan = self._plans(schema)
        items = values_of(struct, replace_null=self._replace_null)
        added = [Header(header, items[index], member) for header, index, member in plan.headers]
        changed = record.replace(headers=(*record.headers, *added))
        if not self._moves:
            return changed
        return self.put(changed, plan.schema, struct_of(plan.schema, [items[index] for index in plan.kept]))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        refuse("null where fields are taken from", nulls(given.data))
        fields = fields_of(given, replace_null=self._replace_null)
        kept = {name: each for name, each in fields.items() if name not in self._gone}
        if given.schema is None:
            nothing = Values.nulls(frame.count)
            added = [(header, fields.get(field, nothing)) for header, field in self._pairs]
            changed = self.put_columns(frame, maps_of(kept, given)) if self._moves else frame
        else:
            plan = self._plans(given.schema)
            added = [(header, fields[field]) for header, field in self._pairs]
            changed = self.put_columns(frame, structs_of(plan.schema, kept.values(), given)) if self._moves else frame
        return changed.with_headers(HeaderColumns(frame.headers.given, (*frame.headers.added, *added)))

    def _plan(self, schema: Schema) -> _Plan:
        taken = [(header, member_of(schema, name)) for header, name in self._pairs]
        headers = [(header, member.index, member.schema) for header, member in taken]
        kept = [member for member in schema.fields if member.name not in self._gone]
        made = rebuilt(schema, ((member.name, member.schema) for member in kept))
        return _Plan(made, [member.index for member in kept], headers)


class HeaderFromKey(OfKey, HeaderFrom):
    aliases = ("org.apache.kafka.connect.transforms.HeaderFrom$Key",)


class HeaderFromValue(OfValue, HeaderFrom):
    aliases = ("org.apache.kafka.connect.transforms.HeaderFrom$Value",)
