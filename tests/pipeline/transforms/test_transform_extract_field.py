"""ExtractField and the paths to fields."""

from __future__ import annotations

from typing import Any

import pytest
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, sink

from headgate.api import ConfigError, DataError, Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from headgate.pipeline.transforms.field_path import FieldPath

INNER = s.struct({"p": Schema(SchemaType.INT32, optional=True, default=4)}, optional=True)
OUTER = s.struct({"o": INNER, "a": s.INT32})
V2 = {"field.syntax.version": "V2"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"field": "a"}, 5),
        ({"field": "o.p"}, None),
        ({"field": "o.p", **V2}, 1),
        ({"field": "o.p", "field.syntax.version": "v2"}, 1),
        ({"field": "o", **V2}, {"p": 1}),
        ({"field": "zz.p", **V2}, None),
        ({"field": "n.p", **V2}, None),
        ({"field": "zz"}, None),
        ({"field": ""}, None),
    ],
)
def test_from_a_map(config: dict[str, str], expected: Any) -> None:
    changed = apply(ExtractFieldValue, config, sink(a_map()))
    assert (changed.value, changed.value_schema) == (expected, None)


def test_a_name_with_dots_in_back_ticks() -> None:
    assert apply(ExtractFieldValue, {"field": "`a.b`.c", **V2}, sink({"a.b": {"c": 1}})).value == 1


@pytest.mark.parametrize(
    ("value", "config", "expected", "schema"),
    [
        (a_struct(), {"field": "a"}, 300, s.INT32),
        (Struct(DEFAULTS), {"field": "d"}, 9, DEFAULTS.fields[0].schema),
        (Struct(DEFAULTS), {"field": "d", **KEEP}, None, DEFAULTS.fields[0].schema),
        (Struct(OUTER, {"a": 1}), {"field": "o.p", **V2}, None, INNER.fields[0].schema),
        (Struct(OUTER, {"a": 1, "o": Struct(INNER)}), {"field": "o.p", **V2}, 4, INNER.fields[0].schema),
        (Struct(OUTER, {"a": 1, "o": Struct(INNER)}), {"field": "o.p", **V2, **KEEP}, None, INNER.fields[0].schema),
    ],
)
def test_from_a_struct(value: Struct, config: dict[str, str], expected: Any, schema: Schema) -> None:
    changed = apply(ExtractFieldValue, config, sink(value))
    assert (changed.value, changed.value_schema) == (expected, schema)


def test_null_passes() -> None:
    assert apply(ExtractFieldValue, {"field": "a"}, sink(None)).value is None
    changed = apply(ExtractFieldValue, {"field": "a"}, sink(None, STRUCT))
    assert (changed.value, changed.value_schema) == (None, s.INT32)


def test_the_key() -> None:
    assert apply(ExtractFieldKey, {"field": "a"}, sink("v", key={"a": 1})).key == 1


@pytest.mark.parametrize(
    ("value", "schema", "config", "message"),
    [
        (a_struct(), STRUCT, {"field": "q"}, "Unknown field: q"),
        (None, STRUCT, {"field": "q"}, "Unknown field: q"),
        (Struct(OUTER, {"a": 1}), OUTER, {"field": "o.q", **V2}, "Unknown field: o.q"),
        (Struct(OUTER, {"a": 1}), OUTER, {"field": "a.q", **V2}, "Cannot look up fields on non-struct type"),
        (None, s.STRING, {"field": "a"}, "Cannot look up fields on non-struct type"),
        (
            "s",
            s.STRING,
            {"field": "a"},
            "Only Struct objects supported for [field extraction], found: java.lang.String",
        ),
        (
            "s",
            None,
            {"field": "a"},
            "Only Map objects supported in absence of schema for [field extraction], found: java.lang.String",
        ),
        (
            a_map(),
            None,
            {"field": "a.p", **V2},
            "Only Map objects supported in absence of schema for [nested field access], found: java.lang.Long",
        ),
    ],
)
def test_wrong_values(value: Any, schema: Schema | None, config: dict[str, str], message: str) -> None:
    with pytest.raises(DataError) as error:
        apply(ExtractFieldValue, config, sink(value, schema))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, 'Missing required configuration "field" which has no default value.'),
        (
            {"field": "a", "field.syntax.version": "V3"},
            "Invalid value V3 for configuration field.syntax.version: String must be one of (case insensitive): V1, V2",
        ),
        ({"field": "", **V2}, "Field path must not be empty"),
    ],
)
def test_wrong_config(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(ExtractFieldValue, config)
    assert str(error.value) == message


@pytest.mark.kip(821, "paths to nested fields")
@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a.b", ("a", "b")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("`a`b`", ("a`b",)),
        (r"`a\`.b`", ("a`.b",)),
        ("a`b.c", ("a`b", "c")),
        ("`a`.", ("a", "")),
        ("a.", ("a", "")),
        ("a..b", ("a", "", "b")),
        ("``", ("",)),
        (".a", ("", "a")),
    ],
)
def test_paths(path: str, steps: tuple[str, ...]) -> None:
    assert FieldPath.parse(path, "V2").steps == steps
    assert FieldPath.parse(path, "V1").steps == (path,)


@pytest.mark.parametrize("path", ["`a", "`", "`a`b", r"`a\`"])
def test_back_ticks_come_in_pairs(path: str) -> None:
    with pytest.raises(ConfigError) as error:
        FieldPath.parse(path, "V2")
    assert str(error.value) == (
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position 0 to "
        "escape it"
    )
