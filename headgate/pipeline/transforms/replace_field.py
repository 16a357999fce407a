"""ReplaceField: leaves fields out, keeps only some, gives new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.api import LIST, ConfigDef, ConfigError, Key, Record, Schema
from headgate.api.frame import Frame, Values
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.keys import REPLACE_NULL, no_blanks
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import rebuilt, require_map, require_struct, struct_of, values_of

_PURPOSE: Final = "field replacement"


class ReplaceField(PartTransform):
    config = ConfigDef(
        Key(
            "exclude",
            LIST,
            default=[],
            validator=no_blanks,
            doc="Fields to leave out, even when they are among the fields to include.",
        ),
        Key("include", LIST, default=[], validator=no_blanks, doc="The only fields to keep; all when this is empty."),
        Key(
            "renames",
            LIST,
            default=[],
            validator=lambda _, value: _check(value),
            doc="New names of fields, as old1:new1,old2:new2.",
        ),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._exclude = frozenset(self.settings["exclude"])
        self._include = frozenset(self.settings["include"])
        self._renames = _parse(self.settings["renames"])
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._plans = SchemaCache(self._plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if value is None:
            return record
        if schema is None:
            return self.put(record, None, self._filtered(require_map(value, _PURPOSE)))
        given = require_struct(value, _PURPOSE)
        made, kept = self._plans(given.schema)
        items = values_of(given, replace_null=self._replace_null)
        return self.put(record, made, struct_of(made, [items[index] for index in kept]))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> list[Frame]:
        return self.change_known(frame, self._columns)

    def _columns(self, given: Values) -> Values:
        fields = fields_of(given, replace_null=self._replace_null)
        if given.schema is None:
            return maps_of(self._filtered(fields), given)
        made, kept = self._plans(given.schema)
        columns = list(fields.values())
        return structs_of(made, [columns[index] for index in kept], given)

    def _filtered(self, value: Mapping[str, Any]) -> dict[str, Any]:
        exclude, include, rename = self._exclude, self._include, self._renames.get
        if include:
            return {rename(name, name): item for name, item in value.items() if name in include and name not in exclude}
        return {rename(name, name): item for name, item in value.items() if name not in exclude}

    def _plan(self, schema: Schema) -> tuple[Schema, Sequence[int]]:
        wanted = self._include or {member.name for member in schema.fields}
        kept = [member for member in schema.fields if member.name in wanted and member.name not in self._exclude]
        made = rebuilt(schema, ((self._renames.get(member.name, member.name), member.schema) for member in kept))
        return made, [member.index for member in kept]


def _check(renames: Sequence[str] | None) -> None:
    _parse(renames or ())


def _parse(renames: Sequence[str]) -> dict[str, str]:
    found = {}
    for entry in renames:
        parts = entry.rstrip(":").split(":")
        if len(parts) != 2:
            raise ConfigError.invalid("renames", list(renames), f"Invalid rename mapping: {entry}")
        found[parts[0]] = parts[1]
    return found


class ReplaceFieldKey(OfKey, ReplaceField):
    aliases = ("org.apache.kafka.connect.transforms.ReplaceField$Key",)


class ReplaceFieldValue(OfValue, ReplaceField):
    aliases = ("org.apache.kafka.connect.transforms.ReplaceField$Value",)
