"""Schema and Struct: Connect's data model. From the data contract, §1."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from headgate.api import DataError, Field, Schema, SchemaType, Struct
from headgate.api.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    mapping,
    struct,
    validate_value,
)

POINT = struct({"x": INT32, "y": INT32})
NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, -128),
        (INT8, 127),
        (INT16, 32767),
        (INT32, -(2**31)),
        (INT64, 2**63 - 1),
        (FLOAT32, 1.5),
        (FLOAT64, float("nan")),
        (BOOLEAN, True),
        (STRING, "ä"),
        (BYTES, b"a"),
        (BYTES, bytearray(b"a")),
        (array(INT8), [1, 2]),
        (array(OPTIONAL_STRING), ["a", None]),
        (mapping(STRING, INT8), {"a": 1}),
        (mapping(INT32, array(INT8)), {1: [1]}),
        (POINT, Struct(POINT, {"x": 1, "y": 2})),
        (POINT.as_optional(), Struct(POINT)),
        (decimal(2), Decimal("1.25")),
        (DATE, dt.date(2024, 1, 2)),
        (TIME, dt.time(12)),
        (TIMESTAMP, NOON),
        (OPTIONAL_STRING, None),
    ],
)
def test_values_are_plain_python(schema: Schema, value: Any) -> None:
    validate_value(schema, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, 128),
        (INT8, True),
        (INT8, 1.0),
        (INT64, 2**63),
        (FLOAT64, "1"),
        (BOOLEAN, 1),
        (STRING, b"a"),
        (BYTES, "a"),
        (array(INT8), [1, 300]),
        (array(INT8), "ab"),
        (array(INT8), [None]),
        (mapping(STRING, INT8), {1: 1}),
        (mapping(STRING, INT8), {"a": "b"}),
        (POINT, {"x": 1, "y": 2}),
        (POINT, Struct(struct({"x": INT32}))),
        (decimal(2), 1.25),
        (DATE, NOON),
        (DATE, 5),
        (TIME, NOON),
        (TIMESTAMP, NOON.date()),
        (TIMESTAMP, NOON.replace(tzinfo=None)),
        (STRING, None),
    ],
)
def test_other_values_are_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        validate_value(schema, value)


def test_a_null_in_a_required_field_is_named() -> None:
    with pytest.raises(DataError) as raised:
        Struct(POINT, {"x": 1}).validate()
    assert str(raised.value) == 'Invalid value: null used for required field: "y", schema type: INT32'


@pytest.mark.parametrize(
    ("schema", "name", "version", "base", "parameters"),
    [
        (decimal(2), "org.apache.kafka.connect.data.Decimal", 1, SchemaType.BYTES, {"scale": "2"}),
        (DATE, "org.apache.kafka.connect.data.Date", 1, SchemaType.INT32, {}),
        (TIME, "org.apache.kafka.connect.data.Time", 1, SchemaType.INT32, {}),
        (TIMESTAMP, "org.apache.kafka.connect.data.Timestamp", 1, SchemaType.INT64, {}),
    ],
)
def test_logical_types_are_named_schemas(
    schema: Schema, name: str, version: int, base: SchemaType, parameters: dict[str, str]
) -> None:
    assert (schema.name, schema.version, schema.type, schema.parameters) == (name, version, base, parameters)


def test_a_schema_is_shown_as_in_java() -> None:
    assert str(INT32) == "Schema{INT32}"
    assert str(struct({}, name="my.S")) == "Schema{my.S:STRUCT}"


def test_schemas_are_equal_when_every_attribute_is() -> None:
    whole = struct({"a": INT32}, name="S", version=1, optional=True, doc="d", parameters={"k": "v"})
    same = struct({"a": INT32}, name="S", version=1, optional=True, doc="d", parameters={"k": "v"})
    assert whole == same
    assert hash(whole) == hash(same)
    for other in (
        struct({"b": INT32}, name="S", version=1, optional=True, doc="d", parameters={"k": "v"}),
        struct({"a": INT32}, name="S", version=2, optional=True, doc="d", parameters={"k": "v"}),
        struct({"a": INT32}, name="S", version=1, optional=True, doc="d", parameters={"k": "w"}),
        struct({"a": INT32}, name="S", version=1, doc="d", parameters={"k": "v"}),
    ):
        assert whole != other


def test_any_schema_can_be_a_key_of_a_cache() -> None:
    assert {Schema(SchemaType.ARRAY, default=[1], value_schema=INT8): 1}
    assert {Schema(SchemaType.STRING, parameters={"a": "b"}): 1}


def test_containers_name_what_they_contain() -> None:
    incomplete: list[Callable[[], Schema]] = [
        lambda: Schema(SchemaType.ARRAY),
        lambda: Schema(SchemaType.MAP, value_schema=INT8),
        lambda: Schema(SchemaType.STRUCT, fields=(Field("a", 0, INT8), Field("a", 1, INT8))),
    ]
    for make in incomplete:
        with pytest.raises(DataError):
            make()


def test_a_default_must_fit() -> None:
    assert Schema(SchemaType.INT8, default=0).default == 0
    with pytest.raises(DataError):
        Schema(SchemaType.INT8, default="0")


def test_a_default_struct_may_come_from_the_schema_before_it_had_one() -> None:
    for optional in (True, False):
        origin = Struct(struct({"x": INT32}, optional=optional), {"x": 0})
        with_default = struct({"x": INT32}, optional=True, default=origin)
        assert Struct(struct({"p": with_default}))["p"] is origin


def test_optional_keeps_all_else() -> None:
    assert decimal(2).as_optional() == decimal(2, optional=True)
    assert OPTIONAL_STRING.as_optional() is OPTIONAL_STRING


# --- structs ----------------------------------------------------------------------------------------------------------

WITH_DEFAULT = struct({"a": INT32, "b": Schema(SchemaType.STRING, optional=True, default="dv")})


def test_an_unset_field_reads_as_its_default_or_as_null() -> None:
    value = Struct(WITH_DEFAULT, {"a": 1})
    assert value["b"] == "dv"
    assert value.get_without_default("b") is None
    assert value.as_dict() == {"a": 1, "b": "dv"}
    assert value.validate() is value


def test_fields_are_checked_when_they_are_set() -> None:
    value = Struct(WITH_DEFAULT)
    with pytest.raises(DataError, match='of type str for field "a"'):
        value["a"] = "x"
    with pytest.raises(DataError, match="zz is not a valid field name"):
        value["zz"] = 1
    with pytest.raises(DataError, match="zz is not a valid field name"):
        _ = value["zz"]
    assert ("a" in value, "zz" in value) == (True, False)


def test_a_struct_needs_a_struct_schema() -> None:
    with pytest.raises(DataError, match=r"Not a struct schema: Schema\{INT8\}"):
        Struct(INT8)


def test_structs_are_equal_by_schema_and_values() -> None:
    assert Struct(POINT, {"x": 1}) == Struct(POINT, {"x": 1})
    assert Struct(POINT, {"x": 1}) != Struct(POINT, {"x": 2})
    assert Struct(POINT, {"x": 1}) != Struct(struct({"x": INT32}), {"x": 1})


def test_structs_travel_to_executors_and_back() -> None:
    value = Struct(WITH_DEFAULT, {"a": 1})
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_a_struct_is_shown_as_in_java() -> None:
    assert str(Struct(struct({"f": STRING, "g": OPTIONAL_STRING}), {"f": "ok"})) == "Struct{f=ok}"


def test_all_values_of_a_struct_at_once() -> None:
    schema = struct({"a": INT32, "b": replace(STRING, default="x"), "c": OPTIONAL_STRING})
    values = [1, None, None]
    made = Struct.of(schema, values)
    assert made.values is values
    assert made == Struct(schema, {"a": 1})
    assert (made["b"], made.get_without_default("b")) == ("x", None)
    assert Struct(schema, {"c": "y"}).values == [None, None, "y"]
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_struct_of_values_is_not_checked_until_it_is_asked_to_be() -> None:
    made = Struct.of(POINT, [1, "two"])
    assert made["y"] == "two"
    with pytest.raises(DataError, match='for field "y"'):
        made.validate()
