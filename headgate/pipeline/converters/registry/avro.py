"""AvroConverter: Avro, with its schemas in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from headgate.api import BOOLEAN, LOW, DataError, Key, Schema
from headgate.api.config import ConfigDef
from headgate.api.frame import NotByColumns
from headgate.pipeline.converters.registry.avro_connect import connect_schema
from headgate.pipeline.converters.registry.avro_schema import AvroOptions, avro_schema, avro_text, record_name
from headgate.pipeline.converters.registry.avro_value import decoder, encoder, has_unions
from headgate.pipeline.converters.registry.client import Text
from headgate.pipeline.converters.registry.columns.avro_read import Named, reader
from headgate.pipeline.converters.registry.columns.avro_write import writer
from headgate.pipeline.converters.registry.columns.bodies import read_all, write_all
from headgate.pipeline.converters.registry.converter import Read, ReadColumns, RegistryConverter, Write, WriteColumns
from headgate.pipeline.converters.registry.keys import REGISTRY_KEYS
from headgate.pipeline.converters.registry.wire import HEADER, header


class AvroConverter(RegistryConverter):
    aliases = ("io.confluent.connect.avro.AvroConverter",)
    kind = "AVRO"
    needs = ("confluent_kafka.schema_registry", "fastavro")
    config = REGISTRY_KEYS + ConfigDef(
        Key("enhanced.avro.schema.support", BOOLEAN, default=False, doc="Keep enums, and the namespaces in unions."),
        Key("connect.meta.data", BOOLEAN, default=True, importance=LOW, doc="Keep in Avro what only Connect knows."),
    )

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(config, is_key=is_key)
        self._options = AvroOptions(
            enhanced=self.settings["enhanced.avro.schema.support"], meta_data=self.settings["connect.meta.data"]
        )

    def writer(self, topic: str, schema: Schema) -> Write:
        from fastavro import schemaless_writer

        tree = avro_schema(schema, self._options)
        number, latest = self.register(topic, record_name(tree), avro_text(tree))
        parsed, _ = _parsed(tree if latest is None else json.loads(latest.text), self._used(topic, latest))
        encode, start = encoder(schema), header(number)

        def write(value: Any) -> bytes:
            out = io.BytesIO()
            out.write(start)
            datum = encode(value)
            try:
                schemaless_writer(out, parsed, datum)
            except Exception as error:  # of many kinds, for a value that the schema does not describe
                raise DataError(f"Failed to serialize Avro data for topic {topic}: {error!r}") from error
            return out.getvalue()

        return write

    def reader(self, topic: str, text: Text) -> Read:
        from fastavro import schemaless_reader

        used = self._used(topic, text)
        schema = connect_schema(text.text, used, self._options)
        parsed, _ = _parsed(json.loads(text.text), used)
        decode, named = decoder(schema, self._options), has_unions(schema)

        def read(data: bytes) -> tuple[Schema | None, Any]:
            source = io.BytesIO(data)
            source.seek(HEADER)
            try:
                datum = schemaless_reader(source, parsed, None, return_record_name=named, return_named_type=named)
            except Exception as error:  # of many kinds, for bytes that the schema does not describe
                raise DataError(f"Failed to deserialize Avro data of topic {topic}: {error!r}") from error
            return schema, decode(datum)

        return read

    def column_reader(self, topic: str, text: Text) -> ReadColumns:
        used = self._used(topic, text)
        schema = connect_schema(text.text, used, self._options)
        parsed, named = _parsed(json.loads(text.text), used)
        read = reader(parsed, schema, named)
        return lambda bodies: read_all(bodies, read, schema)

    def column_writer(self, topic: str, schema: Schema) -> WriteColumns:
        tree = avro_schema(schema, self._options)
        number, latest = self.register(topic, record_name(tree), avro_text(tree))
        if latest is not None and json.loads(latest.text) != tree:
            raise NotByColumns("another schema than that of the records")
        write, start = writer(schema, self._options), header(number)
        return lambda array: write_all(array, write, start)

    def _used(self, topic: str, text: Text | None) -> dict[str, str]:
        return {} if text is None else dict(self.registry.used_by(topic, text))


def _parsed(tree: Any, used: Mapping[str, str]) -> tuple[Any, Named]:
    """For fastavro, without logical types: the values of these are ours to convert. Raises DataError."""
    from fastavro import parse_schema

    known: dict[str, Any] = {}
    try:
        for each in used.values():
            parse_schema(_bare(json.loads(each)), named_schemas=known)
        return parse_schema(_bare(tree), named_schemas=known), known
    except Exception as error:  # of many kinds
        raise DataError(f"The schema is no Avro schema: {error!r}") from error


def _bare(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_bare(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    kept = {key: value for key, value in tree.items() if key != "logicalType" and not key.startswith("connect.")}
    # Defaults are JSON of the user, not schemas.
    return {key: value if key == "default" else _bare(value) for key, value in kept.items()}
