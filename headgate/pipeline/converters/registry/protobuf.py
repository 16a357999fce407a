"""ProtobufConverter: Protobuf, with its schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from headgate.api import BOOLEAN, LOW, ConfigError, DataError, Key, Schema
from headgate.api.config import ConfigDef
from headgate.api.frame import Group, NotByColumns
from headgate.pipeline.converters.registry.client import Text
from headgate.pipeline.converters.registry.columns.bodies import Bodies, read_all, write_all
from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.protobuf_read import reader as columns_reader
from headgate.pipeline.converters.registry.columns.protobuf_write import writer as columns_writer
from headgate.pipeline.converters.registry.converter import Read, ReadColumns, RegistryConverter, Write, WriteColumns
from headgate.pipeline.converters.registry.keys import REGISTRY_KEYS
from headgate.pipeline.converters.registry.protobuf_connect import connect_schema
from headgate.pipeline.converters.registry.protobuf_files import described, message_at, parsed, place_of
from headgate.pipeline.converters.registry.protobuf_names import ProtobufOptions
from headgate.pipeline.converters.registry.protobuf_schema import file_text, protobuf_file
from headgate.pipeline.converters.registry.protobuf_value import filler, taker
from headgate.pipeline.converters.registry.wire import HEADER, header, read_indexes, write_indexes


class ProtobufConverter(RegistryConverter):
    aliases = ("io.confluent.connect.protobuf.ProtobufConverter",)
    kind = "PROTOBUF"
    fmt = "serialized"
    needs = ("confluent_kafka.schema_registry", "google.protobuf", "google.type.date_pb2")
    config = REGISTRY_KEYS + ConfigDef(
        Key("enhanced.protobuf.schema.support", BOOLEAN, default=False, doc="Keep packages in the names of structs."),
        Key("optional.for.nullables", BOOLEAN, default=False, importance=LOW, doc="Nullable fields are `optional`."),
        Key("wrapper.for.nullables", BOOLEAN, default=False, importance=LOW, doc="Nullable fields are wrapped."),
    )

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(config, is_key=is_key)
        self._options = ProtobufOptions(
            enhanced=self.settings["enhanced.protobuf.schema.support"],
            optional=self.settings["optional.for.nullables"],
            wrapper=self.settings["wrapper.for.nullables"],
        )
        if self._options.optional and self._options.wrapper:
            raise ConfigError("Of optional.for.nullables and wrapper.for.nullables only one can be true")

    def schema_of(self, topic: str, value: Any) -> Schema:
        raise DataError(
            f"A value without schema cannot be written for topic {topic} by ProtobufConverter:"
            " the source has to give its records a schema"
        )

    def writer(self, topic: str, schema: Schema) -> Write:
        from google.protobuf.message_factory import GetMessageClass

        file, name = protobuf_file(schema, self._options)
        number, latest = self.register(topic, name, file_text(file))
        found = described(file) if latest is None else self._file(topic, latest)
        place, descriptor = place_of(found, name)
        start = header(number) + write_indexes(place)
        make, fill = GetMessageClass(descriptor), filler(schema, descriptor)

        def write(value: Any) -> bytes:
            message = make()
            try:
                fill(message, value)
                return start + bytes(message.SerializeToString(deterministic=True))
            except DataError:
                raise
            except Exception as error:  # of many kinds, for a value that the message does not take
                raise DataError(f"Failed to serialize Protobuf data for topic {topic}: {error!r}") from error

        return write

    def reader(self, topic: str, text: Text) -> Read:
        file = self._file(topic, text)
        known: dict[tuple[int, ...], tuple[Schema, Callable[[bytes], Any]]] = {}

        def read(data: bytes) -> tuple[Schema | None, Any]:
            place, start = read_indexes(topic, data)
            if place not in known:
                known[place] = self._message_reader(topic, message_at(file, place))
            schema, decode = known[place]
            return schema, decode(data[start:])

        return read

    def column_writer(self, topic: str, schema: Schema) -> WriteColumns:
        file, name = protobuf_file(schema, self._options)
        number, latest = self.register(topic, name, file_text(file))
        if latest is not None and parsed(latest.text, file.name) != file:
            raise NotByColumns("another schema than that of the records")
        place, descriptor = place_of(described(file), name)
        write, start = columns_writer(schema, descriptor), header(number) + write_indexes(place)
        return lambda array: write_all(array, write, start)

    def column_reader(self, topic: str, text: Text) -> ReadColumns:
        file = self._file(topic, text)
        known: dict[tuple[int, ...], tuple[Schema, Callable[[Cursors], pa.Array]]] = {}

        def read(bodies: Bodies) -> list[Group]:
            # Those of another message than the first are left to be read one by one.
            data = bodies.first()
            place, start = read_indexes(topic, data)
            if place not in known:
                descriptor = message_at(file, place)
                schema = connect_schema(descriptor, self._options)
                known[place] = schema, columns_reader(schema, descriptor)
            schema, read_columns = known[place]
            return read_all(bodies.behind(data[HEADER:start]), read_columns, schema)

        return read

    def _message_reader(self, topic: str, descriptor: Any) -> tuple[Schema, Callable[[bytes], Any]]:
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        schema = connect_schema(descriptor, self._options)
        make, take = GetMessageClass(descriptor), taker(schema, descriptor)

        def decode(data: bytes) -> Any:
            message = make()
            try:
                message.ParseFromString(data)
            except DecodeError as error:
                raise DataError(f"Failed to deserialize Protobuf data of topic {topic}: {error}") from error
            return take(message)

        return schema, decode

    def _file(self, topic: str, text: Text) -> Any:
        used = [(name, parsed(each, name)) for name, each in self.registry.used_by(topic, text)]
        return described(parsed(text.text), used)
