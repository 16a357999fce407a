"""Flatten: the fields of nested structs and maps at the top level, their names joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from headgate.api import STRING, ConfigDef, DataError, Key, Record, Schema, SchemaType, Struct
from headgate.api.frame import Frame, Values
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import fields_of, maps_of, missing, nulls, with_default
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.text import java_class
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform
from headgate.pipeline.transforms.structs import rebuilt, require_map, require_struct

_PURPOSE: Final = "flattening"
_LEAVES: Final = (str, int, float, bytes, bytearray, memoryview, list, tuple)


@dataclass(frozen=True, slots=True)
class _Node:
    """A field: a leaf, or a nested struct with its own fields."""

    name: str
    schema: Schema
    """Of a leaf, as it is at the top level."""
    nested: Sequence[_Node] | None
    default: Any = None


class Flatten(PartTransform):
    config = ConfigDef(Key("delimiter", STRING, default=".", doc="What stands between the joined names."))

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._delimiter: str = self.settings["delimiter"]
        self._plans = SchemaCache(self._plan)

    def apply(self, record: Record) -> Record:
        schema, value = self.take(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten(require_map(value, _PURPOSE), "", flat)
            return self.put(record, None, flat)
        given = require_struct(value, _PURPOSE)
        made, nodes = self._plans(given.schema)
        values: list[Any] = []
        _collect(nodes, given, values)
        return self.put(record, made, Struct.of(made, values))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> list[Frame]:
        given = self.take_columns(frame)
        gap = _gap(given) if given.schema is None else None
        if gap is not None:
            parts = [each for each in frame.split(gap) if each is not None]
            return [made for each in parts for made in self.apply_to_columns(each)]
        return self.change_known(frame, self._flat)

    def _flat(self, given: Values) -> Values:
        if given.schema is None:
            flat: dict[str, Values] = {}
            self._flatten_columns(fields_of(given), "", flat)
            return maps_of(flat, given)
        made, nodes = self._plans(given.schema)
        columns = dict(_columns(nodes, given))
        return Values.of_fields(columns, len(given), made, nulls(given.data))

    def _joined(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flatten(self, value: Mapping[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for name, item in value.items():
            joined = self._joined(prefix, name)
            if item is None or isinstance(item, _LEAVES):
                flat[joined] = item
            elif isinstance(item, Mapping):
                self._flatten(item, joined, flat)
            elif isinstance(item, Struct):
                raise DataError(
                    f"Flatten transformation does not support class {java_class(item)} for record without schemas"
                    f" (for field {joined})."
                )
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(item)} which is not"
                    " supported by Connect's data API"
                )

    def _flatten_columns(self, fields: Mapping[str, Values], prefix: str, flat: dict[str, Values]) -> None:
        for name, each in fields.items():
            joined = self._joined(prefix, name)
            if pa.types.is_struct(each.data.type) and each.data.null_count < len(each):
                self._flatten_columns(each.fields, joined, flat)
            else:
                flat[joined] = each

    def _plan(self, schema: Schema) -> tuple[Schema, Sequence[_Node]]:
        nodes = self._nodes(schema, "", optional=schema.optional, default=schema.default)
        return rebuilt(schema, ((leaf.name, leaf.schema) for leaf in _leaves(nodes))), nodes

    def _nodes(self, schema: Schema, prefix: str, *, optional: bool, default: Struct | None) -> Sequence[_Node]:
        nodes = []
        for member in schema.fields:
            name = self._joined(prefix, member.name)
            may_miss = optional or member.schema.optional
            fallback = member.schema.default
            if fallback is None and default is not None:
                fallback = default[member.name]
            if member.schema.type is SchemaType.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            if member.schema.type is SchemaType.STRUCT:
                nested = self._nodes(member.schema, name, optional=may_miss, default=fallback)
                nodes.append(_Node(name, member.schema, nested))
            else:
                leaf = replace(member.schema, optional=may_miss, default=fallback)
                nodes.append(_Node(name, leaf, None, member.schema.default))
        return nodes


def _leaves(nodes: Sequence[_Node]) -> Iterator[_Node]:
    for node in nodes:
        if node.nested is None:
            yield node
        else:
            yield from _leaves(node.nested)


def _collect(nodes: Sequence[_Node], value: Struct | None, values: list[Any]) -> None:
    if value is None:  # nothing is set in a struct that is not there; defaults stand in the schema
        values.extend([None] * sum(1 for _ in _leaves(nodes)))
        return
    for node, item in zip(nodes, value.values, strict=True):
        if node.nested is not None:
            _collect(node.nested, item, values)
            continue
        found = node.default if item is None else item
        if found is None and not node.schema.optional:
            name, kind = node.name, node.schema.type.value
            raise DataError(f'Invalid value: null used for required field: "{name}", schema type: {kind}')
        values.append(found)


def _columns(nodes: Sequence[_Node], parent: Values) -> Iterator[tuple[str, Values]]:
    """The same for structs in a column, each with its name."""
    for node, field in zip(nodes, parent.fields.values(), strict=True):
        if node.nested is not None:
            yield from _columns(node.nested, field)
            continue
        found = with_default(field, parent)
        if not node.schema.optional:
            refuse("a required field that is null", missing(found.data, nulls(parent.data)))
        yield node.name, found


def _gap(values: Values) -> pa.Array | None:
    """A mask of maps that have null where others have a map: they have other fields when they are flat."""
    for field in fields_of(values).values():
        if pa.types.is_struct(field.data.type):
            null = missing(field.data, nulls(values.data))
            if null is None:
                inner = _gap(field)
                if inner is not None:
                    return inner
            elif null.true_count < len(values) - values.data.null_count:
                return null
    return None


class FlattenKey(OfKey, Flatten):
    aliases = ("org.apache.kafka.connect.transforms.Flatten$Key",)


class FlattenValue(OfValue, Flatten):
    aliases = ("org.apache.kafka.connect.transforms.Flatten$Value",)
