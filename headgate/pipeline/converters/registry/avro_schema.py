"""Avro schemas of Connect's schemas, with the properties and their order that Confluent's AvroConverter writes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api.schema import DECIMAL_NAME
from headgate.pipeline import logical
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.schemas import has_text_keys, inner


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """Of one AvroConverter."""

    enhanced: bool = False
    """Enums stay enums, and unions tell records of one name in two namespaces apart."""
    meta_data: bool = True
    """Whether Avro schemas carry what only Connect knows."""


def avro_schema(schema: Schema, options: AvroOptions) -> Any:
    """The Avro schema, as a tree of JSON. Raises DataError."""
    return _Builder(options).tree(schema, None)


def avro_text(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def record_name(tree: Any) -> str | None:
    """The full name, if this is the schema of a record; of an optional one too."""
    if isinstance(tree, list):
        tree = next((each for each in tree if isinstance(each, dict)), None) if len(tree) == 2 else None
    if not isinstance(tree, dict) or tree.get("type") != "record":
        return None
    namespace = tree.get("namespace")
    return f"{namespace}.{tree['name']}" if namespace and "." not in tree["name"] else str(tree["name"])


class _Builder:
    """Of one schema: Avro defines a name once, and refers to it from then on."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._defined: dict[str, Schema] = {}
        self._nameless: list[tuple[Schema, str]] = []

    def tree(self, schema: Schema, enclosing: str | None) -> Any:
        if schema.type is SchemaType.STRUCT and schema.name == names.UNION:
            members = [self._base(_required(member.schema), enclosing) for member in schema.fields]
            return ["null", *members] if schema.optional else members
        made = self._base(_required(schema), enclosing)
        if not schema.optional:
            return made
        # A default must fit the first of a union.
        return [made, "null"] if schema.default is not None else ["null", made]

    def _base(self, schema: Schema, enclosing: str | None) -> Any:
        """Without the union that makes it optional."""
        kind = schema.type
        if kind is SchemaType.STRUCT:
            return self._record(schema, enclosing)
        if kind is SchemaType.STRING and self._options.enhanced and names.is_enum(schema):
            return self._enum(schema, enclosing)
        made: dict[str, Any] = {"type": names.TYPES[kind]}
        if kind is SchemaType.ARRAY:
            (items,) = inner(schema)
            made["items"] = self.tree(items, enclosing)
        elif has_text_keys(schema):
            _, values = inner(schema)
            made["values"] = self.tree(values, enclosing)
        elif kind is SchemaType.MAP:
            made = {"type": "array", "items": self._map_entry(schema, enclosing)}
        elif schema.name == DECIMAL_NAME:
            made["scale"] = logical.scale_of(schema)
            made["precision"] = int(schema.parameters.get(names.PRECISION, names.DEFAULT_PRECISION))
        made |= self._properties(schema)
        if schema.name is not None and schema.name in names.LOGICAL:
            made["logicalType"] = names.LOGICAL[schema.name]
        made |= {key: value for key, value in schema.parameters.items() if key.startswith("avro")}
        return made["type"] if made.keys() == {"type"} else made

    def _properties(self, schema: Schema) -> dict[str, Any]:
        if not self._options.meta_data:
            return {}
        parameters = {key: value for key, value in schema.parameters.items() if key != names.FIELD_DEFAULT}
        default = None if names.FIELD_DEFAULT in schema.parameters else schema.default
        short = schema.type in (SchemaType.INT8, SchemaType.INT16)
        made = {
            "connect.doc": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": parameters or None,
            "connect.default": default_tree(schema, default),
            "connect.name": schema.name,
            "connect.type": schema.type.value.lower() if short else None,
        }
        return {key: value for key, value in made.items() if value is not None}

    # --- named types --------------------------------------------------------------------------------------------------

    def _record(self, schema: Schema, enclosing: str | None) -> Any:
        plain = replace(schema, default=None)
        full = self._name_of(plain)
        if reference := self._reference(full, plain, enclosing):
            return reference
        namespace, made = _named("record", full, enclosing)
        if names.RECORD_DOC in schema.parameters:
            made["doc"] = schema.parameters[names.RECORD_DOC]
        made["fields"] = [
            self._field(member.name, member.schema, schema.parameters.get(names.FIELD_DOC + member.name), namespace)
            for member in schema.fields
        ]
        return made | self._properties(schema)

    def _name_of(self, schema: Schema) -> str:
        if schema.name is not None:
            return names.check_name(schema.name, "schema name")
        found = next((name for known, name in self._nameless if known == schema), None)
        if found is None:
            number = len(self._nameless) + 1
            found = f"{names.NAMESPACE}.{names.DEFAULT_NAME}{number if number > 1 else ''}"
            self._nameless.append((schema, found))
        return found

    def _field(self, name: str, schema: Schema, doc: str | None, enclosing: str | None) -> dict[str, Any]:
        made = {"name": names.check_name(name, "field name"), "type": self.tree(schema, enclosing)}
        if doc is not None:
            made["doc"] = doc
        if schema.default is not None:
            made["default"] = default_tree(schema, schema.default)
        elif schema.optional:
            made["default"] = None
        return made

    def _enum(self, schema: Schema, enclosing: str | None) -> Any:
        full = names.check_name(schema.parameters[names.ENUM], "enum name")
        plain = replace(schema, default=None)
        if reference := self._reference(full, plain, enclosing):
            return reference
        _, made = _named("enum", full, enclosing)
        simple = names.split(full)[1]
        if doc := schema.parameters.get(names.ENUM_DOC + simple):
            made["doc"] = doc
        made["symbols"] = names.symbols(schema)
        if default := schema.parameters.get(names.ENUM_DEFAULT + simple):
            made["default"] = default
        return made | self._properties(schema)

    def _map_entry(self, schema: Schema, enclosing: str | None) -> Any:
        """Avro's maps have string keys only; others are lists of records with key and value."""
        keys, values = inner(schema)
        if schema.name is None:
            known = Schema(SchemaType.MAP, key_schema=keys, value_schema=values)
            full = self._free_entry_name(known)
        else:
            known, full = schema, names.check_name(schema.name, "schema name")
        if reference := self._reference(full, known, enclosing):
            return reference
        namespace, made = _named("record", full, enclosing)
        made["fields"] = [self._field("key", keys, None, namespace), self._field("value", values, None, namespace)]
        if schema.name is not None or full != f"{names.NAMESPACE}.{names.MAP_ENTRY}":
            made[names.INTERNAL_TYPE] = names.MAP_ENTRY
        return made

    def _free_entry_name(self, known: Schema) -> str:
        number = 1
        while True:
            full = f"{names.NAMESPACE}.{names.MAP_ENTRY}{number if number > 1 else ''}"
            if self._defined.get(full, known) == known:
                return full
            number += 1

    def _reference(self, full: str, schema: Schema, enclosing: str | None) -> str | None:
        """The name alone, if it has been defined. Raises DataError if for something else."""
        known = self._defined.setdefault(full, schema)
        if known is schema:
            return None
        if known != schema:
            raise DataError(f"Two different schemas have the name {full}, which Avro does not allow")
        namespace, simple = names.split(full)
        return simple if namespace == enclosing else full


