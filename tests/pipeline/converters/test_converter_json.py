"""JsonConverter: Apache's bytes, with an envelope and without."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.json import JsonConverter

NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
UNREADABLE = "Converting byte[] to Kafka Connect data failed due to serialization error: "


def converter(config: dict[str, str] | None = None) -> JsonConverter:
    made = JsonConverter()
    made.configure(config or {}, is_key=False)
    return made


def envelope(schema: str, payload: str) -> bytes:
    return f'{{"schema":{schema},"payload":{payload}}}'.encode()


ON = converter()
OFF = converter({"schemas.enable": "false"})
NUMERIC = converter({"schemas.enable": "false", "decimal.format": "numeric"})
NO_DEFAULTS = converter({"replace.null.with.default": "false"})

WITH_DEFAULT = s.struct(
    {"a": s.INT32, "b": Schema(SchemaType.STRING, optional=True, default="dv")},
    name="my.S",
    version=2,
    doc="d",
    parameters={"k": "v"},
)
POINT = s.struct({"a": s.INT32})


def test_it_has_apaches_name() -> None:
    assert JsonConverter.aliases == ("org.apache.kafka.connect.json.JsonConverter",)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            s.mapping(s.INT32, s.STRING),
            {1: "a"},
            (
                '{"schema":{"type":"map","keys":{"type":"int32","optional":false},"values":{"type":"string",'
                '"optional":false},"optional":false},"payload":[[1,"a"]]}'
            ),
        ),
        (
            WITH_DEFAULT,
            Struct(WITH_DEFAULT, {"a": 1}),
            (
                '{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"},{"type":"string",'
                '"optional":true,"default":"dv","field":"b"}],"optional":false,"name":"my.S","version":2,"doc":"d",'
                '"parameters":{"k":"v"}},"payload":{"a":1,"b":"dv"}}'
            ),
        ),
        (
            s.decimal(2),
            Decimal("123.45"),
            (
                '{"schema":{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
                '"parameters":{"scale":"2"}},"payload":"MDk="}'
            ),
        ),
        (
            s.DATE,
            dt.date(1970, 1, 4),
            (
                '{"schema":{"type":"int32","optional":false,"name":"org.apache.kafka.connect.data.Date","version":1},'
                '"payload":3}'
            ),
        ),
        (s.INT64.as_optional(), None, '{"schema":{"type":"int64","optional":true},"payload":null}'),
        (None, {"a": 1}, '{"schema":null,"payload":{"a":1}}'),
    ],
)
def test_the_contracts_examples_are_written(schema: Schema | None, value: Any, expected: str) -> None:
    written = ON.from_connect("t", schema, value)
    assert written is not None
    assert written.decode() == expected
    assert ON.from_connect_header("t", "k", schema, value) == written


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (s.BOOLEAN, True, "true"),
        (s.INT8, -128, "-128"),
        (s.INT64, 2**63 - 1, "9223372036854775807"),
        (s.FLOAT32, 1.1, "1.1"),
        (s.FLOAT32, 1e10, "1.0E10"),
        (s.FLOAT32, math.inf, '"Infinity"'),
        (s.FLOAT64, 1.5, "1.5"),
        (s.FLOAT64, 1e20, "1.0E20"),
        (s.FLOAT64, math.nan, '"NaN"'),
        (s.STRING, 'x"', '"x\\""'),
        (s.BYTES, b"\x01\x02", '"AQI="'),
        (s.BYTES, bytearray(b"\x01\x02"), '"AQI="'),
        (s.array(s.FLOAT64), [1e10, 0.5], "[1.0E10,0.5]"),
        (s.mapping(s.STRING, s.INT32), {"a": 1}, '{"a":1}'),
        (s.mapping(s.OPTIONAL_STRING, s.INT32), {None: 1}, '{"null":1}'),
        (s.TIME, dt.time(0, 0, 1), "1000"),
        (s.TIMESTAMP, dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "1577836800000"),
        (s.decimal(2), Decimal("123.40"), '"MDQ="'),
        (s.OPTIONAL_STRING, None, "null"),
        (Schema(SchemaType.INT32, default=3), None, "3"),
        (None, b"\x01\x02", '"AQI="'),
        (None, [1, None], "[1,null]"),
        (None, (1, "x"), '[1,"x"]'),
        (None, {1: "a"}, '[[1,"a"]]'),
        (None, {None: 1, "a": 2}, '[[null,1],["a",2]]'),
        (None, {"n": {1: b"\x01"}}, '{"n":[[1,"AQ=="]]}'),
        (None, "", '""'),
        (None, 0, "0"),
        (None, {}, "{}"),
        (None, [0.0001], "[1.0E-4]"),
    ],
)
def test_without_envelope_only_the_value_is_written(schema: Schema | None, value: Any, expected: str) -> None:
    assert OFF.from_connect("t", schema, value) == expected.encode()


@pytest.mark.parametrize(
    ("value", "expected"), [("123.40", b"123.40"), ("1.234", b"1.234"), ("1E+30", b"1E+30"), ("1E-9", b"1E-9")]
)
def test_numeric_decimals_keep_their_scale(value: str, expected: bytes) -> None:
    assert NUMERIC.from_connect("t", s.decimal(2), Decimal(value)) == expected


@pytest.mark.parametrize("made", [ON, OFF])
def test_null_without_schema_is_a_tombstone(made: JsonConverter) -> None:
    assert made.from_connect("t", None, None) is None


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (s.INT64, None, "Conversion error: null value for field that is required and has no default value"),
        (
            POINT,
            Struct(POINT),
            "Conversion error: null value for field that is required and has no default value (field a)",
        ),
        (s.INT32, "x", "Invalid type for INT32: class java.lang.String"),
        (s.INT32, 1 << 40, "Invalid type for INT32: class java.lang.Long"),
        (s.INT32, True, "Invalid type for INT32: class java.lang.Boolean"),
        (s.STRING, 1, "Invalid type for STRING: class java.lang.Long"),
        (s.BOOLEAN, 1, "Invalid type for BOOLEAN: class java.lang.Long"),
        (s.FLOAT64, 1, "Invalid type for FLOAT64: class java.lang.Long"),
        (s.FLOAT32, "x", "Invalid type for FLOAT32: class java.lang.String"),
        (s.BYTES, "x", "Invalid type for bytes type: class java.lang.String"),
        (s.array(s.INT32), "x", "Invalid type for ARRAY: class java.lang.String"),
        (s.mapping(s.STRING, s.INT32), [], "Invalid type for MAP: class java.util.ArrayList"),
        (s.mapping(s.STRING, s.INT32), {1: 2}, "Invalid type for STRING: class java.lang.Long"),
        (POINT, {"a": 1}, "Invalid type for STRUCT: class java.util.HashMap"),
        (POINT, Struct(WITH_DEFAULT, {"a": 1}), "Mismatching schema."),
        (None, Struct(POINT, {"a": 1}), "Mismatching schema."),
        (None, Decimal("1.5"), "Java class class java.math.BigDecimal does not have corresponding schema type."),
        (None, [dt.date(2020, 1, 1)], "Java class class java.util.Date does not have corresponding schema type."),
        (s.decimal(2), "x", "Invalid type for Decimal, expected BigDecimal but was class java.lang.String"),
        (s.DATE, "x", "Invalid type for Date, expected Date but was class java.lang.String"),
        (s.TIMESTAMP, 5, "Invalid type for Timestamp, expected Date but was class java.lang.Long"),
        (s.DATE, dt.datetime(2020, 1, 1), "Invalid type for Date, expected date but was datetime"),
        (
            s.decimal(2),
            Decimal("1.234"),
            "Decimal value has mismatching scale for given Decimal schema. Schema has scale 2, value has scale 3.",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused(schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError) as raised:
        ON.from_connect("t", schema, value)
    assert str(raised.value) == message


def test_values_nested_too_deep_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(DataError, match="serialization error"):
        OFF.from_connect("t", None, deep)


def test_defaults_can_be_left_out_when_writing() -> None:
    optional = Schema(SchemaType.INT32, optional=True, default=3)
    expected = envelope('{"type":"int32","optional":true,"default":3}', "null")
    assert NO_DEFAULTS.from_connect("t", optional, None) == expected
    holder = s.struct({"f": optional})
    written = NO_DEFAULTS.from_connect("t", holder, Struct(holder))
    assert written is not None
    assert written.endswith(b'"payload":{"f":null}}')
    with pytest.raises(DataError, match="Conversion error: null value"):
        NO_DEFAULTS.from_connect("t", Schema(SchemaType.INT32, default=3), None)


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [ON, OFF])
def test_a_tombstone_is_null(made: JsonConverter) -> None:
    assert made.to_connect("t", None) == (None, None)
    assert made.to_connect_header("t", "k", None) == (None, None)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"true", True),
        (b"12", 12),
        (b"99999999999999999999", 7766279631452241919),
        (b"1.0", 1.0),
        (b'"x"', "x"),
        (b'[1,{"a":null}]', [1, {"a": None}]),
        (b"null", None),
        (b"", None),
        (b"{} trailing", {}),
    ],
)
def test_without_envelope_the_json_says_what_it_is(data: bytes, value: Any) -> None:
    schema, read = OFF.to_connect("t", data)
    assert schema is None
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"1", b"{}", b'{"schema":null}', b'{"schema":null,"payload":1,"x":2}']
)
def test_an_envelope_has_a_schema_and_a_payload_and_nothing_else(data: bytes) -> None:
    with pytest.raises(DataError) as raised:
        ON.to_connect("t", data)
    assert str(raised.value) == NOT_AN_ENVELOPE


@pytest.mark.parametrize("data", [b"{", b"truex", b'"\xff"', b"[" * 3000])
def test_invalid_json_is_refused_with_its_cause(data: bytes) -> None:
    with pytest.raises(DataError) as raised:
        OFF.to_connect("t", data)
    assert str(raised.value) == UNREADABLE
    assert raised.value.__cause__ is not None


def test_an_envelope_without_schema_is_schemaless() -> None:
    assert ON.to_connect("t", envelope("null", '{"a":18446744073709551617}')) == (None, {"a": 1})
    assert ON.to_connect("t", envelope("null", "null")) == (None, None)


DATE = '{"type":"int32","name":"org.apache.kafka.connect.data.Date","version":1}'
TIME = '{"type":"int32","name":"org.apache.kafka.connect.data.Time","version":1}'
TIMESTAMP = '{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1}'
DECIMAL = '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"}}'
INTS = '{"type":"array","items":{"type":"int32"}}'
BY_NAME = '{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}'
BY_NUMBER = '{"type":"map","keys":{"type":"int32"},"values":{"type":"string"}}'
STRUCT = '{"type":"struct","fields":[{"type":"int32","field":"a"}]}'
DEFAULTED = '{"type":"struct","fields":[{"type":"int32","field":"a","default":5}]}'


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        ('{"type":"int8"}', "300", 44),
        ('{"type":"int16"}', "70000", 4464),
        ('{"type":"int32"}', "5000000000", 705032704),
        ('{"type":"int32"}', "1.9", 1),
        ('{"type":"int8"}', "-1.9", -1),
        ('{"type":"int64"}', "1e20", 7766279631452241920),
        ('{"type":"int64"}', "1e400", 0),
        ('{"type":"int64"}', "99999999999999999999", 7766279631452241919),
        ('{"type":"int32"}', '"7"', 0),
        ('{"type":"int32"}', "true", 0),
        ('{"type":"float"}', "1.1", 1.100000023841858),
        ('{"type":"float"}', "1e300", math.inf),
        ('{"type":"double"}', "12345678901234567890", 1.2345678901234567e19),
        ('{"type":"double"}', '"NaN"', 0.0),
        ('{"type":"double"}', "1", 1.0),
        ('{"type":"boolean"}', "1", False),
        ('{"type":"boolean"}', "true", True),
        ('{"type":"string","optional":true}', "1", None),
        ('{"type":"bytes"}', '"aGk="', b"hi"),
        ('{"type":"bytes"}', "1", None),
        (INTS, '[1,"x",2]', [1, 0, 2]),
        (INTS, "7", []),
        (INTS, '{"a":1,"b":2}', [1, 2]),
        (BY_NAME, '{"a":1}', {"a": 1}),
        (BY_NUMBER, '[[1,"a"],[2,"b"]]', {1: "a", 2: "b"}),
        (DATE, "3", dt.date(1970, 1, 4)),
        (TIME, "1000", dt.time(0, 0, 1)),
        (TIMESTAMP, "1577836800000", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (DECIMAL, '"MDk="', Decimal("123.45")),
        ('{"type":"int32","optional":true,"default":7}', "null", 7),
        ('{"type":"int32","optional":true}', "null", None),
    ],
)
def test_payloads_are_read_by_their_schema_and_leniently(schema: str, payload: str, value: Any) -> None:
    read = ON.to_connect("t", envelope(schema, payload))[1]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(("payload", "digits"), [("123.40", "123.40"), ("123", "123"), ("1E+3", "1E+3")])
def test_numeric_decimals_are_read_digit_by_digit(payload: str, digits: str) -> None:
    read = ON.to_connect("t", envelope(DECIMAL, payload))[1]
    assert read.as_tuple() == Decimal(digits).as_tuple()


def test_structs_take_their_fields_and_forget_others() -> None:
    schema, read = ON.to_connect("t", envelope(STRUCT, '{"a":1,"zz":2}'))
    assert schema == POINT
    assert read == Struct(POINT, {"a": 1})
    for payload in ("{}", '{"a":null}'):
        assert ON.to_connect("t", envelope(DEFAULTED, payload))[1]["a"] == 5


@pytest.mark.parametrize(
    ("schema", "payload", "message"),
    [
        ('{"type":"int32"}', "null", "Invalid null value for required INT32 field"),
        (INTS, "[null]", "Invalid null value for required INT32 field"),
        (STRUCT, "{}", "Invalid null value for required INT32 field (field a)"),
        (STRUCT, "[1]", "Structs should be encoded as JSON objects, but found ARRAY"),
        (STRUCT, '"s"', "Structs should be encoded as JSON objects, but found STRING"),
        (BY_NAME, "[]", "Maps with string fields should be encoded as JSON objects, but found ARRAY"),
        (BY_NUMBER, "{}", "Maps with non-string fields should be encoded as JSON array of tuples, but found OBJECT"),
        (BY_NUMBER, "[1]", "Found invalid map entry instead of array tuple: NUMBER"),
        (BY_NUMBER, "[[1]]", "Found invalid map entry, expected length 2 but found :1"),
        (DATE, '"x"', "Invalid type for Date, underlying representation should be integer but was STRING"),
        (DATE, "3.5", "Invalid type for Date, underlying representation should be integer but was NUMBER"),
        (DATE, "5000000000", "Invalid type for Date, underlying representation should be integer but was NUMBER"),
        (TIME, "true", "Invalid type for Time, underlying representation should be integer but was BOOLEAN"),
        (TIME, "-1", "Time values must use number of milliseconds greater than 0 and less than 86400000"),
        (TIMESTAMP, "1.5", "Invalid type for Timestamp, underlying representation should be integral but was NUMBER"),
        (
            DECIMAL,
            "true",
            "Invalid type for Decimal, underlying representation should be numeric or bytes but was BOOLEAN",
        ),
        (DECIMAL, '"a!"', "Invalid bytes for Decimal field"),
        (DECIMAL, '""', "Invalid bytes for Decimal field"),
        ('{"type":"bytes"}', '"aGk"', "Invalid bytes field"),
        ('{"type":"zz"}', "1", "Unknown schema type: zz"),
        ('"s"', "1", "Schema must contain 'type' field"),
        (
            '{"type":"struct","fields":[{"type":"string","field":"a"}]}',
            '{"a":1}',
            'Invalid value: null used for required field: "a", schema type: STRING',
        ),
    ],
)
def test_a_payload_that_its_schema_cannot_take_is_refused(schema: str, payload: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        ON.to_connect("t", envelope(schema, payload))
    assert str(raised.value) == message


def test_defaults_can_be_left_out_when_reading() -> None:
    optional = '{"type":"int32","optional":true,"default":5}'
    assert NO_DEFAULTS.to_connect("t", envelope(optional, "null"))[1] is None
    with pytest.raises(DataError, match="Invalid null value for required INT32 field"):
        NO_DEFAULTS.to_connect("t", envelope(DEFAULTED, '{"a":null}'))


# --- configuration ----------------------------------------------------------------------------------------------------


def test_a_fixed_schema_reads_bare_payloads() -> None:
    fixed = converter({"schema.content": '{"type":"int32","optional":true}'})
    optional = s.INT32.as_optional()
    assert fixed.to_connect("t", b"5") == (optional, 5)
    assert fixed.to_connect("t", b"null") == (optional, None)
    assert fixed.to_connect("t", b"") == (optional, 0)
    assert fixed.to_connect("t", None) == (None, None)
    assert fixed.from_connect("t", s.INT32, 1) == b'{"schema":{"type":"int32","optional":false},"payload":1}'


def test_a_fixed_schema_reads_decimals_digit_by_digit() -> None:
    fixed = converter({"schema.content": DECIMAL})
    assert fixed.to_connect("t", b"123.40")[1].as_tuple() == Decimal("123.40").as_tuple()


@pytest.mark.parametrize("content", ["", "   ", "null"])
def test_a_blank_fixed_schema_is_none(content: str) -> None:
    with pytest.raises(DataError, match=r"JsonConverter with schemas\.enable requires"):
        converter({"schema.content": content}).to_connect("t", b"5")


def test_a_fixed_schema_means_nothing_without_schemas() -> None:
    made = converter({"schemas.enable": "false", "schema.content": '{"type":"string"}'})
    assert made.to_connect("t", b"5") == (None, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Failed to parse schema in converter config due to serialization error: "),
        ("3", "Schema must contain 'type' field"),
    ],
)
def test_a_broken_fixed_schema_is_found_at_once(content: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        converter({"schema.content": content})
    assert str(raised.value) == message


def test_a_wrong_decimal_format_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"String must be one of \(case insensitive\): NUMERIC, BASE64"):
        converter({"decimal.format": "zz"})


def test_a_small_schema_cache_only_costs_time() -> None:
    for size in ("0", "1"):
        made = converter({"schemas.cache.size": size})
        for schema in (s.INT32, s.INT64, s.INT32):
            data = made.from_connect("t", schema, 5)
            assert made.to_connect("t", data) == (schema, 5)


# --- round trips ------------------------------------------------------------------------------------------------------

MIXED = s.struct(
    {
        "i": s.INT64,
        "f": s.FLOAT64.as_optional(),
        "g": s.FLOAT32,
        "t": s.STRING,
        "b": s.OPTIONAL_BYTES,
        "l": s.array(s.INT32.as_optional()),
        "m": s.mapping(s.INT32, s.STRING),
        "d": s.decimal(2),
        "at": s.TIMESTAMP,
    },
    name="mixed",
)

MIXED_VALUES = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
        "g": st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
        "t": st.text(),
        "b": st.none() | st.binary(),
        "l": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=3),
        "m": st.dictionaries(st.integers(-9, 9), st.text(max_size=3), max_size=3),
        "d": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**12), max_value=10**12),
        "at": st.datetimes(timezones=st.just(dt.UTC)).map(lambda at: at.replace(microsecond=0)),
    }
)


@settings(deadline=None, max_examples=3 * settings().max_examples // 2)
@given(MIXED_VALUES, st.sampled_from(["BASE64", "NUMERIC"]))
def test_a_value_survives_with_its_schema(values: dict[str, Any], decimals: str) -> None:
    made = converter({"decimal.format": decimals})
    given_value = Struct(MIXED, {name: value for name, value in values.items() if value is not None})
    assert made.to_connect("t", made.from_connect("t", MIXED, given_value)) == (MIXED, given_value)
