"""Structs, arrays and maps of what other generators make."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import pyarrow as pa

from headgate.api import Schema, SchemaType, schema
from headgate.api.frame import arrow_type
from headgate.connectors.datagen.generator import LEAST_WIDTH, BadSchema, Generator
from headgate.connectors.datagen.random_rows import Ints, RandomRows, part_of, stream_of
from headgate.connectors.datagen.texts import check_size, offsets_of

MOST_FIELDS: Final = 1000
"""Of a schema."""
DEEPEST: Final = 16
"""How far structs, arrays and maps stand in others."""
LARGEST: Final = 1 << 20
"""Bytes of a record: what Kafka takes, unless it is told to take more."""
_WHOLE: Final = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)


@dataclass(frozen=True)
class StructMember:
    """A field of a struct."""

    name: str
    generator: Generator
    by: str | None = None
    """A field of whole numbers before this one: where it has the same value, this has the same one, too."""

    def check(self, before: Mapping[str, Generator]) -> None:
        """Whether it can follow these. Raises BadSchema."""
        if self.name in before:
            raise BadSchema(f"there are two fields {self.name}")
        if self.by is not None and (self.by not in before or not _is_whole(before[self.by].schema)):
            raise BadSchema(f"{self.name} cannot depend on {self.by!r}: that is no field of whole numbers before it")


@dataclass(frozen=True)
class Nested(Generator):
    """Of other generators."""

    @property
    @abstractmethod
    def inner(self) -> Sequence[Generator]: ...

    @property
    def fields(self) -> int:
        return sum(each.fields for each in self.inner)

    @property
    def depth(self) -> int:
        return 1 + max(each.depth for each in self.inner)

    @cached_property
    def arrow_type(self) -> pa.DataType:
        return arrow_type(self.schema)

    def checked(self) -> Self:
        """Itself, if it will not wear a worker down. Raises BadSchema."""
        if self.depth > DEEPEST:
            raise BadSchema(f"structs, arrays and maps are at most {DEEPEST} deep")
        if self.fields > MOST_FIELDS:
            raise BadSchema(f"there are more than {MOST_FIELDS} fields")
        if self.width > LARGEST:
            raise BadSchema(f"a record could take {self.width} bytes, and {LARGEST} is the most")
        return self


@dataclass(frozen=True)
class Structs(Nested):
    schema: Schema
    members: Sequence[StructMember]

    @classmethod
    def of(cls, members: Sequence[StructMember], name: str | None = None) -> Structs:
        """Raises BadSchema."""
        if not members:
            raise BadSchema("a struct has at least one field")
        known: dict[str, Generator] = {}
        for member in members:
            member.check(known)
            known[member.name] = member.generator
        kind = schema.struct({each: found.schema for each, found in known.items()}, name=name)
        return cls(kind, members).checked()

    @property
    def inner(self) -> Sequence[Generator]:
        return [member.generator for member in self.members]

    @property
    def width(self) -> int:
        return sum(each.width for each in self.inner)

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        made: dict[str, pa.Array] = {}
        for member in self.members:
            chosen = rows if member.by is None else rows.by(_whole(made[member.by]))
            # By its name: a field that is added changes nothing in the others.
            made[member.name] = member.generator.column(chosen, stream_of(f"{stream} {member.name}"))
        return pa.StructArray.from_arrays(list(made.values()), fields=list(self.arrow_type))


@dataclass(frozen=True)
class Arrays(Nested):
    schema: Schema
    items: Generator
    least: int
    most: int

    @classmethod
    def of(cls, items: Generator, least: int, most: int) -> Arrays:
        """Raises BadSchema."""
        check_size(least, most)
        return cls(schema.array(items.schema), items, least, most).checked()

    @property
    def inner(self) -> Sequence[Generator]:
        return [self.items]

    @property
    def width(self) -> int:
        return LEAST_WIDTH + self.items.width * self.most

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        counts = _counts(rows, stream, self.least, self.most)
        items = self.items.column(rows.items(counts), part_of(stream, 1))
        return pa.ListArray.from_arrays(offsets_of(counts), items, type=self.arrow_type)


@dataclass(frozen=True)
class Maps(Nested):
    """A key that comes twice is there once, so a map may have fewer entries than `least`."""

    schema: Schema
    keys: Generator
    values: Generator
    least: int
    most: int

    @classmethod
    def of(cls, keys: Generator, values: Generator, least: int, most: int) -> Maps:
        """Raises BadSchema."""
        check_size(least, most)
        if keys.schema != schema.STRING:
            raise BadSchema("the keys of a map are texts, and not null")
        return cls(schema.mapping(keys.schema, values.schema), keys, values, least, most).checked()

    @property
    def inner(self) -> Sequence[Generator]:
        return [self.keys, self.values]

    @property
    def width(self) -> int:
        return LEAST_WIDTH + (self.keys.width + self.values.width) * self.most

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        counts = _counts(rows, stream, self.least, self.most)
        entries = rows.items(counts)
        keys = self.keys.column(entries, part_of(stream, 1))
        values = self.values.column(entries, part_of(stream, 2))
        owners = np.repeat(np.arange(len(rows)), counts)
        codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
        _, first = np.unique(owners * (len(codes) + 1) + codes, return_index=True)
        if len(first) < len(codes):
            kept = np.sort(first)
            keys, values = keys.take(pa.array(kept)), values.take(pa.array(kept))
            counts = np.bincount(owners[kept], minlength=len(rows))
        return pa.MapArray.from_arrays(offsets_of(counts), keys, values, type=self.arrow_type)


def _counts(rows: RandomRows, stream: int, least: int, most: int) -> Ints:
    return least + rows.below(most - least + 1, part_of(stream, 0)).view(np.int64)


def _is_whole(kind: Schema) -> bool:
    return kind.type in _WHOLE and kind.name is None


def _whole(column: pa.Array) -> Ints:
    found: Ints = column.fill_null(0).to_numpy().astype(np.int64)
    return found


# --- without schemas --------------------------------------------------------------------------------------------------


def plain_type(kind: pa.DataType) -> pa.DataType:
    """What a column is cast to whose values have no schema: what JsonConverter makes of logical types, days and
    milliseconds; and of decimals, numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, plain_type(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, plain_type(kind.item_type))
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(kind) or pa.types.is_integer(kind) else kind


def has_maps(kind: Schema) -> bool:
    inner = [kind.value_schema, *(member.schema for member in kind.fields)]
    return kind.type is SchemaType.MAP or any(each is not None and has_maps(each) for each in inner)