def _required(schema: Schema) -> Schema:
    # Always a new one, so that the second meeting of one object is not taken for its first.
    return replace(schema, optional=False)


def _named(kind: str, full: str, enclosing: str | None) -> tuple[str | None, dict[str, Any]]:
    namespace, simple = names.split(full)
    made: dict[str, Any] = {"type": kind, "name": simple}
    if namespace != enclosing:
        made["namespace"] = namespace or ""
    return namespace, made


# --- defaults ---------------------------------------------------------------------------------------------------------


def default_tree(schema: Schema, value: Any) -> Any:
    """A default as Avro's schemas have it: JSON, with bytes as text of as many characters. Raises DataError."""
    if value is None:
        return None
    to_base = logical.to_base(schema)
    base = value if to_base is None else to_base(value)
    if isinstance(base, bytes | bytearray | memoryview):
        return bytes(base).decode("latin-1")
    if isinstance(base, float) and not math.isfinite(base):
        return "NaN" if math.isnan(base) else "Infinity" if base > 0 else "-Infinity"
    if schema.type is SchemaType.ARRAY:
        (items,) = inner(schema)
        return [default_tree(items, item) for item in base]
    if schema.type is SchemaType.MAP:
        keys, values = inner(schema)
        if has_text_keys(schema):
            return {key: default_tree(values, item) for key, item in base.items()}
        return [{"key": default_tree(keys, key), "value": default_tree(values, item)} for key, item in base.items()]
    if isinstance(base, Struct):
        return {each.name: default_tree(each.schema, base[each.name]) for each in schema.fields}
    return base


def raw_default(schema: Schema, tree: Any) -> Any:
    """The other way: a default as Avro's decoder would give it. Raises DataError."""
    if tree is None:
        return None
    kind = schema.type
    try:
        if kind is SchemaType.BYTES:
            return tree.encode("latin-1") if isinstance(tree, str) else base64.b64decode(tree)
        if kind in (SchemaType.FLOAT32, SchemaType.FLOAT64):
            return float(tree)
        if kind is SchemaType.ARRAY:
            (items,) = inner(schema)
            return [raw_default(items, item) for item in tree]
        if kind is SchemaType.MAP:
            keys, values = inner(schema)
            if isinstance(tree, Mapping):
                return {key: raw_default(values, item) for key, item in tree.items()}
            pairs = ((each["key"], each["value"]) if isinstance(each, Mapping) else each for each in tree)
            return [{"key": raw_default(keys, key), "value": raw_default(values, item)} for key, item in pairs]
        if kind is SchemaType.STRUCT:
            return {
                each.name: raw_default(each.schema, tree[each.name])
                if each.name in tree
                else raw_default(each.schema, default_tree(each.schema, each.schema.default))  # as Avro fills it
                for each in schema.fields
            }
    except (TypeError, ValueError, KeyError) as error:
        raise DataError(f"Invalid default value {tree!r} for {schema}: {error}") from error
    return tree
