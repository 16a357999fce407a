"""MaskField: hides fields behind an empty value of their type, or behind a given text or number."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow.compute as pc

from headgate.api import DataError, Record, Schema, SchemaType
from headgate.api.config import HIGH, LIST, LOW, STRING, ConfigDef, Key, non_empty
from headgate.api.frame import Frame, NotByColumns, Values
from headgate.java.numbers import cut_decimal, float32, parse_decimal
from headgate.pipeline.columns.objects import objects
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, nulls, repeated, single, structs_of
from headgate.pipeline.schemas import BITS, SchemaCache
from headgate.pipeline.text import java_class
from headgate.pipeline.transforms.keys import REPLACE_NULL, some_and_no_blanks
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import require_map, require_struct, struct_of, values_of

_PURPOSE: Final = "mask fields"
_EMPTY: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (bool, lambda _: False),
    (int, lambda _: 0),
    (float, lambda _: 0.0),
    (str, lambda _: ""),
    (Decimal, lambda value: value - value),  # keeps the scale, which a schema insists on
    (dt.datetime, lambda _: dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    (dt.date, lambda _: dt.date(1970, 1, 1)),
    (dt.time, lambda _: dt.time()),
    (list, lambda _: []),
    (tuple, lambda _: []),
    (Mapping, lambda _: {}),
)


class MaskField(PartTransform):
    config = ConfigDef(
        Key("fields", LIST, validator=some_and_no_blanks, importance=HIGH, doc="Names of the fields to mask."),
        Key(
            "replacement",
            STRING,
            default=None,
            validator=non_empty,
            importance=LOW,
            doc="What stands in all of these fields instead, which must be strings or numbers then.",
        ),
        REPLACE_NULL,
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._fields: Sequence[str] = list(dict.fromkeys(self.settings["fields"]))
        self._replacement: str | None = self.settings["replacement"]
        self._replace_null: bool = self.settings["replace.null.with.default"]
        self._masked = SchemaCache(lambda schema: [each for each in schema.fields if each.name in self._fields])

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if schema is None:
            given = require_map(value, _PURPOSE)
            changed = dict(given)
            for name in self._fields:
                changed[name] = self._mask(name, given.get(name), None)
            return self.put(record, None, changed)
        struct = require_struct(value, _PURPOSE)
        items = values_of(struct, replace_null=self._replace_null)
        for member in self._masked(struct.schema):
            items[member.index] = self._mask(member.name, items[member.index], member.schema)
        return self.put(record, schema, struct_of(struct.schema, items))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        given = self.take_columns(frame)
        refuse("null where fields are masked", nulls(given.data))
        fields = fields_of(given, replace_null=self._replace_null)
        nothing = Values.nulls(frame.count)
        names = [name for name in self._fields if given.schema is None or name in fields]
        masked = {name: self._mask_column(name, fields.get(name, nothing)) for name in names}
        changed = {**fields, **masked}
        if given.schema is None:
            return self.put_columns(frame, maps_of(changed, given))
        return self.put_columns(frame, structs_of(given.schema, changed.values(), given))

    def _mask_column(self, name: str, values: Values) -> Values:
        if values.data.null_count == len(values):
            return values
        known = values.data.is_valid()
        first = pc.index(known, value=True).as_py()
        (sample,) = objects(Values(values.data.slice(first, 1), values.schema))
        try:
            mask = single(self._mask(name, sample, values.schema), values.schema)  # the same for all of a type
        except DataError:
            mask = None
        if mask is None:
            raise NotByColumns("a field that cannot be masked", known)
        return Values(repeated(mask, len(values), nulls(values.data)), values.schema)

    def _mask(self, name: str, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        try:
            if self._replacement is not None:
                return self._replaced(self._replacement, value, schema)
            for kind, empty in _EMPTY:
                if isinstance(value, kind):
                    return empty(value)
            raise DataError(f"Cannot mask value of type: class {java_class(value)}")
        except DataError as error:
            error.within(name)
            raise

    @staticmethod
    def _replaced(replacement: str, value: Any, schema: Schema | None) -> Any:
        if isinstance(value, str):
            return replacement
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise DataError(f"Cannot mask value of type class {java_class(value)} with custom replacement.")
        try:
            number = parse_decimal(replacement)
        except ValueError:
            kind = "number" if isinstance(value, Decimal) else "a number"
            raise DataError(f"Unable to convert {replacement} (class java.lang.String) to {kind}") from None
        if isinstance(value, int):
            return cut_decimal(number, BITS.get(schema.type, 64) if schema is not None else 64)
        if isinstance(value, Decimal):
            return number
        narrow = schema is not None and schema.type is SchemaType.FLOAT32
        return float32(float(number)) if narrow else float(number)


class MaskFieldKey(OfKey, MaskField):
    aliases = ("org.apache.kafka.connect.transforms.MaskField$Key",)


class MaskFieldValue(OfValue, MaskField):
    aliases = ("org.apache.kafka.connect.transforms.MaskField$Value",)
