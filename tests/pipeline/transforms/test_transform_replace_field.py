"""ReplaceField and SetSchemaMetadata."""

from __future__ import annotations

from typing import Any

import pytest
from transform_support import DEFAULTS, KEEP, STRUCT, a_map, a_struct, apply, configured, raw, sink

from headgate.api import ConfigError, DataError, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from headgate.pipeline.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue


class TestReplaceField:
    @pytest.mark.parametrize(
        ("config", "expected"),
        [
            ({}, a_map()),
            ({"include": "b", "renames": "b:c"}, {"c": "x"}),
            ({"exclude": "a,n,o"}, {"b": "x"}),
            ({"exclude": "a", "include": "a,b"}, {"b": "x"}),
            ({"exclude": "zz", "include": "zz"}, {}),
            ({"renames": "a:b,b:a"}, {"b": 5, "a": "x", "n": None, "o": {"p": 1}}),
            ({"renames": "a:b"}, {"b": "x", "n": None, "o": {"p": 1}}),
            ({"renames": "a:b,a:c"}, {"c": 5, "b": "x", "n": None, "o": {"p": 1}}),
            ({"renames": ":b,zz:yy"}, a_map()),
        ],
    )
    def test_a_map(self, config: dict[str, str], expected: Any) -> None:
        assert apply(ReplaceFieldValue, config, sink(a_map())).value == expected

    @pytest.mark.parametrize(
        ("config", "fields"),
        [
            ({"exclude": "a", "include": "a,b", "renames": "b:c"}, {"c": (s.OPTIONAL_STRING, "x")}),
            ({"renames": "a:b,b:a"}, {"b": (s.INT32, 300), "a": (s.OPTIONAL_STRING, "x")}),
            ({"exclude": "a", "include": "a"}, {}),
            ({}, {"a": (s.INT32, 300), "b": (s.OPTIONAL_STRING, "x")}),
        ],
    )
    def test_a_struct(self, config: dict[str, str], fields: dict[str, tuple[Schema, Any]]) -> None:
        changed = apply(ReplaceFieldValue, config, sink(a_struct()))
        schema = s.struct(
            {name: schema for name, (schema, _) in fields.items()},
            name="nm",
            version=3,
            doc="dd",
            parameters={"k": "v"},
        )
        assert changed.value_schema == schema
        assert changed.value == Struct(schema, {name: value for name, (_, value) in fields.items()})

    @pytest.mark.parametrize(("renames", "name"), [("a:x,b:x", "x"), ("a:b", "b")])
    def test_two_fields_of_one_name(self, renames: str, name: str) -> None:
        with pytest.raises(DataError, match=f"^Cannot create field because of field name duplication {name}$"):
            apply(ReplaceFieldValue, {"renames": renames}, sink(a_struct()))

    def test_defaults(self) -> None:
        record = sink(Struct(DEFAULTS))
        assert raw(apply(ReplaceFieldValue, {"exclude": "zz"}, record).value) == {"d": 9, "r": "rd"}
        assert raw(apply(ReplaceFieldValue, {"exclude": "r", **KEEP}, record).value) == {"d": None}
        with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
            apply(ReplaceFieldValue, {"exclude": "d", **KEEP}, record)

    def test_the_schema_is_no_longer_optional(self) -> None:
        schema = s.struct({"a": s.INT64}, optional=True)
        changed = apply(ReplaceFieldValue, {"renames": "a:b"}, sink(Struct(schema, {"a": 1})))
        assert changed.value_schema == s.struct({"b": s.INT64})

    @pytest.mark.parametrize("schema", [None, STRUCT])
    def test_null_passes(self, schema: Schema | None) -> None:
        record = sink(None, schema)
        assert apply(ReplaceFieldValue, {"exclude": "a"}, record) is record

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            (None, "Only Map objects supported in absence of schema for [field replacement], found: java.lang.String"),
            (s.STRING, "Only Struct objects supported for [field replacement], found: java.lang.String"),
        ],
    )
    def test_wrong_values(self, schema: Schema | None, message: str) -> None:
        with pytest.raises(DataError) as error:
            apply(ReplaceFieldValue, {"exclude": "a"}, sink("s", schema))
        assert str(error.value) == message

    def test_the_key(self) -> None:
        changed = apply(ReplaceFieldKey, {"exclude": "a"}, sink(a_map(), key=a_map()))
        assert ("a" in changed.key, "a" in changed.value) == (False, True)

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"renames": "b"}, "Invalid value [b] for configuration renames: Invalid rename mapping: b"),
            ({"renames": "a:b:c"}, "Invalid value [a:b:c] for configuration renames: Invalid rename mapping: a:b:c"),
            ({"renames": "a:"}, "Invalid value [a:] for configuration renames: Invalid rename mapping: a:"),
            ({"renames": ":"}, "Invalid value [:] for configuration renames: Invalid rename mapping: :"),
            ({"renames": "a:b,,"}, "Invalid value [a:b, , ] for configuration renames: Invalid rename mapping: "),
            ({"exclude": "a,,b"}, "Configuration 'exclude' values must not be empty."),
            ({"include": ","}, "Configuration 'include' values must not be empty."),
        ],
    )
    def test_wrong_config(self, config: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(ReplaceFieldValue, config)
        assert str(error.value) == message


class TestSetSchemaMetadata:
    @pytest.mark.parametrize(
        ("config", "name", "version"),
        [
            ({"schema.name": "N", "schema.version": "7"}, "N", 7),
            ({"schema.name": "N"}, "N", 3),
            ({"schema.version": "7"}, "nm", 7),
            ({"schema.name": ""}, "", 3),
        ],
    )
    def test_name_and_version(self, config: dict[str, str], name: str, version: int) -> None:
        changed = apply(SetSchemaMetadataValue, config, sink(a_struct()))
        schema = s.struct(
            {"a": s.INT32, "b": s.OPTIONAL_STRING}, name=name, version=version, doc="dd", parameters={"k": "v"}
        )
        assert changed.value_schema == schema
        assert changed.value == Struct(schema, {"a": 300, "b": "x"})

    def test_null_with_a_schema(self) -> None:
        changed = apply(SetSchemaMetadataValue, {"schema.name": "N"}, sink(None, STRUCT))
        assert (changed.value, changed.value_schema.name) == (None, "N")

    def test_null_without(self) -> None:
        record = sink(None)
        assert apply(SetSchemaMetadataValue, {"schema.name": "N"}, record) is record

    def test_optional_and_the_default_stay(self) -> None:
        plain = s.struct({"a": s.INT32}, name="n")
        schema = s.struct({"a": s.INT32}, name="n", optional=True, default=Struct(plain, {"a": 300}))
        made = apply(SetSchemaMetadataValue, {"schema.name": "N"}, sink(Struct(schema, {"a": 1}))).value_schema
        assert (made.optional, made.default["a"], made.default.schema.name) == (True, 300, "N")

    def test_defaults_of_fields(self) -> None:
        config = {"schema.name": "N"}
        assert raw(apply(SetSchemaMetadataValue, config, sink(Struct(DEFAULTS))).value) == {"d": 9, "r": "rd"}
        record = sink(Struct(DEFAULTS, {"r": "q"}))
        assert raw(apply(SetSchemaMetadataValue, {**config, **KEEP}, record).value) == {"d": None, "r": "q"}
        with pytest.raises(DataError, match=r'null used for required field: "r", schema type: STRING'):
            apply(SetSchemaMetadataValue, {**config, **KEEP}, sink(Struct(DEFAULTS)))

    def test_a_schema_is_needed(self) -> None:
        with pytest.raises(DataError, match=r"^Schema required for \[updating schema metadata\]$"):
            apply(SetSchemaMetadataValue, {"schema.name": "N"}, sink(a_map()))

    @pytest.mark.parametrize(("schema", "value"), [(s.array(s.INT8), []), (s.STRING, "x")])
    def test_only_structs_are_taken(self, schema: Schema, value: Any) -> None:
        with pytest.raises(DataError, match=r"^Cannot list fields on non-struct type$"):
            apply(SetSchemaMetadataValue, {"schema.name": "N"}, sink(value, schema))

    def test_the_key(self) -> None:
        record = sink("v", key=a_struct(), key_schema=STRUCT)
        assert apply(SetSchemaMetadataKey, {"schema.name": "N"}, record).key_schema.name == "N"

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({}, "Neither schema name nor version configured"),
            ({"schema.version": "x"}, "Invalid value x for configuration schema.version: Not a number of type INT"),
        ],
    )
    def test_wrong_config(self, config: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError) as error:
            configured(SetSchemaMetadataValue, config)
        assert str(error.value) == message
