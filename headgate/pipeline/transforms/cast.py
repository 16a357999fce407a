"""Cast: fields, or the whole key or value, as another primitive type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headgate.api import HIGH, LIST, ConfigDef, ConfigError, DataError, Key, Record, Schema, SchemaType
from headgate.api.frame import Frame, NotByColumns, Values, arrow_type
from headgate.pipeline.columns.casts import cast_values
from headgate.pipeline.columns.refusing import refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, structs_of
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms import casts
from headgate.pipeline.transforms.keys import REPLACE_NULL
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import members_of, rebuilt, require_map, require_struct, struct_of, values_of

_PURPOSE: Final = "cast types"


@dataclass(frozen=True, slots=True)
class _Plan:
    """For the structs of one schema."""

    schema: Schema
    casts: Sequence[tuple[int, casts.Cast]]


class Cast(PartTransform):
    config = ConfigDef(
        Key(
            "spec",
            LIST,
            validator=lambda _, value: _check(value),
            importance=HIGH,
            doc="Fields and their new types, as field1:type,field2:type; or one type for the whole key or value. "
            "Types are int8, int16, int32, int64, float32, float64, boolean and string. Bytes become strings only.",
        ),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        spec = _parse(self.settings["spec"])
        self._target = spec.get(None)
        self._whole = casts.cast_to(self._target, None) if self._target is not None else None
        self._types = {name: target for name, target in spec.items() if name is not None}
        self._schemaless = [(name, casts.cast_to(target, None)) for name, target in self._types.items()]
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._plans = SchemaCache(self._plan)
        self._whole_plans = SchemaCache(self._whole_plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if value is None:
            return record
        if self._whole is not None:
            made, cast = (None, self._whole) if schema is None else self._whole_plans(schema)
            return self.put(record, made, cast(value))
        if schema is None:
            given = require_map(value, _PURPOSE)
            changed = dict(given)
            for name, cast in self._schemaless:
                try:
                    changed[name] = cast(given.get(name))
                except DataError as error:
                    error.within(name)
                    raise
            return self.put(record, None, changed)
        plan = self._plans(schema)
        items = values_of(require_struct(value, _PURPOSE), replace_null=self._replace_null)
        for index, cast in plan.casts:
            try:
                items[index] = cast(items[index])
            except DataError as error:
                error.within(schema.fields[index].name)
                raise
        return self.put(record, plan.schema, struct_of(plan.schema, items))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> list[Frame]:
        return self.change_known(frame, self._columns if self._target is None else self._whole_column)

    def _columns(self, given: Values) -> Values:
        fields = fields_of(given, replace_null=self._replace_null)
        nothing = Values.nulls(len(given))
        wanted = {name: kind for name, kind in self._types.items() if given.schema is None or name in fields}
        changed = {name: Values(cast_values(fields.get(name, nothing), kind)) for name, kind in wanted.items()}
        if given.schema is None:
            return maps_of({**fields, **changed}, given)
        return structs_of(self._plans(given.schema).schema, {**fields, **changed}.values(), given)

    def _whole_column(self, given: Values) -> Values:
        assert self._target is not None
        made = None if given.schema is None else self._whole_plans(given.schema)[0]
        cast = cast_values(given, self._target)
        if made is not None and arrow_type(made) != cast.type:
            raise NotByColumns("a name that is no longer true of the schema", given.data.is_valid())
        return Values(cast, made)

    def _plan(self, schema: Schema) -> _Plan:
        members = [(name, self._cast_schema(name, member)) for name, member in members_of(schema)]
        if schema.default is not None:
            raise casts.refusal("STRUCT")  # the default would have to be cast, and there is no cast of structs
        found = [
            (member.index, casts.cast_to(self._types[member.name], member.schema))
            for member in schema.fields
            if member.name in self._types
        ]
        return _Plan(rebuilt(schema, members, optional=schema.optional), found)

    def _cast_schema(self, name: str, member: Schema) -> Schema:
        target = self._types.get(name)
        if target is None:
            return member
        try:
            return Schema(target, member.optional, casts.cast_to(target, member)(member.default))
        except DataError as error:
            error.within(name)
            raise

    def _whole_plan(self, schema: Schema) -> tuple[Schema, casts.Cast]:
        assert self._target is not None
        if schema.type not in casts.SOURCES:
            raise casts.refusal(schema.type.value)
        cast = casts.cast_to(self._target, schema)
        return replace(schema, type=self._target, default=cast(schema.default)), cast


def _check(spec: Sequence[str] | None) -> None:
    if not spec:
        raise ConfigError("Must specify at least one field to cast.")
    _parse(spec)


def _parse(spec: Sequence[str]) -> dict[str | None, SchemaType]:
    """The target of each field; that of the whole value has None as name."""
    found: dict[str | None, SchemaType] = {}
    for entry in spec:
        name, colon, target = entry.rstrip(":").partition(":")
        if ":" in target:
            raise ConfigError.invalid("spec", spec, f"Invalid cast: {entry}")
        found[name.strip() if colon else None] = _target(target if colon else name)
    if None in found and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast"
            " in their spec"
        )
    return found


def _target(name: str) -> SchemaType:
    try:
        target = SchemaType[name.strip().upper()]
    except KeyError:
        raise ConfigError(f"Invalid type found in casting spec: {name.strip()}") from None
    if target not in casts.TARGETS:
        known = ", ".join(each.value for each in casts.TARGETS)
        raise ConfigError(
            f"Cast transformation does not support casting to {target.value}; supported types are [{known}]"
        )
    return target


class CastKey(OfKey, Cast):
    aliases = ("org.apache.kafka.connect.transforms.Cast$Key",)


class CastValue(OfValue, Cast):
    aliases = ("org.apache.kafka.connect.transforms.Cast$Value",)
