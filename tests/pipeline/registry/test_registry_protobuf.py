"""ProtobufConverter: the mapping of schemas and values, both ways, and the bytes on the wire."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import HealthCheck, given, settings
from registry_stand_in import StandIn
from registry_support import bare, configured, kept, schemas_with_values

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter
from headgate.pipeline.converters.registry.protobuf_files import parsed
from headgate.pipeline.converters.registry.protobuf_schema import file_text

pytestmark = pytest.mark.process

USER = s.struct({"id": s.INT32, "name": s.OPTIONAL_STRING}, name="com.acme.User")


def there_and_back(registry: StandIn, schema: Schema, value: Any, **config: Any) -> tuple[Schema | None, Any]:
    converter = kept(ProtobufConverter, registry.url, **config)
    return converter.to_connect("t", converter.from_connect("t", schema, value))


def registered(registry: StandIn) -> Any:
    return parsed(registry.by_id[max(registry.by_id)]["schema"])


def test_bytes_on_the_wire(registry: StandIn) -> None:
    converter = configured(ProtobufConverter, registry.url)
    data = converter.from_connect("t", USER, Struct(USER, {"id": 1, "name": "é"}))
    assert data == b"\x00\x00\x00\x00\x01\x00\x08\x01\x12\x02\xc3\xa9"
    assert registry.by_id[1]["schemaType"] == "PROTOBUF"
    file = registered(registry)
    assert (file.syntax, file.package, [each.name for each in file.message_type]) == ("proto3", "com.acme", ["User"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schemas_with_values(nulls_inside=False, nested=False))
def test_what_is_written_is_read(shared_registry: StandIn, found: tuple[Schema, Any]) -> None:
    schema, value = found
    assert bare(there_and_back(shared_registry, schema, value)[1]) == bare(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (s.INT8, -3),
        (s.INT16, 3000),
        (s.decimal(2), Decimal("-123.40")),
        (s.DATE, dt.date(2020, 2, 29)),
        (s.TIME, dt.time(23, 59, 59, 999000)),
        (s.TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)),
        (s.array(s.STRING), ["a", "b"]),
        (s.array(s.DATE), [dt.date(2020, 2, 29)]),
        (s.array(USER), [Struct(USER, {"id": 1, "name": "a"})]),
        (s.mapping(s.STRING, s.INT32), {"a": 1}),
        (s.mapping(s.STRING, s.DATE), {"a": dt.date(2020, 1, 1)}),
        (s.mapping(s.INT64, USER), {5: Struct(USER, {"id": 1, "name": "b"})}),
        (s.mapping(s.FLOAT64, s.STRING), {1.5: "x"}),
        (s.mapping(s.DATE, USER), {dt.date(2020, 1, 1): Struct(USER, {"id": 1, "name": "b"})}),
    ],
    ids=str,
)
def test_values_of_each_type(registry: StandIn, schema: Schema, value: Any) -> None:
    outer = s.struct({"f_g": schema})
    found, back = there_and_back(registry, outer, Struct(outer, {"f_g": value}))
    assert found is not None
    assert bare(back) == bare(Struct(outer, {"f_g": value}))
    member = found.fields[0].schema
    assert (member.type, member.optional, member.parameters[names.TAG]) == (schema.type, True, "1")
    if schema.type is not SchemaType.MAP:
        assert member.name == schema.name


def test_null_is_the_default_of_proto3_unless_told_otherwise(registry: StandIn) -> None:
    value = Struct(USER, {"id": 0})
    assert there_and_back(registry, USER, value)[1].as_dict() == {"id": 0, "name": ""}
    for key in ("optional_for_nullables", "wrapper_for_nullables"):
        schema, back = there_and_back(registry, USER, value, **{key: True})
        assert schema is not None
        assert back.as_dict() == {"id": 0, "name": None}
        assert [each.schema.optional for each in schema.fields] == [False, True]
        full = Struct(USER, {"id": 1, "name": ""})
        assert there_and_back(registry, USER, full, **{key: True})[1].as_dict() == {"id": 1, "name": ""}
    with pytest.raises(ConfigError, match="only one can be true"):
        configured(ProtobufConverter, registry.url, optional_for_nullables=True, wrapper_for_nullables=True)


@pytest.mark.parametrize("key", ["optional_for_nullables", "wrapper_for_nullables"])
def test_small_integers_that_may_be_null(registry: StandIn, key: str) -> None:
    schema = s.struct({"a": s.INT8.as_optional(), "b": s.INT16.as_optional()})
    found, back = there_and_back(registry, schema, Struct(schema, {"a": -5}), **{key: True})
    assert found is not None
    assert [each.schema.type for each in found.fields] == [SchemaType.INT8, SchemaType.INT16]
    assert bare(back) == {"a": -5, "b": None}


def test_a_default_is_written_where_nothing_is_set(registry: StandIn) -> None:
    schema = s.struct({"a": Schema(SchemaType.INT32, default=7)})
    assert bare(there_and_back(registry, schema, Struct(schema))[1]) == {"a": 7}


@pytest.mark.parametrize(("enhanced", "name"), [(False, "User"), (True, "com.acme.User")])
def test_packages_are_kept_on_request(registry: StandIn, enhanced: bool, name: str) -> None:
    value = Struct(USER, {"id": 1, "name": ""})
    schema, _ = there_and_back(registry, USER, value, enhanced_protobuf_schema_support=enhanced)
    assert schema is not None
    assert schema.name == name


def foreign() -> Any:
    """message Other {}  message Main { enum Kind {..}  message Inner {..}  oneof pick {..}  uint32 big }"""
    field = "type"
    file = FileDescriptorProto(syntax="proto3", package="p", name="f.proto")
    file.message_type.add(name="Other").field.add(name="x", number=1, label=1, **{field: 5})
    main = file.message_type.add(name="Main")
    kind = main.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="SOME", number=5)
    inner = main.nested_type.add(name="Inner")
    inner.field.add(name="y", number=3, label=1, **{field: 9})
    main.oneof_decl.add(name="pick")
    main.field.add(name="kind", number=1, label=1, type_name=".p.Main.Kind", **{field: 14})
    main.field.add(name="text", number=2, label=1, oneof_index=0, **{field: 9})
    main.field.add(name="inner", number=3, label=1, oneof_index=0, type_name=".p.Main.Inner", **{field: 11})
    main.field.add(name="big", number=9, label=1, **{field: 13})
    return file


def test_messages_of_others_with_enum_oneof_and_unsigned(registry: StandIn) -> None:
    number = registry.add("t-value", file_text(foreign()), "PROTOBUF")
    start = b"\0" + number.to_bytes(4, "big")
    converter = configured(ProtobufConverter, registry.url)
    # Main is the second message: one index, 1, both zigzag.
    schema, value = converter.to_connect(
        "t", start + b"\x02\x02" + b"\x08\x05\x1a\x03\x1a\x01z\x48\xff\xff\xff\xff\x0f"
    )
    assert schema is not None
    assert bare(value) == {"pick_0": {"text": None, "inner": {"y": "z"}}, "kind": "SOME", "big": 4294967295}
    assert schema.fields[0].schema.name == f"{names.UNION}pick"
    kind = schema.fields[1].schema
    assert kind.parameters == {names.ENUM: "Kind", f"{names.ENUM}.NONE": "0", f"{names.ENUM}.SOME": "5", names.TAG: "1"}
    # Main.Inner: two indexes, 1 and 0. The first message: a single zero.
    assert bare(converter.to_connect("t", start + b"\x04\x02\x00" + b"\x1a\x01z")[1]) == {"y": "z"}
    assert bare(converter.to_connect("t", start + b"\x00" + b"\x08\x05")[1]) == {"x": 5}
    assert len(registry.requests) == 1
    assert bare(there_and_back(registry, schema, value)[1]) == bare(value)
    tags = {each.name: each.number for each in registered(registry).message_type[0].field}
    assert tags == {"kind": 1, "text": 2, "inner": 3, "big": 9}


def test_a_symbol_that_the_enum_does_not_have(registry: StandIn) -> None:
    number = registry.add("t-value", file_text(foreign()), "PROTOBUF")
    data = b"\0" + number.to_bytes(4, "big") + b"\x02\x02\x08\x09"
    _, value = configured(ProtobufConverter, registry.url).to_connect("t", data)
    assert value["kind"] == "UNKNOWN_ENUM_VALUE_Kind_9"


def test_schemas_of_other_subjects_are_fetched(registry: StandIn) -> None:
    used = FileDescriptorProto(syntax="proto3", package="q", name="any.proto")
    used.message_type.add(name="Address").field.add(name="zip", number=1, label=1, type=9)
    registry.add("address", file_text(used), "PROTOBUF")
    file = FileDescriptorProto(syntax="proto3", dependency=["address.proto"])
    file.message_type.add(name="Person").field.add(name="home", number=1, label=1, type=11, type_name=".q.Address")
    references = [{"name": "address.proto", "subject": "address", "version": 1}]
    number = registry.add("t-value", file_text(file), "PROTOBUF", references)
    data = b"\0" + number.to_bytes(4, "big") + b"\x00\x0a\x03\x0a\x01Z"
    assert bare(configured(ProtobufConverter, registry.url).to_connect("t", data)[1]) == {"home": {"zip": "Z"}}


def test_the_latest_version_is_written_if_so_wanted(registry: StandIn) -> None:
    registry.add("t-value", file_text(foreign()), "PROTOBUF")
    schema = s.struct({"big": s.INT64}, name="p.Main")
    config = {"auto_register_schemas": False, "use_latest_version": True}
    data = configured(ProtobufConverter, registry.url, **config).from_connect("t", schema, Struct(schema, {"big": 1}))
    assert data == b"\x00\x00\x00\x00\x01\x02\x02\x48\x01"


LISTS = s.struct({"a": s.array(s.array(s.INT32))})
NULLS = s.struct({"a": s.array(s.OPTIONAL_STRING)})
NAMED = s.struct({"a-b": s.INT32})
ENUM = s.struct({"e": Schema(SchemaType.STRING, name="E", parameters={names.ENUM: "E", f"{names.ENUM}.A": "1"})})
SYMBOL = s.struct({"e": replace(ENUM.fields[0].schema, parameters={names.ENUM: "E", f"{names.ENUM}.A": "0"})})


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (s.STRING, "x", "a schema of type STRING has to be put in a struct"),
        (None, "x", "has to give its records a schema"),
        (USER, None, "Found null value for non-optional schema"),
        (USER, Struct(USER), "Found null value for non-optional schema"),
        (LISTS, Struct(LISTS, {"a": []}), "is an array of ARRAYs"),
        (NULLS, Struct(NULLS, {"a": [None]}), "has a null in it"),
        (NAMED, Struct(NAMED, {"a-b": 1}), "is no name in Protobuf"),
        (ENUM, Struct(ENUM, {"e": "A"}), "no symbol of number 0"),
        (SYMBOL, Struct(SYMBOL, {"e": "B"}), "'B' is no symbol of enum"),
    ],
    ids=str,
)
def test_what_cannot_be_written(registry: StandIn, schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        configured(ProtobufConverter, registry.url).from_connect("t", schema, value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "before its Protobuf message is named"),
        (b"\x02\x80", "before its Protobuf message is named"),
        (b"\x02\x0a", "has no message at"),
        (b"\x01", "names no Protobuf message"),
        (b"\x00\x0a\xff", "Failed to deserialize Protobuf data of topic t"),
    ],
)
def test_what_cannot_be_read(registry: StandIn, data: bytes, message: str) -> None:
    number = registry.add("t-value", file_text(foreign()), "PROTOBUF")
    with pytest.raises(DataError, match=message):
        configured(ProtobufConverter, registry.url).to_connect("t", b"\0" + number.to_bytes(4, "big") + data)


def test_a_registry_that_sends_text(registry: StandIn) -> None:
    registry.add("t-value", 'syntax = "proto3";', "PROTOBUF")
    with pytest.raises(DataError, match="serialized form"):
        configured(ProtobufConverter, registry.url).to_connect("t", b"\0\0\0\0\x01\0")
