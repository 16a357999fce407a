"""MaskField, by the results of Apache's class."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink, typed

from headgate.api import ConfigError, DataError, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.mask_field import MaskFieldKey, MaskFieldValue

AT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def masked(value: Any, schema: Schema | None = None, replacement: str | None = None) -> Any:
    config = {"fields": "f"} | ({"replacement": replacement} if replacement is not None else {})
    if schema is None:
        return apply(MaskFieldValue, config, sink({"f": value})).value["f"]
    return apply(MaskFieldValue, config, sink(Struct(s.struct({"f": schema}), {"f": value}))).value["f"]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        (True, None, False),
        (5, None, 0),
        (1.5, None, 0.0),
        ("x", None, ""),
        (Decimal("1.25"), None, Decimal("0.00")),
        (AT, None, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (dt.date(2020, 1, 1), None, dt.date(1970, 1, 1)),
        (dt.time(1), None, dt.time(0)),
        ([1], None, []),
        ((1,), None, []),
        ({"k": 1}, None, {}),
        (None, None, None),
        (Decimal("1.25"), s.decimal(2), Decimal("0.00")),
        (dt.date(2020, 1, 1), s.DATE, dt.date(1970, 1, 1)),
        (dt.time(1), s.TIME, dt.time(0)),
        (AT, s.TIMESTAMP, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ([1], s.array(s.INT8), []),
    ],
)
def test_the_empty_value_of_each_type(value: Any, schema: Schema | None, expected: Any) -> None:
    assert typed(masked(value, schema)) == typed(expected)
    assert str(masked(value, schema)) == str(expected), "a decimal keeps its scale"


@pytest.mark.parametrize(
    ("value", "schema", "replacement", "expected"),
    [
        ("x", None, "77", "77"),
        (5, None, "77", 77),
        (5, None, "1.5", 1),
        (5, None, "1e2", 100),
        (5, None, "1e999999999", 0),
        (5, s.INT8, "300", 44),
        (5, s.INT16, "70000", 4464),
        (5, s.INT32, "300", 300),
        (5, s.INT64, "-1e-999999999", 0),
        (1.5, None, "77", 77.0),
        (1.5, s.FLOAT32, "0.1", 0.10000000149011612),
        (Decimal("1.25"), s.decimal(2), "7.25", Decimal("7.25")),
        (None, None, "77", None),
    ],
)
def test_a_replacement(value: Any, schema: Schema | None, replacement: str, expected: Any) -> None:
    assert typed(masked(value, schema, replacement)) == typed(expected)


@pytest.mark.parametrize(
    ("value", "replacement", "message"),
    [
        (5, "zz", "Unable to convert zz (class java.lang.String) to a number"),
        (1.5, "true", "Unable to convert true (class java.lang.String) to a number"),
        (5, "NaN", "Unable to convert NaN (class java.lang.String) to a number"),
        (Decimal(1), "zz", "Unable to convert zz (class java.lang.String) to number"),
        (True, "77", "Cannot mask value of type class java.lang.Boolean with custom replacement."),
        ([1], "77", "Cannot mask value of type class java.util.ArrayList with custom replacement."),
        (AT, "77", "Cannot mask value of type class java.util.Date with custom replacement."),
        (b"1", "77", "Cannot mask value of type class [B with custom replacement."),
        (b"1", None, "Cannot mask value of type: class [B"),
        (a_struct(), None, "Cannot mask value of type: class org.apache.kafka.connect.data.Struct"),
    ],
)
def test_what_cannot_be_masked(value: Any, replacement: str | None, message: str) -> None:
    with pytest.raises(DataError) as error:
        masked(value, None, replacement)
    assert str(error.value) == f"{message} (field f)"


@pytest.mark.parametrize(
    ("config", "expected"),
    [({"fields": "a,b"}, {"a": 0, "b": ""}), ({"fields": "a,b", "replacement": "77"}, {"a": 77, "b": "77"})],
)
def test_a_struct(config: dict[str, str], expected: dict[str, Any]) -> None:
    changed = apply(MaskFieldValue, config, sink(a_struct()))
    assert (raw(changed.value), changed.value_schema) == (expected, STRUCT)


def test_fields_that_are_not_there() -> None:
    assert apply(MaskFieldValue, {"fields": "a,zz,n"}, sink(a_map())).value == {**a_map(), "a": 0, "zz": None}
    assert apply(MaskFieldValue, {"fields": "zz"}, sink(a_struct())).value == a_struct()


def test_the_record_that_came_stays_as_it_was() -> None:
    record, map_record = sink(a_struct()), sink(a_map())
    apply(MaskFieldValue, {"fields": "a"}, record)
    apply(MaskFieldValue, {"fields": "a"}, map_record)
    assert (record.value, map_record.value) == (a_struct(), a_map())


def test_defaults() -> None:
    assert raw(apply(MaskFieldValue, {"fields": "d"}, sink(Struct(DEFAULTS))).value) == {"d": 0, "r": "rd"}
    config = {"fields": "d", **KEEP}
    assert raw(apply(MaskFieldValue, config, sink(Struct(DEFAULTS, {"r": "q"}))).value) == {"d": None, "r": "q"}
    with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
        apply(MaskFieldValue, config, sink(Struct(DEFAULTS)))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "Only Map objects supported in absence of schema for [mask fields], found: null"),
        (STRUCT, "Only Struct objects supported for [mask fields], found: null"),
    ],
)
def test_null_fails(schema: Schema | None, message: str) -> None:
    with pytest.raises(DataError) as error:
        apply(MaskFieldValue, {"fields": "a"}, sink(None, schema))
    assert str(error.value) == message


def test_the_key() -> None:
    assert apply(MaskFieldKey, {"fields": "a"}, sink("v", key={"a": 1})).key == {"a": 0}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"fields": ""}, "Configuration 'fields' must not be empty. Valid values include: any non-empty value"),
        ({"fields": "a,"}, "Configuration 'fields' values must not be empty."),
        (
            {"fields": "a", "replacement": ""},
            "Invalid value  for configuration replacement: String must be non-empty",
        ),
    ],
)
def test_wrong_config(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(MaskFieldValue, config)
    assert str(error.value) == message
