"""TimestampConverter, by the results of Apache's class."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from transform_support import KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue

ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
AT = dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC)
SCHEMAS = {"string": s.STRING, "unix": s.INT64, "Date": s.DATE, "Time": s.TIME, "Timestamp": s.TIMESTAMP}


def converted(target: str, record: Any, **more: str) -> Any:
    config = {"target.type": target, **{key.replace("_", "."): value for key, value in more.items()}}
    return apply(TimestampConverterValue, config, record)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("string", ("2023-11-14T22:13:20.123Z", "1969-12-31T23:59:59.999Z")),
        ("unix", (1700000000123, -1)),
        ("Date", (dt.date(2023, 11, 14), dt.date(1969, 12, 31))),
        ("Time", (dt.time(22, 13, 20, 123000), dt.time(23, 59, 59, 999000))),
        ("Timestamp", (AT, BEFORE)),
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_from_every_form(target: str, expected: tuple[Any, Any], optional: bool) -> None:
    for schema, values in (
        (s.INT64, (1700000000123, -1)),
        (s.TIMESTAMP, (AT, BEFORE)),
        (s.STRING, ("2023-11-14T22:13:20.123Z", "1969-12-31T23:59:59.999Z")),
    ):
        for value, result in zip(values, expected, strict=True):
            with_schema = converted(target, sink(value, schema.as_optional() if optional else schema), format=ISO)
            made = SCHEMAS[target]
            assert with_schema.value == result
            assert with_schema.value_schema == (made.as_optional() if optional else made)
            schemaless = converted(target, sink(value), format=ISO)
            assert (schemaless.value, schemaless.value_schema) == (result, None)


@pytest.mark.parametrize(
    ("schema", "value", "ms"), [(s.DATE, dt.date(1970, 1, 2), 86400000), (s.TIME, dt.time(0, 0, 1), 1000)]
)
def test_from_dates_and_times(schema: Schema, value: Any, ms: int) -> None:
    assert converted("unix", sink(value, schema)).value == ms
    assert converted("unix", sink(value)).value == ms


def test_the_contracts_examples() -> None:
    record = sink({"a": 1700000000123})
    changed = converted("string", record, field="a", format="yyyy-MM-dd HH:mm:ss.SSS")
    assert changed.value == {"a": "2023-11-14 22:13:20.123"}
    assert record.value == {"a": 1700000000123}
    assert converted("unix", sink("2020-01-02"), format="yyyy-MM-dd", unix_precision="seconds").value == 1577923200


@pytest.mark.parametrize(
    ("precision", "number", "ms"),
    [
        ("seconds", -1234567, -1234567000),
        ("milliseconds", -1234567, -1234567),
        ("microseconds", -1234567, -1234),
        ("nanoseconds", -1234567, -1),
        ("microseconds", 1700000000123456, 1700000000123),
        ("nanoseconds", 1700000000123456789, 1700000000123),
    ],
)
def test_units_that_are_read(precision: str, number: int, ms: int) -> None:
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    assert converted("Timestamp", sink(number), unix_precision=precision).value == at


@pytest.mark.parametrize(
    ("precision", "number"),
    [
        ("seconds", -1234),
        ("milliseconds", -1234567),
        ("microseconds", -1234567000),
        ("nanoseconds", -1234567000000),
    ],
)
def test_units_that_are_written(precision: str, number: int) -> None:
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) - dt.timedelta(milliseconds=1234567)
    assert converted("unix", sink(at, s.TIMESTAMP), unix_precision=precision).value == number


def test_a_unit_too_small_for_the_number() -> None:
    late = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
    assert converted("unix", sink(late), unix_precision="nanoseconds").value == 9223372036854775807


def test_a_field_of_a_struct() -> None:
    schema = s.struct({"t": s.INT64, "x": s.STRING}, name="n", optional=True)
    changed = converted("Timestamp", sink(Struct(schema, {"t": 0, "x": "y"})), field="t")
    expected = s.struct({"t": s.TIMESTAMP, "x": s.STRING}, name="n", optional=True)
    assert changed.value_schema == expected
    assert changed.value == Struct(expected, {"t": dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "x": "y"})


def test_the_default_of_the_struct_is_converted() -> None:
    plain = s.struct({"t": s.INT64})
    schema = s.struct({"t": s.INT64}, default=Struct(plain, {"t": 5}))
    made = converted("string", sink(Struct(schema, {"t": 1})), field="t", format="SSS").value_schema
    assert made.default["t"] == "005"


def test_defaults_of_the_field() -> None:
    schema = s.struct({"t": Schema(SchemaType.INT64, optional=True, default=5)})
    changed = converted("Timestamp", sink(Struct(schema)), field="t")
    assert changed.value_schema == s.struct({"t": s.TIMESTAMP.as_optional()})
    assert raw(changed.value)["t"].microsecond == 5000
    config = {"target.type": "Timestamp", "field": "t", **KEEP}
    assert raw(apply(TimestampConverterValue, config, sink(Struct(schema))).value) == {"t": None}


@pytest.mark.parametrize(
    ("value", "schema", "config", "result", "made"),
    [
        (None, None, {}, None, None),
        (None, None, {"field": "a"}, None, None),
        (None, s.INT64.as_optional(), {}, None, s.DATE.as_optional()),
        (a_map(), None, {"field": "zz"}, {**a_map(), "zz": None}, None),
        (a_map(), None, {"field": "n"}, a_map(), None),
        (a_struct(), STRUCT, {"field": "zz"}, a_struct(), STRUCT),
    ],
)
def test_null_and_missing_fields(value: Any, schema: Any, config: dict[str, str], result: Any, made: Any) -> None:
    changed = converted("Date", sink(value, schema), **config)
    assert (changed.value, changed.value_schema) == (result, made)


def test_a_null_struct_gets_the_new_schema() -> None:
    changed = converted("Date", sink(None, STRUCT), field="a")
    assert (changed.value, changed.value_schema.field("a").schema) == (None, s.DATE)


@pytest.mark.parametrize(
    ("value", "schema", "config", "message"),
    [
        (
            a_struct(),
            STRUCT,
            {"field": "a"},
            "Schema Schema{INT32} does not correspond to a known timestamp type format (field a)",
        ),
        (None, s.INT32, {}, "Schema Schema{INT32} does not correspond to a known timestamp type format"),
        (1.5, None, {}, "TimestampConverter does not support class java.lang.Double objects as timestamps"),
        (True, None, {}, "TimestampConverter does not support class java.lang.Boolean objects as timestamps"),
        (a_map(), None, {}, "TimestampConverter does not support class java.util.HashMap objects as timestamps"),
        ("nope", None, {}, "Could not parse timestamp: value (nope) does not match pattern (yyyy-MM-dd)"),
        ("x", s.INT64, {}, "Expected Unix timestamp to be a Long, but found class java.lang.String"),
        (5, s.STRING, {}, "Expected string timestamp to be a String, but found class java.lang.Long"),
        (5, s.TIMESTAMP, {}, "Expected Timestamp to be a java.util.Date, but found class java.lang.Long"),
        (
            "s",
            None,
            {"field": "a"},
            (
                "Only Map objects supported in absence of schema for [converting timestamp formats], found: "
                "java.lang.String"
            ),
        ),
        (
            "s",
            s.STRING,
            {"field": "a"},
            "Only Struct objects supported for [converting timestamp formats], found: java.lang.String",
        ),
        (
            Struct(s.struct({"a": s.STRING})),
            None,
            {"field": "a"},
            'Invalid value: null used for required field: "a", schema type: INT32',
        ),
        (1700000000123456789, None, {}, "Date is out of range: day 19675925927"),
    ],
)
def test_wrong_values(value: Any, schema: Schema | None, config: dict[str, str], message: str) -> None:
    with pytest.raises(DataError) as error:
        converted("Date", sink(value, schema), format="yyyy-MM-dd", **config)
    assert str(error.value) == message


def test_text_without_a_format() -> None:
    with pytest.raises(
        DataError, match=r"^TimestampConverter requires format option to be specified when using string"
    ):
        converted("unix", sink("2020-01-01"))


def test_the_key() -> None:
    config = {"target.type": "unix"}
    assert apply(TimestampConverterKey, config, sink("v", key=AT)).key == 1700000000123


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, 'Missing required configuration "target.type" which has no default value.'),
        (
            {"target.type": "date"},
            (
                "Invalid value date for configuration target.type: String must be one of: "
                "string, unix, Date, Time, Timestamp"
            ),
        ),
        (
            {"target.type": "string"},
            "TimestampConverter requires format option to be specified when using string timestamps",
        ),
        (
            {"target.type": "string", "format": "  "},
            "TimestampConverter requires format option to be specified when using string timestamps",
        ),
        (
            {"target.type": "string", "format": "bogus"},
            (
                "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: bogus "
                "(Illegal pattern character 'b')"
            ),
        ),
        (
            {"target.type": "unix", "unix.precision": "x"},
            (
                "Invalid value x for configuration unix.precision: String must be one of: "
                "nanoseconds, microseconds, milliseconds, seconds"
            ),
        ),
    ],
)
def test_wrong_config(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(TimestampConverterValue, config)
    assert str(error.value) == message
