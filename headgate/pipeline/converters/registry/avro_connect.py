"""Connect's schemas of Avro schemas, whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headgate.api import DataError, Field, Schema, SchemaType
from headgate.api.schema import DATE, INT8, INT16, STRING, TIME, TIMESTAMP, decimal
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.avro_schema import AvroOptions, raw_default
from headgate.pipeline.converters.registry.avro_value import decoder

# Of the three that Avro calls int, the last.
_PLAIN: Final[Mapping[str, Schema]] = {
    name: Schema(kind) for kind, name in names.TYPES.items() if kind not in (SchemaType.ARRAY, SchemaType.MAP)
}
_SHORT: Final[Mapping[str, Schema]] = {"int8": INT8, "int16": INT16}
_LOGICAL: Final[Mapping[tuple[str, str], Schema]] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}
_NAMED: Final = ("record", "error", "enum", "fixed")


def connect_schema(text: str, used: Mapping[str, str], options: AvroOptions) -> Schema:
    """`used` are the schemas that this one refers to, by name. Raises DataError."""
    reader = _Reader(options)
    try:
        for each in used.values():
            reader.define(json.loads(each), None)
        tree = json.loads(text)
        reader.define(tree, None)
        return reader.schema(tree, None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"The registry's schema is no Avro schema: {type(error).__name__}: {error}") from error


class _Reader:
    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._defined: dict[str, tuple[dict[str, Any], str | None]] = {}
        self._open: set[str] = set()

    def define(self, tree: Any, enclosing: str | None) -> None:
        """Remembers all named types below."""
        if isinstance(tree, list):
            for each in tree:
                self.define(each, enclosing)
        elif isinstance(tree, dict):
            inner = enclosing
            if tree["type"] in _NAMED:
                full = _full_name(tree, enclosing)
                inner = names.split(full)[0]
                self._defined[full] = (tree, enclosing)
            for each in (tree["type"], tree.get("items"), tree.get("values")):
                if isinstance(each, dict | list):
                    self.define(each, inner)
            for field in tree.get("fields", ()):
                self.define(field["type"], inner)

    def schema(self, tree: Any, enclosing: str | None, default: Any = None) -> Schema:
        if isinstance(tree, list):
            return self._union(tree, enclosing, default)
        if isinstance(tree, str):
            if tree in _PLAIN:
                return self._finished(_PLAIN[tree], {}, default, None)
            return self._referenced(tree, enclosing, default)
        kind = tree["type"]
        if isinstance(kind, dict | list):
            return self.schema(kind, enclosing, default)
        if kind in _NAMED:
            return self._named(tree, enclosing, default)
        if kind in ("array", "map"):
            return self._finished(self._collection(kind, tree, enclosing), tree, default, None)
        if kind not in _PLAIN:
            return self._referenced(kind, enclosing, default)
        return self._finished(_base(kind, tree), tree, default, None)

    def _referenced(self, name: str, enclosing: str | None, default: Any) -> Schema:
        found = self._defined.get(_qualified(name, enclosing)) or self._defined.get(name)
        if found is None:
            if name == "null":
                raise DataError("Standalone null schemas are not supported by this converter")
            raise DataError(f"The Avro schema refers to {name}, which it does not define")
        return self._named(*found, default)

    def _union(self, tree: list[Any], enclosing: str | None, default: Any) -> Schema:
        members = [each for each in tree if not _is_null(each)]
        optional = len(members) < len(tree)
        if optional and len(members) == 1:
            # A default belongs to the first type; null says nothing.
            return replace(self.schema(members[0], enclosing, default), optional=True)
        fields: dict[str, Field] = {}
        for each in members:
            schema = self.schema(each, enclosing).as_optional()
            name = self._member_name(each, enclosing)
            if name in fields:
                raise DataError(f"Multiple union schemas map to the Connect union field name {name}")
            fields[name] = Field(name, len(fields), schema)
        return Schema(SchemaType.STRUCT, optional, name=names.UNION, fields=tuple(fields.values()))

    def _member_name(self, tree: Any, enclosing: str | None) -> str:
        kind = tree if isinstance(tree, str) else tree["type"]
        if kind in _NAMED:
            full = _full_name(tree, enclosing)
        elif kind in _PLAIN or kind in ("array", "map"):
            return str(kind)
        else:
            full = _qualified(kind, enclosing)
        return names.member_name(full, self._options.enhanced)

    def _collection(self, kind: str, tree: dict[str, Any], enclosing: str | None) -> Schema:
        if kind == "map":
            return Schema(SchemaType.MAP, key_schema=STRING, value_schema=self.schema(tree["values"], enclosing))
        entry = self._map_entry(tree["items"], enclosing)
        if entry is None:
            return Schema(SchemaType.ARRAY, value_schema=self.schema(tree["items"], enclosing))
        fields = {field["name"]: field for field in entry["fields"]}
        if fields.keys() != {"key", "value"}:
            raise DataError("Found map encoded as array of key-value pairs, but its records are not of key and value")
        inner = names.split(_full_name(entry, enclosing))[0]
        keys, values = (self.schema(fields[each]["type"], inner, fields[each].get("default")) for each in fields)
        return Schema(SchemaType.MAP, key_schema=keys, value_schema=values)

    def _map_entry(self, items: Any, enclosing: str | None) -> dict[str, Any] | None:
        if isinstance(items, str) and items not in _PLAIN:
            items = self._defined.get(_qualified(items, enclosing), (items, None))[0]
        if not isinstance(items, dict) or items["type"] != "record":
            return None
        named = _full_name(items, enclosing) == f"{names.NAMESPACE}.{names.MAP_ENTRY}"
        return items if named or items.get(names.INTERNAL_TYPE) == names.MAP_ENTRY else None

    def _named(self, tree: dict[str, Any], enclosing: str | None, default: Any) -> Schema:
        full = _full_name(tree, enclosing)
        match tree["type"]:
            case "fixed":
                return self._finished(_base("bytes", tree), tree, default, None)
            case "enum":
                return self._finished(self._enum(tree, full), tree, default, full)
        if full in self._open:
            raise DataError(f"The Avro schema of {full} contains itself, which no schema of Connect can")
        self._open.add(full)
        parameters: dict[str, str] = {}
        if self._options.meta_data and tree.get("doc") is not None:
            parameters[names.RECORD_DOC] = tree["doc"]
        fields = []
        for index, field in enumerate(tree["fields"]):
            if self._options.meta_data and field.get("doc") is not None:
                parameters[names.FIELD_DOC + field["name"]] = field["doc"]
            schema = self.schema(field["type"], names.split(full)[0], field.get("default"))
            fields.append(Field(field["name"], index, schema))
        self._open.discard(full)
        made = Schema(SchemaType.STRUCT, parameters=parameters, fields=tuple(fields))
        return self._finished(made, tree, default, full)

    def _enum(self, tree: dict[str, Any], full: str) -> Schema:
        parameters: dict[str, str] = {}
        if self._options.meta_data:
            if tree.get("doc") is not None:
                parameters[names.ENUM_DOC + names.split(full)[1]] = tree["doc"]
            if tree.get("default") is not None:
                parameters[names.ENUM_DEFAULT + names.split(full)[1]] = tree["default"]
        parameters[names.ENUM] = full
        parameters |= {f"{names.ENUM}.{symbol}": symbol for symbol in tree["symbols"]}
        return Schema(SchemaType.STRING, parameters=parameters)

    def _finished(self, base: Schema, tree: Mapping[str, Any], default: Any, full: str | None) -> Schema:
        """With what its properties say of it."""
        meta = self._options.meta_data
        parameters = dict(base.parameters)
        if meta:
            parameters |= _parameters(tree.get("connect.parameters"))
        parameters |= {key: _text(value) for key, value in tree.items() if key.startswith("avro")}
        own_default = tree.get("connect.default")
        if default is None:
            default = own_default
        elif own_default is None:
            parameters[names.FIELD_DEFAULT] = "true"
        name = tree.get("connect.name", full)
        if name is not None and not isinstance(name, str):
            raise DataError(f"Invalid schema name: {name}")
        version = tree.get("connect.version", base.version)
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise DataError(f"Invalid Connect version found: {version}")
        made = replace(
            base,
            name=base.name if name is None or names.is_default_name(name) else name,
            version=version,
            doc=tree.get("connect.doc") if meta else None,
            parameters=parameters,
        )
        if default is None:
            return made
        return replace(made, default=decoder(made, self._options)(raw_default(made, default)))


def _base(kind: str, tree: Mapping[str, Any]) -> Schema:
    found = tree.get("logicalType")
    if found == "decimal" and kind == "bytes":
        scale, precision = tree.get("scale", 0), tree.get("precision", names.DEFAULT_PRECISION)
        if not isinstance(scale, int) or not isinstance(precision, int):
            raise DataError("scale and precision of an Avro decimal must be numbers")
        made = decimal(scale)
        if precision == names.DEFAULT_PRECISION:
            return made
        return replace(made, parameters={**made.parameters, names.PRECISION: str(precision)})
    if (kind, found) in _LOGICAL:
        return _LOGICAL[kind, str(found)]
    if kind == "int" and "connect.type" in tree and found is None:
        short = _SHORT.get(tree["connect.type"])
        if short is None:
            raise DataError(f"Connect type annotation for Avro int field is unknown: {tree['connect.type']}")
        return short
    return _PLAIN[kind]


def _parameters(found: Any) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise DataError(f"Expected JSON object of strings for schema parameters but found: {found}")
    return dict(found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_null(tree: Any) -> bool:
    return tree == "null" or (isinstance(tree, dict) and tree.get("type") == "null")


def _full_name(tree: Mapping[str, Any], enclosing: str | None) -> str:
    return _qualified(str(tree["name"]), tree.get("namespace", enclosing))


def _qualified(name: str, namespace: str | None) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name
