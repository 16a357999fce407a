"""InsertField and ValueToKey."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink, source

from headgate.api import ConfigError, DataError, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.insert_field import InsertFieldKey, InsertFieldValue
from headgate.pipeline.transforms.value_to_key import ValueToKey

ALL = {
    "topic.field": "t!",
    "partition.field": "p",
    "offset.field": "of",
    "timestamp.field": "ts",
    "static.field": "sf?",
    "static.value": "sv",
}
AT = dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)


class TestInsertField:
    def test_into_a_struct_in_this_order(self) -> None:
        changed = apply(InsertFieldValue, ALL, sink(a_struct()))
        schema = s.struct(
            {
                "a": s.INT32,
                "b": s.OPTIONAL_STRING,
                "t": s.STRING,
                "p": s.INT32.as_optional(),
                "of": s.INT64.as_optional(),
                "ts": s.TIMESTAMP.as_optional(),
                "sf": s.OPTIONAL_STRING,
            },
            name="nm",
            version=3,
            doc="dd",
            parameters={"k": "v"},
        )
        assert changed.value_schema == schema
        assert raw(changed.value) == {"a": 300, "b": "x", "t": "topic-1", "p": 0, "of": 7, "ts": AT, "sf": "sv"}
        assert changed.value.validate() is changed.value

    def test_into_a_map(self) -> None:
        record = sink(a_map())
        changed = apply(InsertFieldValue, ALL, record)
        inserted = {"t": "topic-1", "p": 0, "of": 7, "ts": 1700000000123, "sf": "sv"}
        assert changed.value == {**a_map(), **inserted}
        assert record.value == a_map()

    def test_partition_and_timestamp_may_be_absent(self) -> None:
        config = {key: value for key, value in ALL.items() if key != "offset.field"} | {"static.value": ""}
        assert apply(InsertFieldValue, config, source(a_map())).value == {**a_map(), "t": "topic-1", "sf": ""}
        changed = apply(InsertFieldValue, {"partition.field": "p!"}, source(a_struct()))
        assert raw(changed.value) == {"a": 300, "b": "x", "p": None}

    def test_a_field_of_that_name(self) -> None:
        assert apply(InsertFieldValue, {"topic.field": "a"}, sink(a_map())).value["a"] == "topic-1"
        with pytest.raises(DataError, match=r"^Cannot create field because of field name duplication a$"):
            apply(InsertFieldValue, {"topic.field": "a"}, sink(a_struct()))

    @pytest.mark.parametrize("value", [a_map(), a_struct()])
    def test_only_sinks_have_offsets(self, value: Any) -> None:
        with pytest.raises(DataError) as error:
            apply(InsertFieldValue, {"offset.field": "of"}, source(value))
        assert str(error.value) == (
            "Only SinkRecord supported for [field insertion], found: org.apache.kafka.connect.source.SourceRecord"
        )

    @pytest.mark.parametrize("schema", [None, STRUCT])
    def test_null_passes(self, schema: Schema | None) -> None:
        record = sink(None, schema)
        assert apply(InsertFieldValue, ALL, record) is record

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            (
                None,
                "Only Map objects supported in absence of schema for [field insertion], found: java.lang.String",
            ),
            (s.STRING, "Only Struct objects supported for [field insertion], found: java.lang.String"),
        ],
    )
    def test_wrong_values(self, schema: Schema | None, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(InsertFieldValue, {"topic.field": "t"}, sink("s", schema))
        assert str(error.value) == message

    def test_defaults(self) -> None:
        config = {"topic.field": "t"}
        changed = apply(InsertFieldValue, config, sink(Struct(DEFAULTS)))
        assert raw(changed.value) == {"d": 9, "r": "rd", "t": "topic-1"}
        changed = apply(InsertFieldValue, {**config, **KEEP}, sink(Struct(DEFAULTS, {"r": "q"})))
        assert raw(changed.value) == {"d": None, "r": "q", "t": "topic-1"}
        with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
            apply(InsertFieldValue, {**config, **KEEP}, sink(Struct(DEFAULTS)))

    def test_the_schema_is_no_longer_optional(self) -> None:
        schema = s.struct({"a": s.INT64}, optional=True)
        changed = apply(InsertFieldValue, {"topic.field": "t"}, sink(Struct(schema, {"a": 1})))
        assert changed.value_schema == s.struct({"a": s.INT64, "t": s.OPTIONAL_STRING})

    def test_the_key(self) -> None:
        changed = apply(InsertFieldKey, {"topic.field": "t"}, sink(a_map(), key={"k": 1}))
        assert (changed.key, changed.value) == ({"k": 1, "t": "topic-1"}, a_map())

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({}, "No field insertion configured"),
            ({"static.value": "v"}, "No field insertion configured"),
            (
                {"static.field": "f"},
                "Invalid value null for configuration static.value: No value specified for static field: f",
            ),
        ],
    )
    def test_wrong_config(self, config: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(InsertFieldValue, config)
        assert str(error.value) == message


class TestValueToKey:
    def test_from_a_map(self) -> None:
        changed = apply(ValueToKey, {"fields": "a,zz"}, sink(a_map(), key="old", key_schema=s.STRING))
        assert (changed.key, changed.key_schema, changed.value) == ({"a": 5, "zz": None}, None, a_map())

    def test_from_a_struct(self) -> None:
        changed = apply(ValueToKey, {"fields": "b,a,b"}, sink(a_struct()))
        schema = s.struct({"b": s.OPTIONAL_STRING, "a": s.INT32})
        assert (changed.key, changed.key_schema) == (Struct(schema, {"a": 300, "b": "x"}), schema)
        assert (changed.value, changed.value_schema) == (a_struct(), STRUCT)

    def test_defaults(self) -> None:
        assert raw(apply(ValueToKey, {"fields": "d"}, sink(Struct(DEFAULTS))).key) == {"d": 9}
        assert raw(apply(ValueToKey, {"fields": "d", **KEEP}, sink(Struct(DEFAULTS))).key) == {"d": None}
        with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
            apply(ValueToKey, {"fields": "r", **KEEP}, sink(Struct(DEFAULTS)))

    @pytest.mark.parametrize(
        ("value", "schema", "message"),
        [
            (a_struct(), STRUCT, "Field does not exist: zz"),
            (
                None,
                None,
                "Only Map objects supported in absence of schema for [copying fields from value to key], found: null",
            ),
            (None, STRUCT, "Only Struct objects supported for [copying fields from value to key], found: null"),
            (
                "s",
                None,
                (
                    "Only Map objects supported in absence of schema for [copying fields from value to key], found: "
                    "java.lang.String"
                ),
            ),
        ],
    )
    def test_wrong_values(self, value: Any, schema: Schema | None, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(ValueToKey, {"fields": "a,zz"}, sink(value, schema))
        assert str(error.value) == message

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ("", "Configuration 'fields' must not be empty. Valid values include: any non-empty value"),
            ("a,,b", "Configuration 'fields' values must not be empty."),
        ],
    )
    def test_wrong_config(self, fields: str, message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(ValueToKey, {"fields": fields})
        assert str(error.value) == message
