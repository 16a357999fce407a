"""JSON Schemas of Connect's schemas, and back, as Confluent's JsonSchemaConverter maps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headgate.api import DataError, Field, Schema, SchemaType
from headgate.api.schema import DECIMAL_NAME, STRING
from headgate.java.json import dumps
from headgate.pipeline.converters.json_value import Options
from headgate.pipeline.converters.registry.json_schema_value import ONE_OF, from_json, to_json
from headgate.pipeline.schemas import BITS, has_text_keys, inner

NAMESPACE: Final = "io.confluent.connect.json"
ENUM: Final = f"{NAMESPACE}.Enum"

_PLAIN: Final[Mapping[SchemaType, dict[str, str]]] = {
    **{kind: {"type": "integer", "connect.type": kind.value.lower()} for kind in BITS},
    SchemaType.FLOAT32: {"type": "number", "connect.type": "float32"},
    SchemaType.FLOAT64: {"type": "number", "connect.type": "float64"},
    SchemaType.BOOLEAN: {"type": "boolean"},
    SchemaType.STRING: {"type": "string"},
    SchemaType.BYTES: {"type": "string", "connect.type": "bytes"},
}
_NUMBERS: Final = {tree["connect.type"]: kind for kind, tree in _PLAIN.items() if "connect.type" in tree}
_OPTIONS: Final = Options()


# --- to JSON Schema ---------------------------------------------------------------------------------------------------


def json_schema(schema: Schema, index: int | None = None) -> dict[str, Any]:
    """The JSON Schema. Raises DataError."""
    if schema.type is SchemaType.STRUCT and schema.name == ONE_OF:
        members = [json_schema(replace(each.schema, optional=False), each.index) for each in schema.fields]
        made: dict[str, Any] = {"oneOf": [*([{"type": "null"}] if schema.optional else []), *members]}
    elif schema.optional:
        made = {"oneOf": [{"type": "null"}, json_schema(replace(schema, optional=False))]}
    else:
        made = _base(schema) | _properties(schema)
    if index is not None:
        made["connect.index"] = index
    return made


def schema_text(tree: Any) -> str:
    return dumps(tree).decode()


def _base(schema: Schema) -> dict[str, Any]:
    match schema.type:
        case SchemaType.STRING if ENUM in schema.parameters:
            prefix = f"{ENUM}."
            return {"enum": [value for key, value in schema.parameters.items() if key.startswith(prefix)]}
        case SchemaType.BYTES if schema.name == DECIMAL_NAME:
            return {"type": "number", "connect.type": "bytes"}
        case SchemaType.ARRAY:
            (items,) = inner(schema)
            return {"type": "array", "items": json_schema(items)}
        case SchemaType.MAP if has_text_keys(schema):
            _, values = inner(schema)
            return {"type": "object", "connect.type": "map", "additionalProperties": json_schema(values)}
        case SchemaType.MAP:
            keys, values = inner(schema)
            pair = {"key": json_schema(keys, 0), "value": json_schema(values, 1)}
            return {"type": "array", "connect.type": "map", "items": {"type": "object", "properties": pair}}
        case SchemaType.STRUCT:
            members = {each.name: json_schema(each.schema, each.index) for each in schema.fields}
            return {"type": "object", "properties": members}
    return dict(_PLAIN[schema.type])


def _properties(schema: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if schema.name is not None:
        made["title"] = schema.name
    if schema.version is not None:
        made["connect.version"] = schema.version
    if schema.doc is not None:
        made["description"] = schema.doc
    parameters = {key: value for key, value in schema.parameters.items() if not key.startswith(NAMESPACE)}
    if parameters:
        made["connect.parameters"] = parameters
    if schema.default is not None:
        made["default"] = to_json(replace(schema, default=None), schema.default, _OPTIONS)
    return made


# --- from JSON Schema -------------------------------------------------------------------------------------------------


def connect_schema(text: str, used: Mapping[str, str], *, nonrequired_is_optional: bool) -> Schema:
    """`used` are the schemas that this one refers to, by name. With `nonrequired_is_optional` a property that is not
    listed as required may be null. Raises DataError."""
    try:
        root = json.loads(text)
        trees = {name: json.loads(each) for name, each in used.items()}
        return _Reader(root, trees, nonrequired_is_optional).schema(root)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"The registry's schema is no JSON Schema: {type(error).__name__}: {error}") from error


class _Reader:
    def __init__(self, root: Any, used: Mapping[str, Any], nonrequired_is_optional: bool) -> None:
        self._root = root
        self._used = used
        self._nonrequired_is_optional = nonrequired_is_optional
        self._open: list[str] = []

    def schema(self, tree: Any) -> Schema:
        if not isinstance(tree, dict):
            raise DataError(f"The JSON Schema says nothing of a type: {json.dumps(tree)}")
        if "$ref" in tree:
            return self._referenced(tree["$ref"])
        if isinstance(tree.get("type"), list):
            rest = {key: value for key, value in tree.items() if key != "type"}
            return self._one_of([{**rest, "type": each} if each != "null" else {"type": each} for each in tree["type"]])
        for key in ("oneOf", "anyOf"):
            if key in tree:
                return self._one_of(tree[key])
        if "allOf" in tree:
            return self.schema(_merged([self._resolved(each) for each in tree["allOf"]], tree))
        return self._finished(self._base(tree), tree)

    def _referenced(self, reference: str) -> Schema:
        if reference in self._open:
            raise DataError(f"The JSON Schema contains itself at {reference}, which no schema of Connect can")
        self._open.append(reference)
        try:
            return self.schema(self._find(reference))
        finally:
            self._open.pop()

    def _resolved(self, tree: Any) -> Any:
        return self._find(tree["$ref"]) if isinstance(tree, dict) and "$ref" in tree else tree

    def _find(self, reference: str) -> Any:
        name, _, pointer = reference.partition("#")
        if name and name not in self._used:
            raise DataError(f"The JSON Schema refers to {name}, which is not among its references")
        found = self._used[name] if name else self._root
        for part in filter(None, pointer.split("/")):
            step = part.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) else found[step]
        return found

    def _one_of(self, members: list[Any]) -> Schema:
        trees = [each for each in members if each.get("type") != "null"]
        optional = len(trees) < len(members)
        if optional and len(trees) == 1:
            return self.schema(trees[0]).as_optional()
        fields = tuple(
            Field(f"{ONE_OF}.field.{index}", index, self.schema(each).as_optional()) for index, each in enumerate(trees)
        )
        return Schema(SchemaType.STRUCT, optional, name=ONE_OF, fields=fields)

    def _base(self, tree: Mapping[str, Any]) -> Schema:
        kind, connect_type = tree.get("type"), tree.get("connect.type")
        if "enum" in tree and kind in (None, "string"):
            symbols = [each if isinstance(each, str) else json.dumps(each) for each in tree["enum"]]
            parameters = {ENUM: ""} | {f"{ENUM}.{symbol}": symbol for symbol in symbols}
            return Schema(SchemaType.STRING, parameters=parameters)
        match kind:
            case "boolean":
                return Schema(SchemaType.BOOLEAN)
            case "integer" | "number":
                if connect_type is None:
                    return Schema(SchemaType.INT64 if kind == "integer" else SchemaType.FLOAT64)
                if connect_type not in _NUMBERS:
                    raise DataError(f"Unsupported type {connect_type}")
                return Schema(_NUMBERS[connect_type])
            case "string":
                return Schema(SchemaType.BYTES) if connect_type == "bytes" else STRING
            case "array":
                return self._array(tree, connect_type)
            case "object":
                return self._object(tree, connect_type)
            case None if "properties" in tree:
                return self._object(tree, connect_type)
        raise DataError(f"Unsupported type of JSON Schema: {json.dumps(kind)}")

    def _array(self, tree: Mapping[str, Any], connect_type: Any) -> Schema:
        items = self._resolved(tree.get("items"))
        if not isinstance(items, dict):
            raise DataError("Array schema did not specify the items type")
        if connect_type == "map" and "properties" in items:
            pair = items["properties"]
            return Schema(SchemaType.MAP, key_schema=self.schema(pair["key"]), value_schema=self.schema(pair["value"]))
        return Schema(SchemaType.ARRAY, value_schema=self.schema(tree["items"]))

    def _object(self, tree: Mapping[str, Any], connect_type: Any) -> Schema:
        if connect_type == "map":
            return Schema(SchemaType.MAP, key_schema=STRING, value_schema=self.schema(tree["additionalProperties"]))
        required = tree.get("required", ())
        members = []
        for place, (name, each) in enumerate(tree.get("properties", {}).items()):
            schema = self.schema(each)
            if self._nonrequired_is_optional and name not in required:
                schema = schema.as_optional()
            index = each.get("connect.index", place)
            members.append((index, place, name, schema))
        members.sort(key=lambda each: each[:2])
        fields = tuple(Field(name, index, schema) for index, (_, _, name, schema) in enumerate(members))
        return Schema(SchemaType.STRUCT, fields=fields)

    @staticmethod
    def _finished(base: Schema, tree: Mapping[str, Any]) -> Schema:
        parameters = {**base.parameters, **tree.get("connect.parameters", {})}
        made = replace(
            base,
            name=tree.get("title"),
            version=tree.get("connect.version"),
            doc=tree.get("description"),
            parameters=parameters,
        )
        default = tree.get("default")
        return made if default is None else replace(made, default=from_json(made, default, _OPTIONS))


def _merged(members: list[Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """allOf: one schema that has what each of them has."""
    made: dict[str, Any] = {}
    for each in (*members, {key: value for key, value in tree.items() if key != "allOf"}):
        for key, value in each.items():
            both_objects = isinstance(made.get(key), dict) and isinstance(value, dict)
            made[key] = {**made[key], **value} if both_objects else value
    return made
