"""JsonSchemaConverter: JSON, with its JSON Schema in a registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import BOOLEAN, LOW, DataError, Key, Schema, SchemaType
from headgate.api.config import ConfigDef
from headgate.api.frame import NotByColumns, Values
from headgate.java.json import MISSING, dumps, exact_loads, loads
from headgate.pipeline.columns.as_json import as_json
from headgate.pipeline.columns.json_typed import typed_groups
from headgate.pipeline.converters.json_schema import has_decimal
from headgate.pipeline.converters.json_value import DECIMAL_FORMAT, Options
from headgate.pipeline.converters.registry.client import Text
from headgate.pipeline.converters.registry.converter import (
    Read,
    ReadColumns,
    RegistryConverter,
    Write,
    WriteColumns,
)
from headgate.pipeline.converters.registry.json_schema_tree import connect_schema, json_schema, schema_text
from headgate.pipeline.converters.registry.json_schema_value import ONE_OF, from_json, to_json
from headgate.pipeline.converters.registry.keys import REGISTRY_KEYS
from headgate.pipeline.converters.registry.wire import HEADER, header
from headgate.pipeline.schemas import has_text_keys, inner


class JsonSchemaConverter(RegistryConverter):
    aliases = ("io.confluent.connect.json.JsonSchemaConverter",)
    kind = "JSON"
    needs = ("confluent_kafka.schema_registry", "jsonschema")
    config = REGISTRY_KEYS + ConfigDef(
        DECIMAL_FORMAT,
        Key("json.fail.invalid.schema", BOOLEAN, default=False, doc="Compare data with its schema."),
        Key(
            "use.optional.for.nonrequired",
            BOOLEAN,
            default=False,
            importance=LOW,
            doc="Properties that are not listed as required may be null.",
        ),
    )

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(config, is_key=is_key)
        self._options = Options(numeric_decimals=self.settings["decimal.format"].upper() == "NUMERIC")

    def writer(self, topic: str, schema: Schema) -> Write:
        tree = json_schema(schema)
        number, latest = self.register(topic, schema.name, schema_text(tree))
        check = self._check(topic, tree if latest is None else json.loads(latest.text))
        start = header(number)

        def write(value: Any) -> bytes:
            made = to_json(schema, value, self._options)
            check(made)
            return start + dumps(made)

        return write

    def reader(self, topic: str, text: Text) -> Read:
        schema = self._schema(topic, text)
        exact, check = has_decimal(schema), self._check(topic, json.loads(text.text))

        def read(data: bytes) -> tuple[Schema | None, Any]:
            try:
                tree = exact_loads(data[HEADER:]) if exact else loads(data[HEADER:], typed=True)
            except ValueError as error:
                raise DataError(f"Failed to deserialize JSON data of topic {topic}: {error}") from error
            if tree is MISSING:
                raise DataError(f"Failed to deserialize JSON data of topic {topic}: there is none after the schema id")
            check(tree)
            return schema, from_json(schema, tree, self._options)

        return read

    def column_writer(self, topic: str, schema: Schema) -> WriteColumns:
        self._require_columns(schema)
        number, _ = self.register(topic, schema.name, schema_text(json_schema(schema)))
        start = pa.scalar(header(number), pa.binary())

        def write(data: pa.Array) -> pa.Array:
            texts = as_json(Values(data, schema), self._options)
            return pc.binary_join_element_wise(start, texts.cast(pa.binary()), b"")

        return write

    def column_reader(self, topic: str, text: Text) -> ReadColumns:
        schema = self._schema(topic, text)
        self._require_columns(schema)
        groups = typed_groups(schema, self._options)
        return lambda bodies: groups.of(bodies.rows, bodies.texts())

    def _require_columns(self, schema: Schema) -> None:
        """Raises NotByColumns where data is compared with its schema, or is not the JSON of JsonConverter."""
        if self.settings["json.fail.invalid.schema"]:
            raise NotByColumns("JSON is compared with its schema")
        if schema.name == ONE_OF or (schema.type is SchemaType.MAP and not has_text_keys(schema)):
            raise NotByColumns("a oneOf, or a map whose keys are no strings")
        for each in inner(schema):
            self._require_columns(each)

    def _schema(self, topic: str, text: Text) -> Schema:
        return connect_schema(
            text.text,
            dict(self.registry.used_by(topic, text)),
            nonrequired_is_optional=self.settings["use.optional.for.nonrequired"],
        )

    def _check(self, topic: str, tree: Any) -> Callable[[Any], None]:
        if not self.settings["json.fail.invalid.schema"]:
            return lambda value: None
        from jsonschema.validators import validator_for
        from referencing import Registry

        # Without it, whoever writes a schema would have the worker ask any host that it refers to.
        validator = validator_for(tree)(tree, registry=Registry())

        def check(value: Any) -> None:
            error = next(validator.iter_errors(value), None)
            if error is not None:
                raise DataError(f"JSON for topic {topic} does not match its schema: {error.message}")

        return check
