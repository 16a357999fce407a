"""AvroConverter: the mapping of schemas and values, both ways, and the bytes on the wire."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from registry_stand_in import StandIn
from registry_support import bare, configured, kept, schemas_with_values

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.avro import AvroConverter

pytestmark = pytest.mark.process

USER = s.struct({"id": s.INT32, "name": s.OPTIONAL_STRING}, name="com.acme.User")
VALUE = SerializationContext("users", MessageField.VALUE)


def there_and_back(registry: StandIn, schema: Schema, value: Any, **config: Any) -> tuple[Schema | None, Any]:
    converter = kept(AvroConverter, registry.url, **config)
    return converter.to_connect("t", converter.from_connect("t", schema, value))


def written(registry: StandIn, schema: Schema, value: Any, **config: Any) -> Any:
    """The schema that was registered."""
    configured(AvroConverter, registry.url, **config).from_connect("t", schema, value)
    return registry.schema(max(registry.by_id))


def read(registry: StandIn, avro: Any, data: bytes, **config: Any) -> tuple[Schema | None, Any]:
    """What is made of data that somebody else wrote."""
    number = registry.add("t-value", json.dumps(avro))
    return configured(AvroConverter, registry.url, **config).to_connect("t", b"\0" + number.to_bytes(4, "big") + data)


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (s.STRING, "foo", b"\x00\x00\x00\x00\x01\x06foo"),
        (s.OPTIONAL_STRING, "foo", b"\x00\x00\x00\x00\x01\x02\x06foo"),
        (s.INT64, -2, b"\x00\x00\x00\x00\x01\x03"),
        (s.BOOLEAN, True, b"\x00\x00\x00\x00\x01\x01"),
        (s.decimal(2), Decimal("123.45"), b"\x00\x00\x00\x00\x01\x0409"),
        (s.DATE, dt.date(1970, 1, 4), b"\x00\x00\x00\x00\x01\x06"),
        (s.array(s.INT32), [1, 2], b"\x00\x00\x00\x00\x01\x04\x02\x04\x00"),
        (s.mapping(s.INT32, s.STRING), {1: "a"}, b"\x00\x00\x00\x00\x01\x02\x02\x02a\x00"),
        (USER, Struct(USER, {"id": 1}), b"\x00\x00\x00\x00\x01\x02\x00"),
        (USER, Struct(USER, {"id": 1, "name": "é"}), b"\x00\x00\x00\x00\x01\x02\x02\x04\xc3\xa9"),
        (None, "foo", b"\x00\x00\x00\x00\x01\x06foo"),
    ],
    ids=str,
)
def test_bytes_on_the_wire(registry: StandIn, schema: Schema | None, value: Any, expected: bytes) -> None:
    assert configured(AvroConverter, registry.url).from_connect("t", schema, value) == expected


def test_confluents_deserializer_reads_what_we_write(registry: StandIn) -> None:
    data = configured(AvroConverter, registry.url).from_connect("users", USER, Struct(USER, {"id": 7, "name": "Ann"}))
    with SchemaRegistryClient({"url": registry.url}) as client:
        assert AvroDeserializer(client)(data, VALUE) == {"id": 7, "name": "Ann"}


def test_we_read_what_confluents_serializer_writes(registry: StandIn) -> None:
    avro = {
        "type": "record",
        "name": "Payment",
        "namespace": "com.acme",
        "doc": "of money",
        "fields": [
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "doc": "when"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH"]}},
        ],
    }
    at = dt.datetime(2024, 2, 29, 12, 0, 0, 5000, tzinfo=dt.UTC)
    with SchemaRegistryClient({"url": registry.url}) as client:
        write = AvroSerializer(client, json.dumps(avro))
        data = write({"amount": Decimal("12.30"), "at": at, "kind": "CASH"}, VALUE)
    schema, value = configured(AvroConverter, registry.url).to_connect("users", data)
    assert schema is not None
    assert value.as_dict() == {"amount": Decimal("12.30"), "at": at, "kind": "CASH"}
    assert schema.name == "com.acme.Payment"
    assert schema.parameters == {names.RECORD_DOC: "of money", f"{names.FIELD_DOC}at": "when"}
    amount, kind = schema.fields[0].schema, schema.fields[2].schema
    assert amount.parameters == {"scale": "2", names.PRECISION: "9"}
    assert (kind.type, kind.name) == (SchemaType.STRING, "com.acme.Kind")
    assert kind.parameters == {
        names.ENUM: "com.acme.Kind",
        f"{names.ENUM}.CARD": "CARD",
        f"{names.ENUM}.CASH": "CASH",
    }


# --- round trips ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schemas_with_values())
def test_what_is_written_is_read(shared_registry: StandIn, found: tuple[Schema, Any]) -> None:
    assert there_and_back(shared_registry, *found) == found


@pytest.mark.parametrize(
    "schema",
    [
        s.struct({"a": s.INT8}, name="x.A", version=4, doc="all of it", parameters={"p": "q"}),
        s.struct({"a": Schema(SchemaType.INT16, default=3)}),
        s.struct({"a": Schema(SchemaType.STRING, True, default="dv")}),
        s.struct({"a": replace(s.decimal(1), default=Decimal("2.5"))}),
        s.struct({"a": replace(s.TIMESTAMP, optional=True, default=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))}),
        s.struct({"a": replace(s.array(s.BYTES), default=[b"\xff"])}),
        s.struct({"a": replace(s.mapping(s.INT32, s.STRING), default={1: "x"})}),
        s.struct({"a": replace(s.mapping(s.STRING, s.DATE), default={"k": dt.date(2020, 1, 1)})}),
        s.struct({"a": replace(USER, default=Struct(USER, {"id": 1, "name": "n"}))}),
        s.struct({"a": Schema(SchemaType.FLOAT64, default=1.5), "b": Schema(SchemaType.BOOLEAN, default=False)}),
        s.struct({"a": USER, "b": USER.as_optional(), "c": s.array(USER)}, name="com.acme.Team"),
        s.struct({"a": s.struct({"b": s.struct({"c": s.INT32})}), "d": s.struct({"c": s.INT32})}),
        s.struct(
            {"a": s.mapping(s.INT32, s.INT32), "b": s.mapping(s.INT64, s.INT32), "c": s.mapping(s.INT32, s.INT32)}
        ),
        s.struct({"a": s.mapping(s.OPTIONAL_STRING, s.INT32)}),
        s.struct({"a": Schema(SchemaType.STRING, name="com.acme.Colour", version=2, doc="d")}),
    ],
    ids=lambda schema: str([str(each.schema) for each in schema.fields]),
)
def test_all_of_a_schema_comes_back(registry: StandIn, schema: Schema) -> None:
    value = Struct(schema)
    for each in schema.fields:
        if not each.schema.optional and each.schema.default is None:
            value[each.name] = _some(each.schema)
    found, back = there_and_back(registry, schema, value)
    assert found == schema
    assert {each.name: bare(back[each.name]) for each in schema.fields} == {
        each.name: bare(value[each.name]) for each in schema.fields
    }


def _some(schema: Schema) -> Any:
    if schema.type is SchemaType.STRUCT:
        return Struct(schema, {each.name: _some(each.schema) for each in schema.fields})
    return {SchemaType.STRING: "x", SchemaType.ARRAY: [], SchemaType.MAP: {}}.get(schema.type, 1)


@pytest.mark.parametrize("schema", [s.STRING, s.OPTIONAL_STRING, s.TIME, s.decimal(0, optional=True)], ids=str)
def test_values_that_are_no_structs(registry: StandIn, schema: Schema) -> None:
    value = {SchemaType.STRING: "x", SchemaType.INT32: dt.time(1, 2, 3)}.get(schema.type, Decimal(5))
    assert there_and_back(registry, schema, value) == (schema, value)


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_a_schema_in_confluents_words_and_order(registry: StandIn) -> None:
    schema = s.struct(
        {"d": s.decimal(2), "o": Schema(SchemaType.STRING, True, default="x")}, name="com.acme.R", version=1
    )
    configured(AvroConverter, registry.url).from_connect("t", schema, Struct(schema, {"d": Decimal("1.00")}))
    assert registry.by_id[1]["schema"] == (
        '{"type":"record","name":"R","namespace":"com.acme","fields":['
        '{"name":"d","type":{"type":"bytes","scale":2,"precision":64,"connect.version":1,"connect.parameters":{"scale":"2"}'
        ',"connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}},'
        '{"name":"o","type":[{"type":"string","connect.default":"x"},"null"],"default":"x"}'
        '],"connect.version":1,"connect.name":"com.acme.R"}'
    )


def test_structs_without_name_get_one_and_lose_it_again(registry: StandIn) -> None:
    inner = s.struct({"x": s.INT32})
    schema = s.struct({"a": inner})
    tree = written(registry, schema, Struct(schema, {"a": Struct(inner, {"x": 1})}))
    assert (tree["name"], tree["namespace"]) == ("ConnectDefault", "io.confluent.connect.avro")
    assert tree["fields"][0]["type"]["name"] == "ConnectDefault2"


def test_maps_with_other_keys_are_lists_of_entries(registry: StandIn) -> None:
    tree = written(registry, s.mapping(s.INT64, s.STRING), {1: "a"})
    assert tree["type"] == "array"
    assert (tree["items"]["name"], tree["items"]["namespace"]) == ("MapEntry", "io.confluent.connect.avro")


def test_without_meta_data_avro_stays_bare(registry: StandIn) -> None:
    schema = s.struct({"a": s.INT8, "b": s.DATE}, name="com.acme.R", version=3, doc="d", parameters={"k": "v"})
    value = Struct(schema, {"a": 1, "b": dt.date(2020, 1, 1)})
    assert written(registry, schema, value, connect_meta_data=False) == {
        "type": "record",
        "name": "R",
        "namespace": "com.acme",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": {"type": "int", "logicalType": "date"}}],
    }


ENUM_AVRO = {"type": "enum", "name": "Colour", "namespace": "com.acme", "symbols": ["RED", "BLUE"], "doc": "of paint"}


@pytest.mark.parametrize("enhanced", [True, False])
def test_enums_are_strings_and_stay_enums_on_request(registry: StandIn, enhanced: bool) -> None:
    schema, value = read(registry, ENUM_AVRO, b"\x02")
    assert value == "BLUE"
    assert schema is not None
    tree = written(registry, schema, value, enhanced_avro_schema_support=enhanced)
    assert tree["type"] == ("enum" if enhanced else "string")
    if enhanced:
        assert {key: tree[key] for key in ENUM_AVRO} == ENUM_AVRO


@pytest.mark.parametrize("enhanced", [True, False])
def test_unions_are_structs_of_which_one_field_is_set(registry: StandIn, enhanced: bool) -> None:
    record = {"type": "record", "name": "R", "namespace": "com.acme", "fields": [{"name": "x", "type": "int"}]}
    avro = {"type": "record", "name": "U", "fields": [{"name": "u", "type": ["null", "int", "string", record]}]}
    config = {"enhanced_avro_schema_support": enhanced}
    name = "com.acme.R" if enhanced else "R"
    for data, expected in [
        (b"\x02\x0a", {"int": 5}),
        (b"\x04\x02a", {"string": "a"}),
        (b"\x06\x0a", {name: {"x": 5}}),
        (b"\x00", None),
    ]:
        schema, value = read(registry, avro, data, **config)
        assert schema is not None
        assert schema.fields[0].schema.name == names.UNION
        found = value["u"]
        assert (found and {k: bare(v) for k, v in found.as_dict().items() if v is not None}) == expected
        assert bare(there_and_back(registry, schema, value, **config)[1]) == bare(value)


def test_default_of_a_foreign_union(registry: StandIn) -> None:
    avro = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["string", "null"], "default": "dv"}]}
    schema, value = read(registry, avro, b"\x02")
    assert schema is not None
    assert schema.fields[0].schema.default == "dv"
    assert (value["a"], value.get_without_default("a")) == ("dv", None)


def test_schemas_of_other_subjects_are_fetched(registry: StandIn) -> None:
    registry.add(
        "address", json.dumps({"type": "record", "name": "a.Address", "fields": [{"name": "zip", "type": "string"}]})
    )
    text = json.dumps({"type": "record", "name": "a.Person", "fields": [{"name": "home", "type": "a.Address"}]})
    number = registry.add("t-value", text, references=[{"name": "a.Address", "subject": "address", "version": 1}])
    _, value = configured(AvroConverter, registry.url).to_connect("t", b"\0" + number.to_bytes(4, "big") + b"\x02Z")
    assert bare(value) == {"home": {"zip": "Z"}}


# --- evolution --------------------------------------------------------------------------------------------------------


def test_a_writer_that_adds_a_field_with_default(registry: StandIn) -> None:
    newer = s.struct(
        {**{each.name: each.schema for each in USER.fields}, "age": Schema(SchemaType.INT32, default=18)},
        name=USER.name,
    )
    converter = configured(AvroConverter, registry.url)
    old = converter.from_connect("users", USER, Struct(USER, {"id": 1}))
    new = converter.from_connect("users", newer, Struct(newer, {"id": 2}))
    assert registry.subjects == {"users-value": [1, 2]}
    reader = configured(AvroConverter, registry.url)
    assert reader.to_connect("users", old) == (USER, Struct(USER, {"id": 1}))
    assert reader.to_connect("users", new) == (newer, Struct(newer, {"id": 2, "age": 18}))


def test_the_latest_version_is_written_if_so_wanted(registry: StandIn) -> None:
    latest = {
        "type": "record",
        "name": "com.acme.User",
        "fields": [
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "id", "type": "int"},
            {"name": "age", "type": "int", "default": 18},
        ],
    }
    registry.add("users-value", json.dumps(latest))
    config = {"auto_register_schemas": False, "use_latest_version": True}
    converter = configured(AvroConverter, registry.url, **config)
    data = converter.from_connect("users", USER, Struct(USER, {"id": 1, "name": "Bo"}))
    assert data == b"\x00\x00\x00\x00\x01\x02\x04Bo\x02\x24"
    assert registry.requests == ["GET /subjects/users-value/versions/latest"]


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (USER, None, "Found null value for non-optional schema"),
        (USER, Struct(USER), "Found null value for non-optional schema"),
        (s.INT32, "x", "Invalid value 'x'"),
        (s.INT8, 300, "Invalid value 300"),
        (s.decimal(2), Decimal("1.234"), "mismatching scale"),
        (s.struct({"a-b": s.INT32}), Struct(s.struct({"a-b": s.INT32}), {"a-b": 1}), "'a-b' is no name in Avro"),
        (None, {"a": 1}, "A dict without schema cannot be written for topic t by AvroConverter"),
        (None, [1], "has to give its records a schema"),
    ],
    ids=str,
)
def test_what_cannot_be_written(registry: StandIn, schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        configured(AvroConverter, registry.url).from_connect("t", schema, value)


def test_one_name_for_two_structs(registry: StandIn) -> None:
    other = s.struct({"x": s.INT32}, name=USER.name)
    schema = s.struct({"a": USER, "b": other})
    value = Struct(schema, {"a": Struct(USER, {"id": 1}), "b": Struct(other, {"x": 1})})
    with pytest.raises(DataError, match=r"Two different schemas have the name com\.acme\.User"):
        configured(AvroConverter, registry.url).from_connect("t", schema, value)


@pytest.mark.parametrize(
    ("avro", "message"),
    [
        ("null", "Standalone null schemas are not supported"),
        ({"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}, "contains itself"),
        ({"type": "nonsense"}, "does not define"),
        ({"name": "x"}, "is no Avro schema"),
        ({"type": "bytes", "connect.name": 5}, "Invalid schema name"),
    ],
    ids=str,
)
def test_schemas_that_connect_cannot_have(registry: StandIn, avro: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(registry, avro, b"")


def test_data_that_ends_too_soon(registry: StandIn) -> None:
    with pytest.raises(DataError, match="Failed to deserialize Avro data of topic t"):
        read(registry, "string", b"\x0aab")


@pytest.mark.parametrize("schema", [None, s.OPTIONAL_STRING])
def test_null_is_a_tombstone_and_asks_nobody(registry: StandIn, schema: Schema | None) -> None:
    converter = configured(AvroConverter, registry.url)
    assert converter.from_connect("t", schema, None) is None
    assert converter.to_connect("t", None) == (None, None)
    assert registry.requests == []
