"""DropHeaders, InsertHeader and HeaderFrom."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink

from headgate.api import ConfigError, DataError, Header, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.header_from import HeaderFromKey, HeaderFromValue
from headgate.pipeline.transforms.insert_header import InsertHeader

HEADERS = (Header("a", 1), Header("b", 2), Header("a", 3))


class TestDropHeaders:
    def test_all_of_a_name_go(self) -> None:
        assert apply(DropHeaders, {"headers": "a,zz"}, sink(headers=HEADERS)).headers == (Header("b", 2),)

    def test_nothing_to_drop(self) -> None:
        record = sink(headers=HEADERS)
        assert apply(DropHeaders, {"headers": "zz"}, record) is record

    @pytest.mark.parametrize(
        ("headers", "message"),
        [
            ("", "Configuration 'headers' must not be empty. Valid values include: any non-empty value"),
            ("a,,b", "Configuration 'headers' values must not be empty."),
        ],
    )
    def test_wrong_config(self, headers: str, message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(DropHeaders, {"headers": headers})
        assert str(error.value) == message

    def test_missing_config(self) -> None:
        (found,) = DropHeaders.config.validate({})
        assert found.errors == [
            'Missing required configuration "headers" which has no default value.',
            "Configuration 'headers' values must not be null.",
        ]


class TestInsertHeader:
    @pytest.mark.parametrize(
        ("literal", "expected"),
        [
            ("12", Header("h", 12, s.INT8)),
            ("null", Header("h", None)),
            ("[1,2]", Header("h", [1, 2], s.array(s.INT8))),
            ('"q"', Header("h", '"q"', s.STRING)),
            ("2020-01-01", Header("h", dt.date(2020, 1, 1), s.DATE)),
            ("x", Header("h", "x", s.STRING)),
            ("", Header("h", "", s.STRING)),
        ],
    )
    def test_the_value_is_what_the_text_looks_like(self, literal: str, expected: Header) -> None:
        record = sink(a_map(), headers=(Header("h", 0),))
        assert apply(InsertHeader, {"header": "h", "value.literal": literal}, record).headers == (
            Header("h", 0),
            expected,
        )

    @pytest.mark.parametrize("missing", ["header", "value.literal"])
    def test_missing_config(self, missing: str) -> None:
        config = {"header": "h", "value.literal": "v"}
        del config[missing]
        with pytest.raises(ConfigError, match=f'^Missing required configuration "{missing}"'):
            configured(InsertHeader, config)
        (found,) = [each for each in InsertHeader.config.validate(config) if each.name == missing]
        assert found.errors[1] == f"Invalid value null for configuration {missing}: entry must be non null"


def header_from(fields: str, headers: str, operation: str, **more: str) -> dict[str, str]:
    return {"fields": fields, "headers": headers, "operation": operation, **more}


class TestHeaderFrom:
    def test_move_from_a_struct(self) -> None:
        changed = apply(HeaderFromValue, header_from("a", "h", "move"), sink(a_struct()))
        expected = s.struct({"b": s.OPTIONAL_STRING}, name="nm", version=3, doc="dd", parameters={"k": "v"})
        assert changed.value == Struct(expected, {"b": "x"})
        assert changed.value_schema == expected
        assert changed.headers == (Header("h", 300, s.INT32),)

    def test_copy_from_a_struct(self) -> None:
        changed = apply(HeaderFromValue, header_from("a,b", "h,h", "copy"), sink(a_struct(), headers=HEADERS))
        assert changed.value == a_struct()
        assert changed.headers == (*HEADERS, Header("h", 300, s.INT32), Header("h", "x", s.OPTIONAL_STRING))

    def test_move_makes_the_schema_required(self) -> None:
        schema = s.struct({"a": s.INT64}, name="on", optional=True)
        record = sink(Struct(schema, {"a": 1}))
        assert apply(HeaderFromValue, header_from("a", "h", "move"), record).value_schema == s.struct({}, name="on")
        assert apply(HeaderFromValue, header_from("a", "h", "copy"), record).value_schema == schema

    @pytest.mark.parametrize(
        ("config", "value", "headers"),
        [
            (header_from("a,zz", "h,i", "move"), {"b": "x", "n": None, "o": {"p": 1}}, (("h", 5), ("i", None))),
            (header_from("a,a", "h,i", "move"), {"b": "x", "n": None, "o": {"p": 1}}, (("h", 5), ("i", 5))),
            (header_from("o", "h", "copy"), a_map(), (("h", {"p": 1}),)),
        ],
    )
    def test_from_a_map(self, config: dict[str, str], value: Any, headers: Any) -> None:
        changed = apply(HeaderFromValue, config, sink(a_map()))
        assert changed.value == value
        assert changed.headers == tuple(Header(*each) for each in headers)

    def test_defaults(self) -> None:
        changed = apply(HeaderFromValue, header_from("d", "h", "move"), sink(Struct(DEFAULTS)))
        assert raw(changed.value) == {"r": "rd"}
        assert changed.headers[0].value == 9

    def test_without_defaults(self) -> None:
        config = header_from("d", "h", "move", **KEEP)
        changed = apply(HeaderFromValue, config, sink(Struct(DEFAULTS, {"r": "q"})))
        assert raw(changed.value) == {"r": "q"}
        assert changed.headers[0].value is None
        with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
            apply(HeaderFromValue, config, sink(Struct(DEFAULTS)))

    @pytest.mark.parametrize("operation", ["move", "copy"])
    def test_a_field_that_a_struct_lacks(self, operation: str) -> None:
        with pytest.raises(DataError, match=r"^Field does not exist: zz$"):
            apply(HeaderFromValue, header_from("a,zz", "h,i", operation), sink(a_struct()))

    @pytest.mark.parametrize(
        ("value", "schema", "message"),
        [
            (None, None, "Only Map objects supported in absence of schema for [header copy], found: null"),
            ("s", None, "Only Map objects supported in absence of schema for [header copy], found: java.lang.String"),
            (None, STRUCT, "Only Struct objects supported for [header copy], found: null"),
        ],
    )
    def test_wrong_values(self, value: Any, schema: Schema | None, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(HeaderFromValue, header_from("a", "h", "copy"), sink(value, schema))
        assert str(error.value) == message

    def test_from_the_key(self) -> None:
        changed = apply(HeaderFromKey, header_from("a", "h", "move"), sink("v", key={"a": 1, "b": 2}))
        assert (changed.key, changed.value, changed.headers) == ({"b": 2}, "v", (Header("h", 1),))

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            (
                header_from("a,b", "h", "copy"),
                "'fields' config must have the same number of elements as 'headers' config.",
            ),
            (
                header_from("a", "h", "x"),
                "Invalid value x for configuration operation: String must be one of: move, copy",
            ),
            (header_from("", "h", "copy"), "Invalid value [] for configuration fields: Empty list"),
            ({"fields": "a", "headers": "h"}, 'Missing required configuration "operation" which has no default value.'),
        ],
    )
    def test_wrong_config(self, config: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(HeaderFromValue, config)
        assert str(error.value) == message
