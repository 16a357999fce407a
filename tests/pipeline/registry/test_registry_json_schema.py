"""JsonSchemaConverter: the mapping of schemas and values, both ways, and the bytes on the wire."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from registry_stand_in import StandIn
from registry_support import bare, configured, kept, schemas_with_values

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter

pytestmark = pytest.mark.process

USER = s.struct({"id": s.INT32, "name": s.OPTIONAL_STRING}, name="com.acme.User")


def there_and_back(registry: StandIn, schema: Schema, value: Any, **config: Any) -> tuple[Schema | None, Any]:
    converter = kept(JsonSchemaConverter, registry.url, **config)
    return converter.to_connect("t", converter.from_connect("t", schema, value))


def read(registry: StandIn, tree: Any, data: str, references: Any = (), **config: Any) -> tuple[Schema | None, Any]:
    number = registry.add("t-value", json.dumps(tree), "JSON", references)
    converter = configured(JsonSchemaConverter, registry.url, **config)
    return converter.to_connect("t", b"\0" + number.to_bytes(4, "big") + data.encode())


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (s.STRING, "foo", b'\x00\x00\x00\x00\x01"foo"'),
        (s.decimal(2), Decimal("123.45"), b'\x00\x00\x00\x00\x01"MDk="'),
        (s.mapping(s.INT32, s.STRING), {1: "a"}, b'\x00\x00\x00\x00\x01[{"key":1,"value":"a"}]'),
        (USER, Struct(USER, {"id": 1}), b'\x00\x00\x00\x00\x01{"id":1,"name":null}'),
    ],
    ids=str,
)
def test_bytes_on_the_wire(registry: StandIn, schema: Schema, value: Any, expected: bytes) -> None:
    assert configured(JsonSchemaConverter, registry.url).from_connect("t", schema, value) == expected


def test_a_schema_in_confluents_words(registry: StandIn) -> None:
    configured(JsonSchemaConverter, registry.url).from_connect("t", USER, Struct(USER, {"id": 1}))
    assert registry.by_id[1]["schemaType"] == "JSON"
    assert registry.schema(1) == {
        "type": "object",
        "title": "com.acme.User",
        "properties": {
            "id": {"type": "integer", "connect.type": "int32", "connect.index": 0},
            "name": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
        },
    }


def test_confluents_deserializer_reads_what_we_write(registry: StandIn) -> None:
    data = configured(JsonSchemaConverter, registry.url).from_connect("t", USER, Struct(USER, {"id": 7, "name": "Ann"}))
    assert data is not None
    reads = JSONDeserializer(json.dumps(registry.schema(1)))
    assert reads(data, SerializationContext("t", MessageField.VALUE)) == {"id": 7, "name": "Ann"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schemas_with_values())
def test_what_is_written_is_read(shared_registry: StandIn, found: tuple[Schema, Any]) -> None:
    assert there_and_back(shared_registry, *found) == found


@pytest.mark.parametrize(
    "schema",
    [
        s.struct({"a": s.INT8}, name="x.A", version=4, doc="all of it", parameters={"p": "q"}),
        s.struct({"a": Schema(SchemaType.STRING, True, default="dv"), "b": Schema(SchemaType.INT16, default=3)}),
        s.struct({"a": replace(s.decimal(1), default=Decimal("2.5"))}),
        s.struct({"a": replace(s.mapping(s.INT32, s.STRING), default={1: "x"})}),
    ],
    ids=lambda schema: str([str(each.schema) for each in schema.fields]),
)
def test_all_of_a_schema_comes_back(registry: StandIn, schema: Schema) -> None:
    value = Struct(schema, {each.name: 1 for each in schema.fields if each.schema.type is SchemaType.INT8})
    found, back = there_and_back(registry, schema, value)
    assert found == schema
    assert back.as_dict() == value.as_dict()


def test_numeric_decimals(registry: StandIn) -> None:
    schema, value = there_and_back(registry, s.decimal(2), Decimal("123.40"), decimal_format="numeric")
    assert (schema, str(value)) == (s.decimal(2), "123.40")


@pytest.mark.parametrize(
    ("tree", "data", "expected"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "number"}, "5", 5.0),
        ({"type": ["null", "string"]}, "null", None),
        ({"enum": ["RED", "BLUE"]}, '"BLUE"', "BLUE"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"x"', "x"),
        ({"properties": {"b": {"type": "boolean"}}}, '{"b":true}', {"b": True}),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, "5", 5),
        ({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]}, '{"a":"x"}', {"a": "x"}),
        ({"type": "array", "items": {"type": "integer", "connect.type": "int8"}}, "[1,2]", [1, 2]),
    ],
    ids=str,
)
def test_schemas_of_others(registry: StandIn, tree: Any, data: str, expected: Any) -> None:
    assert bare(read(registry, tree, data)[1]) == expected


def test_one_of_is_a_struct_of_which_one_field_is_set(registry: StandIn) -> None:
    tree = {
        "oneOf": [
            {"type": "null"},
            {"type": "string"},
            {"type": "integer"},
            {"type": "array", "items": {"type": "string"}},
        ]
    }
    for data, field, expected in [('"x"', 0, "x"), ("5", 1, 5), ('["a"]', 2, ["a"])]:
        schema, value = read(registry, tree, data)
        assert schema is not None
        assert value[f"io.confluent.connect.json.OneOf.field.{field}"] == expected
        assert there_and_back(registry, schema, value) == (schema, value)


def test_schemas_of_other_subjects_are_fetched(registry: StandIn) -> None:
    registry.add("address", json.dumps({"type": "object", "properties": {"zip": {"type": "string"}}}), "JSON")
    references = [{"name": "address.json", "subject": "address", "version": 1}]
    tree = {"type": "object", "properties": {"home": {"$ref": "address.json"}}}
    assert bare(read(registry, tree, '{"home":{"zip":"Z"}}', references)[1]) == {"home": {"zip": "Z"}}


def test_properties_that_are_not_required(registry: StandIn) -> None:
    tree = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    with pytest.raises(DataError, match="Invalid null value for required STRING field"):
        read(registry, tree, '{"a":"x"}')
    assert bare(read(registry, tree, '{"a":"x"}', use_optional_for_nonrequired=True)[1]) == {"a": "x", "b": None}


def test_data_is_compared_with_its_schema_on_request(registry: StandIn) -> None:
    tree = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}}}
    assert bare(read(registry, tree, '{"a":10}')[1]) == {"a": 10}
    with pytest.raises(DataError, match="does not match its schema: 10 is greater than the maximum of 9"):
        read(registry, tree, '{"a":10}', json_fail_invalid_schema=True)


def test_a_schema_that_refers_to_another_host_makes_nobody_ask_it(
    registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("urllib.request.urlopen", asked.append)
    tree = {"type": "object", "properties": {"a": {"type": "string", "not": {"$ref": "http://127.0.0.1:1/inside"}}}}
    with pytest.raises(Exception, match="Unresolvable"):
        read(registry, tree, '{"a":"x"}', json_fail_invalid_schema=True)
    assert asked == []


@pytest.mark.parametrize(
    ("tree", "data", "message"),
    [
        ({"type": "string"}, "", "there is none after the schema id"),
        ({"type": "string"}, "{", "Failed to deserialize JSON data of topic t"),
        ({"type": "object", "properties": {}}, "[]", "Structs should be encoded as JSON objects, but found ARRAY"),
        ({"type": "array", "items": {"type": "string"}}, "{}", "Arrays should be encoded as JSON arrays"),
        ({"type": "array"}, "[]", "Array schema did not specify the items type"),
        ({"$ref": "#"}, "1", "contains itself at #"),
        ({"$ref": "other.json"}, "1", "refers to other.json"),
        ({"type": "what"}, "1", "Unsupported type of JSON Schema"),
        (True, "1", "says nothing of a type"),
    ],
    ids=str,
)
def test_what_cannot_be_read(registry: StandIn, tree: Any, data: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(registry, tree, data)


def test_null_is_a_tombstone(registry: StandIn) -> None:
    converter = configured(JsonSchemaConverter, registry.url)
    assert converter.from_connect("t", s.OPTIONAL_STRING, None) is None
    assert converter.to_connect("t", None) == (None, None)
