"""JsonConverter: JSON with its schema in an envelope, or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa

from headgate.api import BOOLEAN, HIGH, INT, LOW, STRING, ConfigDef, DataError, Key, Schema
from headgate.api.frame import Group, NotByColumns, Values
from headgate.java.json import MISSING, dumps, exact_loads, loads, quick_dumps
from headgate.pipeline.columns.as_json import as_json, null_json
from headgate.pipeline.columns.json_envelope import Envelopes
from headgate.pipeline.columns.json_groups import JsonGroups, Reader, groups
from headgate.pipeline.columns.json_samples import plain_groups
from headgate.pipeline.columns.json_typed import typed_groups
from headgate.pipeline.converters.any_part import CONVERTER_TYPE, AnyPartConverter
from headgate.pipeline.converters.json_schema import has_decimal, schema_from_tree, schema_tree
from headgate.pipeline.converters.json_value import DECIMAL_FORMAT, Options, from_tree, to_tree
from headgate.pipeline.schemas import Cache

_NOT_AN_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_UNREADABLE: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_UNREADABLE_SCHEMA: Final = "Failed to parse schema in converter config due to serialization error: "
_ENVELOPE: Final = {"schema", "payload"}


class JsonConverter(AnyPartConverter):
    aliases = ("org.apache.kafka.connect.json.JsonConverter",)
    config = ConfigDef(
        CONVERTER_TYPE,
        Key("schemas.enable", BOOLEAN, default=True, importance=HIGH, doc="Include schemas in keys and values."),
        Key("schemas.cache.size", INT, default=1000, importance=HIGH, doc="How many schemas to remember as JSON."),
        Key(
            "schema.content",
            STRING,
            default=None,
            importance=HIGH,
            doc="With schemas.enable: the schema, as JSON, of all that is read; there is no envelope then.",
        ),
        DECIMAL_FORMAT,
        Key(
            "replace.null.with.default",
            BOOLEAN,
            default=True,
            importance=LOW,
            doc="Whether a null is replaced by the field's default, where it has one.",
        ),
    )

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        super().configure(config, is_key=is_key)
        self._envelope: bool = self.settings["schemas.enable"]
        self._options = Options(
            numeric_decimals=self.settings["decimal.format"].upper() == "NUMERIC",
            replace_null=self.settings["replace.null.with.default"],
        )
        size = self.settings["schemas.cache.size"]
        self._written: Cache[int, tuple[Schema, bytes]] = Cache(size)
        self._read: Cache[bytes, tuple[Schema, bool]] = Cache(size)
        self._fixed = self._fixed_schema(self.settings["schema.content"])
        self._columns = self._column_reader()

    @property
    def enveloped(self) -> bool:
        """Whether the text holds a schema beside the value, or has one that the configuration gives."""
        return self._envelope

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None:
            if value is None:
                return None
            payload = quick_dumps(value) or self._payload(None, value)
            return b'{"schema":null,"payload":' + payload + b"}" if self._envelope else _fitting(payload)
        payload = self._payload(schema, value)
        if not self._envelope:
            return _fitting(payload)
        return b'{"schema":' + self._schema_text(schema) + b',"payload":' + payload + b"}"

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        if not self._envelope:
            tree = _parsed(loads, data)
            return None, None if tree is MISSING else tree
        tree = _parsed(partial(loads, typed=True), data)
        if self._fixed is not None:
            schema, exact = self._fixed
            return schema, from_tree(schema, _parsed(exact_loads, data) if exact else tree, self._options)
        if not isinstance(tree, dict) or tree.keys() != _ENVELOPE:
            raise DataError(_NOT_AN_ENVELOPE)
        if tree["schema"] is None:
            return None, from_tree(None, tree["payload"], self._options)
        schema, exact = self._schema(tree["schema"])
        payload = _parsed(exact_loads, data)["payload"] if exact else tree["payload"]
        return schema, from_tree(schema, payload, self._options)

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        return groups(self._columns, data)

    def _column_reader(self) -> Reader | None:
        if not self._envelope:
            return plain_groups()
        return Envelopes(self._enveloped_groups) if self._fixed is None else self._typed_groups(self._fixed[0])

    def _enveloped_groups(self, envelope: bytes) -> JsonGroups | None:
        try:
            tree, exact = (parse(envelope)["schema"] for parse in (partial(loads, typed=True), exact_loads))
            if tree is None:
                return plain_groups()
            schema, _ = self._schema(tree)
            # Records are parsed the one way or the other, and numeric decimals may have another scale then.
            same = repr(schema) == repr(schema_from_tree(exact, self._options))
        except (ValueError, DataError):
            return None
        return self._typed_groups(schema) if same else None

    def _typed_groups(self, schema: Schema) -> JsonGroups | None:
        try:
            return typed_groups(schema, self._options)
        except NotByColumns:
            return None

    def _payload(self, schema: Schema | None, value: Any) -> bytes:
        try:
            return dumps(to_tree(schema, value, self._options))
        except RecursionError as error:
            raise DataError("Converting Kafka Connect data to byte[] failed due to serialization error: ") from error

    def _schema_text(self, schema: Schema) -> bytes:
        # By identity: hashing a schema costs more than writing a small one. The cache holds it, so its id stays taken.
        return self._written.get(id(schema), lambda: (schema, dumps(schema_tree(schema, self._options))))[1]

    def _schema(self, tree: Any) -> tuple[Schema, bool]:
        def build() -> tuple[Schema, bool]:
            schema = schema_from_tree(tree, self._options)
            assert schema is not None  # null was seen to before
            return schema, has_decimal(schema)

        try:
            key = orjson.dumps(tree)
        except TypeError:  # a default beyond 64 bits
            key = repr(tree).encode()
        return self._read.get(key, build)

    def _fixed_schema(self, content: str | None) -> tuple[Schema, bool] | None:
        if not (content or "").strip():
            return None
        try:
            tree = exact_loads((content or "").encode())
        except ValueError as error:
            raise DataError(_UNREADABLE_SCHEMA) from error
        schema = schema_from_tree(tree, self._options)
        return None if schema is None else (schema, has_decimal(schema))

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        schema, head, tail = values.schema, "", ""
        if self._envelope:
            try:
                text = "null" if schema is None else self._schema_text(schema).decode()
            except DataError as error:
                raise NotByColumns("a schema that cannot be written") from error
            head, tail = f'{{"schema":{text},"payload":', "}"
        written = as_json(values, self._options, head, tail)
        if schema is not None and written.null_count:
            null = null_json(schema, self._options)
            if null is None:
                raise NotByColumns("null where a value is required", written.is_null())
            written = written.fill_null(f"{head}{null}{tail}")
        return written.cast(pa.binary())


def _fitting(data: bytes) -> bytes:
    """A copy: what orjson gives has room for much more, and to keep thousands of those takes ten times as long."""
    return bytes(memoryview(data))


def _parsed(parse: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return parse(data)
    except ValueError as error:
        raise DataError(_UNREADABLE) from error
