"""Flatten and HoistField: out of a nest and into one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transform_support import STRUCT, a_map, a_struct, apply, configured, raw, sink

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.flatten import FlattenKey, FlattenValue
from headgate.pipeline.transforms.hoist_field import HoistFieldKey, HoistFieldValue

INT32_4 = Schema(SchemaType.INT32, default=4)
INNER = s.struct({"p": s.INT32, "q": INT32_4}, optional=True)
STAMP = Schema(SchemaType.INT64, name=s.TIMESTAMP_NAME, version=1, doc="dd")
OUTER = s.struct({"o": INNER, "l": s.array(s.STRING, optional=True), "ts": STAMP}, name="x")
FLAT = s.struct(
    {
        "o.p": s.INT32.as_optional(),
        "o.q": Schema(SchemaType.INT32, optional=True, default=4),
        "l": s.array(s.STRING, optional=True),
        "ts": STAMP,
    },
    name="x",
)
AT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


class TestMaps:
    @pytest.mark.parametrize(
        ("config", "value", "expected"),
        [
            ({}, a_map(), {"a": 5, "b": "x", "n": None, "o.p": 1}),
            ({"delimiter": ""}, a_map(), {"a": 5, "b": "x", "n": None, "op": 1}),
            ({"delimiter": "_"}, {"a": {"b": {"c": 1, "d": None}, "e": 2}}, {"a_b_c": 1, "a_b_d": None, "a_e": 2}),
            ({}, {"l": [1, {"a": 1}], "e": {}, "y": b"1"}, {"l": [1, {"a": 1}], "y": b"1"}),
            ({}, {}, {}),
        ],
    )
    def test_nested_names_are_joined(self, config: dict[str, str], value: Any, expected: Any) -> None:
        assert apply(FlattenValue, config, sink(value)).value == expected

    @pytest.mark.parametrize("schema", [None, STRUCT])
    def test_null_passes(self, schema: Schema | None) -> None:
        record = sink(None, schema)
        assert apply(FlattenValue, {}, record) is record

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("s", "Only Map objects supported in absence of schema for [flattening], found: java.lang.String"),
            (
                {"a": AT},
                (
                    "Flatten transformation was passed a value of type class java.util.Date which is not supported by "
                    "Connect's data API"
                ),
            ),
            (
                {"a": Decimal(1)},
                (
                    "Flatten transformation was passed a value of type class java.math.BigDecimal which is not "
                    "supported by Connect's data API"
                ),
            ),
            (
                {"a": {"s": a_struct()}},
                (
                    "Flatten transformation does not support class org.apache.kafka.connect.data.Struct for record "
                    "without schemas (for field a.s)."
                ),
            ),
        ],
    )
    def test_wrong_values(self, value: Any, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(FlattenValue, {}, sink(value))
        assert str(error.value) == message

    @given(
        st.recursive(
            st.dictionaries(st.text("abc", min_size=1), st.integers() | st.none(), max_size=4),
            lambda inner: st.dictionaries(st.text("abc", min_size=1), inner | st.integers(), max_size=4),
            max_leaves=12,
        )
    )
    @settings(max_examples=3 * settings().max_examples // 5)
    def test_every_leaf_is_kept(self, value: Any) -> None:
        assert apply(FlattenValue, {"delimiter": "/"}, sink(value)).value == dict(leaves(value, ()))


def leaves(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from leaves(item, (*path, name))
        else:
            yield "/".join((*path, name)), item


class TestStructs:
    def test_a_nested_struct(self) -> None:
        value = Struct(OUTER, {"o": Struct(INNER, {"p": 1}), "l": ["z"], "ts": AT})
        changed = apply(FlattenValue, {}, sink(value))
        assert changed.value_schema == FLAT
        assert raw(changed.value) == {"o.p": 1, "o.q": 4, "l": ["z"], "ts": AT}

    def test_nothing_is_set_in_a_struct_that_is_not_there(self) -> None:
        changed = apply(FlattenValue, {}, sink(Struct(OUTER, {"ts": AT})))
        assert raw(changed.value) == {"o.p": None, "o.q": None, "l": None, "ts": AT}

    def test_defaults_of_a_parent_become_defaults_of_fields(self) -> None:
        inner = s.struct({"p": s.INT32}, default=Struct(s.struct({"p": s.INT32}), {"p": 8}))
        changed = apply(FlattenValue, {}, sink(Struct(s.struct({"o": inner}))))
        assert changed.value_schema == s.struct({"o.p": Schema(SchemaType.INT32, default=8)})
        assert (raw(changed.value), changed.value["o.p"]) == ({"o.p": None}, 8)

    def test_what_was_optional_is_so_in_each_field(self) -> None:
        schema = s.struct({"a": s.INT64}, name="on", optional=True)
        changed = apply(FlattenValue, {}, sink(Struct(schema, {"a": 1})))
        assert changed.value_schema == s.struct({"a": s.INT64.as_optional()}, name="on")

    def test_maps_in_structs_are_refused(self) -> None:
        inner = s.struct({"m": s.mapping(s.STRING, s.STRING)})
        message = r"^Flatten transformation does not support MAP for record with schemas \(for field o.m\)\.$"
        with pytest.raises(DataError, match=message):
            apply(FlattenValue, {}, sink(Struct(s.struct({"o": inner}), {"o": Struct(inner, {"m": {}})})))

    def test_a_required_field_that_is_not_set(self) -> None:
        schema = s.struct({"o": s.struct({"p": s.INT32})})
        record = sink(Struct(schema, {"o": Struct(schema.fields[0].schema)}))
        with pytest.raises(DataError, match=r'null used for required field: "o.p", schema type: INT32'):
            apply(FlattenValue, {}, record)

    def test_two_fields_of_one_name(self) -> None:
        inner = s.struct({"p": s.INT32})
        schema = s.struct({"o.p": s.INT32, "o": inner})
        with pytest.raises(DataError, match=r"^Cannot create field because of field name duplication o.p$"):
            apply(FlattenValue, {}, sink(Struct(schema, {"o.p": 1, "o": Struct(inner, {"p": 1})})))

    def test_no_struct(self) -> None:
        with pytest.raises(DataError, match=r"^Only Struct objects supported for \[flattening\], found: java.lang.Str"):
            apply(FlattenValue, {}, sink("s", s.STRING))

    def test_the_key(self) -> None:
        assert apply(FlattenKey, {}, sink("v", key={"a": {"b": 1}})).key == {"a.b": 1}


class TestHoistField:
    @pytest.mark.parametrize("value", [None, "v", {"a": 1}])
    def test_without_schema(self, value: Any) -> None:
        changed = apply(HoistFieldValue, {"field": "f"}, sink(value))
        assert (changed.value, changed.value_schema) == ({"f": value}, None)

    @pytest.mark.parametrize(("schema", "value"), [(s.STRING, "v"), (s.OPTIONAL_STRING, None), (STRUCT, a_struct())])
    def test_with_schema(self, schema: Schema, value: Any) -> None:
        changed = apply(HoistFieldValue, {"field": "f"}, sink(value, schema))
        assert changed.value_schema == s.struct({"f": schema})
        assert raw(changed.value) == {"f": value}

    def test_null_where_none_may_be(self) -> None:
        with pytest.raises(DataError) as error:
            apply(HoistFieldValue, {"field": "f"}, sink(None, s.STRING))
        assert str(error.value) == 'Invalid value: null used for required field: "f", schema type: STRING'

    def test_no_name(self) -> None:
        assert apply(HoistFieldValue, {"field": ""}, sink("v")).value == {"": "v"}
        with pytest.raises(DataError, match=r"^fieldName cannot be null.$"):
            apply(HoistFieldValue, {"field": ""}, sink("v", s.STRING))
        with pytest.raises(ConfigError, match=r'^Missing required configuration "field"'):
            configured(HoistFieldValue, {})

    def test_the_key(self) -> None:
        assert apply(HoistFieldKey, {"field": "id"}, sink("v", key=7)).key == {"id": 7}
