"""Cast, by the results of Apache's classes."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink, typed

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.cast import CastKey, CastValue

SUPPORTED = "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"
AT = dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)


def whole(target: str, value: Any, schema: Schema | None = None) -> Any:
    return apply(CastValue, {"spec": target}, sink(value, schema)).value


class TestSchemaless:
    def test_fields_are_cast_and_missing_ones_added(self) -> None:
        changed = apply(CastValue, {"spec": "a:string,zz:int8"}, sink(a_map()))
        assert changed.value == {**a_map(), "a": "5", "zz": None}
        assert changed.value_schema is None

    def test_the_record_that_came_stays_as_it_was(self) -> None:
        record = sink(a_map())
        apply(CastValue, {"spec": "a:string"}, record)
        assert record.value == a_map()

    @pytest.mark.parametrize("spec", ["int8", "a:int8"])
    @pytest.mark.parametrize("schema", [None, STRUCT, s.INT32, Schema(SchemaType.INT32, optional=True, default=300)])
    def test_null_passes(self, spec: str, schema: Schema | None) -> None:
        record = sink(None, schema)
        assert apply(CastValue, {"spec": spec}, record) is record

    @pytest.mark.parametrize(
        ("target", "value", "expected"),
        [
            ("int32", 3.99, 3),
            ("int8", -3.99, -3),
            ("int8", 1e20, -1),
            ("int8", -1e20, 0),
            ("int8", 300.7, 44),
            ("int8", 3e9, -1),
            ("int8", math.nan, 0),
            ("int16", 40000.0, -25536),
            ("int32", 1e20, 2147483647),
            ("int32", -math.inf, -2147483648),
            ("int64", 1e20, 9223372036854775807),
            ("int64", math.inf, 9223372036854775807),
            ("int64", 3e9, 3000000000),
            ("int8", True, 1),
            ("int64", False, 0),
            ("int8", "+5", 5),
            ("int8", "-128", -128),
            ("int8", "\u0663", 3),
            ("boolean", "TRUE", True),
            ("boolean", " true", False),
            ("boolean", "yes", False),
            ("boolean", "1", False),
            ("boolean", 0, False),
            ("boolean", -7, True),
            ("boolean", 0.5, False),
            ("boolean", math.nan, False),
            ("boolean", True, True),
            ("float32", 1e300, math.inf),
            ("float32", 0.1, 0.10000000149011612),
            ("float32", 9007199254740993, 9007199254740992.0),
            ("float32", (1 << 60) + (1 << 36) + 1, float((1 << 60) + (1 << 37))),
            ("float32", True, 1.0),
            ("float64", 5, 5.0),
            ("float64", False, 0.0),
            ("float64", " 1.5 ", 1.5),
            ("float64", "1d", 1.0),
            ("float64", "0x1p3", 8.0),
            ("float64", "-Infinity", -math.inf),
            ("float64", "-0x1p9999", -math.inf),
            ("float64", "+1.", 1.0),
            ("float64", ".5f", 0.5),
            ("float64", "1e400", math.inf),
            ("float32", "3.4028236e38", math.inf),
            ("float32", "1e-50", 0.0),
            ("float32", "0x1p3", 8.0),
            ("string", 1e20, "1.0E20"),
            ("string", 5, "5"),
            ("string", True, "true"),
            ("string", "s", "s"),
            ("string", b"\x01\x02\xff", "AQL/"),
            ("string", bytearray(b"\x01\x02\xff"), "AQL/"),
        ],
    )
    def test_a_whole_value(self, target: str, value: Any, expected: Any) -> None:
        assert typed(whole(target, value)) == typed(expected)

    def test_not_a_number_is_read(self) -> None:
        assert math.isnan(whole("float64", "NaN"))
        assert math.isnan(whole("float32", "NaN"))

    @pytest.mark.parametrize(
        ("target", "text"),
        [
            *(("int8", text) for text in (" 5", "5 ", "0x10", "1e3", "128", "-129", "", "5_0", "+", "1L", "3.9")),
            *(("float64", text) for text in ("inf", "nan", "1_0", "1L", "", "1e", "\u0663", "x", "0x1")),
            *(("float32", text) for text in ("inf", "1_0", "")),
        ],
    )
    def test_text_that_is_no_such_number(self, target: str, text: str) -> None:
        with pytest.raises(DataError) as error:
            whole(target, text)
        assert str(error.value) == f"Value ({text}) was out of range for requested data type"

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ([], f"Cast transformation does not support casting from ARRAY; supported types are {SUPPORTED}"),
            ({}, f"Cast transformation does not support casting from MAP; supported types are {SUPPORTED}"),
            (a_struct(), f"Cast transformation does not support casting from STRUCT; supported types are {SUPPORTED}"),
            (
                AT,
                (
                    "Cast transformation was passed a value of type class java.util.Date which is not supported by "
                    "Connect's data API"
                ),
            ),
            (
                Decimal("1.5"),
                (
                    "Cast transformation was passed a value of type class java.math.BigDecimal which is not supported "
                    "by Connect's data API"
                ),
            ),
        ],
    )
    def test_values_that_cannot_be_cast(self, value: Any, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(CastValue, {"spec": "f:int8"}, sink({"f": value}))
        assert str(error.value) == f"{message} (field f)"

    def test_bytes_become_text_only(self) -> None:
        with pytest.raises(DataError, match=r"^Unexpected type in Cast transformation: class \[B$"):
            whole("int8", b"\x01")

    def test_a_value_that_is_no_map(self) -> None:
        with pytest.raises(DataError) as error:
            apply(CastValue, {"spec": "a:int8"}, sink("s"))
        expected = "Only Map objects supported in absence of schema for [cast types], found: java.lang.String"
        assert str(error.value) == expected

    @given(st.integers(-(2**63), 2**63 - 1))
    @settings(max_examples=3 * settings().max_examples // 5)
    def test_integers_wrap_as_in_java(self, value: int) -> None:
        for target, code in (("int8", "b"), ("int16", "h"), ("int32", "i"), ("int64", "q")):
            low = struct.pack("<q", value)[: struct.calcsize(code)]
            assert whole(target, value) == struct.unpack(f"<{code}", low)[0]

    @given(st.floats(allow_nan=False))
    @settings(max_examples=3 * settings().max_examples // 5)
    def test_text_of_a_number_is_that_number(self, value: float) -> None:
        assert whole("float64", whole("string", value)) == value


class TestWithSchema:
    def test_a_field_is_cast_and_its_schema_too(self) -> None:
        changed = apply(CastValue, {"spec": "a:int8"}, sink(a_struct()))
        expected = s.struct(
            {"a": s.INT8, "b": s.OPTIONAL_STRING}, name="nm", version=3, doc="dd", parameters={"k": "v"}
        )
        assert changed.value_schema == expected
        assert changed.value == Struct(expected, {"a": 44, "b": "x"})

    def test_a_field_that_is_not_there_is_not_missed(self) -> None:
        assert apply(CastValue, {"spec": "zz:int8"}, sink(a_struct())).value == a_struct()

    def test_text_that_is_no_number(self) -> None:
        with pytest.raises(DataError, match=r"^Value \(x\) was out of range for requested data type \(field b\)$"):
            apply(CastValue, {"spec": "b:int32"}, sink(a_struct()))

    def test_defaults_are_cast(self) -> None:
        changed = apply(CastValue, {"spec": "d:string,r:string"}, sink(Struct(DEFAULTS)))
        assert raw(changed.value) == {"d": "9", "r": "rd"}
        assert changed.value_schema.field("d").schema == Schema(SchemaType.STRING, optional=True, default="9")

    def test_null_may_stay_null(self) -> None:
        record = sink(Struct(DEFAULTS, {"r": "q"}))
        assert raw(apply(CastValue, {"spec": "d:string", **KEEP}, record).value) == {"d": None, "r": "q"}

    def test_but_not_in_a_required_field(self) -> None:
        with pytest.raises(DataError) as error:
            apply(CastValue, {"spec": "d:string", **KEEP}, sink(Struct(DEFAULTS)))
        assert str(error.value) == 'Invalid value: null used for required field: "r", schema type: STRING'

    def test_a_field_keeps_optional_and_default_only(self) -> None:
        named = Schema(SchemaType.INT32, True, 300, "fn", 1, "x", {"p": "q"})
        schema = s.struct({"a": named}, optional=True)
        changed = apply(CastValue, {"spec": "a:int8"}, sink(Struct(schema)))
        assert changed.value_schema == s.struct({"a": Schema(SchemaType.INT8, True, 44)}, optional=True)

    def test_a_whole_value_keeps_name_version_doc_and_default(self) -> None:
        schema = Schema(SchemaType.INT32, True, 300, "n", 2, "d", {"p": "q"})
        changed = apply(CastValue, {"spec": "int8"}, sink(5, schema))
        assert changed.value == 5
        assert changed.value_schema == Schema(SchemaType.INT8, True, 44, "n", 2, "d", {"p": "q"})

    @pytest.mark.parametrize(
        ("schema", "value", "number", "text"),
        [
            (s.TIMESTAMP, AT, 1700000000123, "2023-11-14T22:13:20.123Z"),
            (s.TIMESTAMP, dt.datetime(1970, 1, 2, tzinfo=dt.UTC), 86400000, "1970-01-02"),
            (s.TIMESTAMP, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), 0, "00:00:00.000Z"),
            (s.DATE, dt.date(2023, 11, 14), 19675, "2023-11-14"),
            (s.DATE, dt.date(1969, 12, 31), -1, "00:00:00.000Z"),
            (s.TIME, dt.time(1, 0, 0, 1000), 3600001, "01:00:00.001Z"),
        ],
    )
    def test_dates_and_times(self, schema: Schema, value: Any, number: int, text: str) -> None:
        assert whole("int64", value, schema) == number
        assert whole("float64", value, schema) == float(number)
        assert whole("boolean", value, schema) == (number != 0)
        assert whole("string", value, schema) == text

    def test_a_timestamp_as_text_is_still_named_timestamp(self) -> None:
        made = apply(CastValue, {"spec": "string"}, sink(AT, s.TIMESTAMP)).value_schema
        assert (made.type, made.name) == (SchemaType.STRING, s.TIMESTAMP_NAME)

    @pytest.mark.parametrize(
        ("target", "expected"),
        [
            ("int8", 0),
            ("int64", 30000000000),
            ("float64", 30000000000.75),
            ("boolean", True),
            ("string", "30000000000.75"),
        ],
    )
    def test_decimals(self, target: str, expected: Any) -> None:
        assert typed(whole(target, Decimal("30000000000.75"), s.decimal(2))) == typed(expected)

    def test_floats_of_four_bytes(self) -> None:
        assert whole("string", 1.1, s.FLOAT32) == "1.1"
        assert whole("float64", 1.1, s.FLOAT32) == 1.100000023841858

    def test_what_holds_others_cannot_be_cast(self) -> None:
        schema = s.struct({"a": s.array(s.INT8)})
        message = f"Cast transformation does not support casting from ARRAY; supported types are {SUPPORTED}"
        with pytest.raises(DataError) as error:
            apply(CastValue, {"spec": "a:int8"}, sink(Struct(schema, {"a": []})))
        assert str(error.value) == f"{message} (field a)"
        with pytest.raises(DataError, match=r"casting from STRUCT"):
            whole("int8", a_struct(), STRUCT)

    def test_nor_a_default_that_is_a_struct(self) -> None:
        plain = s.struct({"a": s.INT32})
        schema = s.struct({"a": s.INT32}, default=Struct(plain, {"a": 300}))
        with pytest.raises(DataError, match=r"casting from STRUCT"):
            apply(CastValue, {"spec": "a:int8"}, sink(Struct(schema, {"a": 1})))

    def test_a_value_that_is_no_struct(self) -> None:
        with pytest.raises(DataError, match=r"^Cannot list fields on non-struct type$"):
            apply(CastValue, {"spec": "a:int8"}, sink("s", s.STRING))

    def test_the_key(self) -> None:
        changed = apply(CastKey, {"spec": "string"}, sink("v", key=5, key_schema=s.INT32))
        assert (changed.key, changed.key_schema, changed.value) == ("5", s.STRING, "v")


class TestConfig:
    @pytest.mark.parametrize("spec", ["int8", " INT8 ", "a: int8", ":int8", "a:int8,a:int16"])
    def test_right(self, spec: str) -> None:
        configured(CastValue, {"spec": spec})

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("", "Must specify at least one field to cast."),
            ("zz", "Invalid type found in casting spec: zz"),
            ("a:zz", "Invalid type found in casting spec: zz"),
            ("a:", "Invalid type found in casting spec: a"),
            ("a:int8,,b:string", "Invalid type found in casting spec: "),
            ("a:b:c", "Invalid value [a:b:c] for configuration spec: Invalid cast: a:b:c"),
            (
                "bytes",
                (
                    "Cast transformation does not support casting to BYTES; supported types are "
                    "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"
                ),
            ),
            *(
                (
                    spec,
                    (
                        "Cast transformations that specify a type to cast the entire value to may only specify a "
                        "single cast in their spec"
                    ),
                )
                for spec in ("int8,a:int8", "a:int8,int8", "int8,int8")
            ),
        ],
    )
    def test_wrong(self, spec: str, message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(CastValue, {"spec": spec})
        assert str(error.value) == message

    def test_missing(self) -> None:
        with pytest.raises(ConfigError, match=r'^Missing required configuration "spec" which has no default value.$'):
            configured(CastValue, {})
        (found,) = [each for each in CastValue.config.validate({}) if each.name == "spec"]
        assert found.errors[1] == "Must specify at least one field to cast."
