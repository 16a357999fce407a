"""ConfigDef: how text becomes values, and what is said when it cannot. From the configuration contract, §6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    PASSWORD,
    REQUIRED,
    SHORT,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigValue,
    Key,
    Recommender,
    Width,
    all_of,
    at_least,
    no_duplicates,
    non_empty,
    one_of,
    one_of_any_case,
    valid_regex,
)
from headgate.api.config import Type, Validator, parse_value, text_of


def invalid(value: object, reason: str) -> str:
    return f"Invalid value {value} for configuration k: {reason}"


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (BOOLEAN, "true", True),
        (BOOLEAN, " FALSE ", False),
        (BOOLEAN, True, True),
        (STRING, " a b ", "a b"),
        (STRING, "", ""),
        (CLASS, " org.apache.X ", "org.apache.X"),
        (PASSWORD, " secret ", "secret"),
        (SHORT, "-32768", -(2**15)),
        (INT, " 2147483647 ", 2**31 - 1),
        (INT, "+7", 7),
        (INT, 7, 7),
        (LONG, "-9223372036854775808", -(2**63)),
        (DOUBLE, "1.5", 1.5),
        (DOUBLE, " -1e3 ", -1000.0),
        (DOUBLE, ".5", 0.5),
        (DOUBLE, 2, 2.0),
        (DOUBLE, "2d", 2.0),
        (DOUBLE, "Infinity", float("inf")),
        (LIST, "a, b ,c", ["a", "b", "c"]),
        (LIST, " ", []),
        (LIST, "a,,b", ["a", "", "b"]),
        (LIST, "a,", ["a", ""]),
        (LIST, ("a", "b"), ["a", "b"]),
    ],
)
def test_text_is_parsed_by_type(kind: Type, raw: object, value: object) -> None:
    parsed = parse_value("k", kind, raw)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("kind", Type)
def test_null_stays_null(kind: Type) -> None:
    assert parse_value("k", kind, None) is None


@pytest.mark.parametrize(
    ("kind", "raw", "error"),
    [
        (BOOLEAN, "yes", invalid("yes", "Expected value to be either true or false")),
        (BOOLEAN, 1, invalid(1, "Expected value to be either true or false")),
        (INT, "x", invalid("x", "Not a number of type INT")),
        (INT, "", invalid("", "Not a number of type INT")),
        (INT, "1.0", invalid("1.0", "Not a number of type INT")),
        (INT, 1.0, invalid(1.0, "Not a number of type INT")),
        (INT, True, invalid("true", "Not a number of type INT")),
        (INT, "1_000", invalid("1_000", "Not a number of type INT")),
        (INT, "٣", invalid("٣", "Not a number of type INT")),
        (INT, "2147483648", invalid(2**31, "Not a number of type INT")),
        (SHORT, "32768", invalid(32768, "Not a number of type SHORT")),
        (LONG, "9223372036854775808", invalid(2**63, "Not a number of type LONG")),
        (DOUBLE, "x", invalid("x", "Not a number of type DOUBLE")),
        (DOUBLE, "1_0", invalid("1_0", "Not a number of type DOUBLE")),
        (DOUBLE, "1.2.3", invalid("1.2.3", "Not a number of type DOUBLE")),
        (DOUBLE, ".", invalid(".", "Not a number of type DOUBLE")),
        (DOUBLE, False, invalid("false", "Not a number of type DOUBLE")),
        (STRING, 5, invalid(5, "Expected value to be a string, but it was a int")),
        (PASSWORD, 5, invalid(5, "Expected value to be a string, but it was a int")),
        (LIST, 5, invalid(5, "Expected a comma separated list.")),
    ],
)
def test_what_cannot_be_parsed_is_named(kind: Type, raw: object, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_value("k", kind, raw)
    assert str(raised.value) == error


@given(st.integers(-(2**40), 2**40))
def test_integers_are_taken_within_their_range_only(number: int) -> None:
    try:
        assert parse_value("k", INT, str(number)) == number
        assert -(2**31) <= number < 2**31
    except ConfigError:
        assert not -(2**31) <= number < 2**31


@given(st.floats(allow_nan=False))
def test_doubles_are_taken_as_written(number: float) -> None:
    text = repr(number).replace("inf", "Infinity")
    assert parse_value("k", DOUBLE, text) == number


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (STRING, "a", "a"),
        (INT, 5, "5"),
        (BOOLEAN, True, "true"),
        (LIST, ["a", "b"], "a,b"),
        (LIST, [], ""),
        (DOUBLE, 0.5, "0.5"),
        (PASSWORD, "secret", "[hidden]"),
        (PASSWORD, None, None),
        (STRING, None, None),
        (STRING, REQUIRED, None),
    ],
)
def test_values_are_shown_as_text(kind: Type, value: object, text: str | None) -> None:
    assert text_of(kind, value) == text


# --- validators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("validator", "value", "error"),
    [
        (at_least(1), 1, None),
        (at_least(1), 0, invalid(0, "Value must be at least 1")),
        (at_least(1), None, invalid("null", "Value must be non-null")),
        (one_of("a", "b"), "a", None),
        (one_of("a", "b"), "A", invalid("A", "String must be one of: a, b")),
        (one_of("a", "b"), None, invalid("null", "String must be one of: a, b")),
        (one_of_any_case("a", "B"), "b", None),
        (one_of_any_case("a", "B"), "c", invalid("c", "String must be one of (case insensitive): a, B")),
        (one_of_any_case("a"), None, invalid("null", "String must be one of (case insensitive): a")),
        (non_empty, "a", None),
        (non_empty, None, None),
        (non_empty, "", invalid("", "String must be non-empty")),
        (no_duplicates, ["a", "b"], None),
        (no_duplicates, None, None),
        (no_duplicates, ["t", "t"], invalid("[t, t]", "Duplicate alias provided.")),
        (valid_regex, "a.*", None),
        (valid_regex, None, None),
        (all_of(non_empty, one_of("a")), "a", None),
        (all_of(non_empty, one_of("a")), "", invalid("", "String must be non-empty")),
        (all_of(non_empty, one_of("a")), "b", invalid("b", "String must be one of: a")),
    ],
)
def test_validators_speak_kafka_s_words(validator: Validator, value: object, error: str | None) -> None:
    if error is None:
        validator("k", value)
    else:
        with pytest.raises(ConfigError) as raised:
            validator("k", value)
        assert str(raised.value) == error


def test_a_bad_regular_expression_is_found() -> None:
    with pytest.raises(ConfigError, match=r"^Invalid value \[ for configuration k: Invalid regular expression: "):
        valid_regex("k", "[")


def test_lists_are_shown_as_kafka_shows_them() -> None:
    assert (
        str(ConfigError.invalid("k", ["a", None, True], "no"))
        == "Invalid value [a, null, true] for configuration k: no"
    )


# --- parsing a configuration ------------------------------------------------------------------------------------------

SIMPLE = ConfigDef(
    Key("name", STRING, validator=non_empty, importance=HIGH, doc="Its name."),
    Key("size", INT, default=5, validator=at_least(1), importance=LOW, doc="Its size."),
    Key("tags", LIST, default="a,b", doc="Its tags."),
)


def test_all_declared_keys_are_parsed_and_others_left_out() -> None:
    assert SIMPLE.parse({"name": "n", "other": "x"}) == {"name": "n", "size": 5, "tags": ["a", "b"]}
    assert SIMPLE.parse({"name": "n", "size": "7", "tags": ""}) == {"name": "n", "size": 7, "tags": []}


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({}, 'Missing required configuration "name" which has no default value.'),
        ({"name": ""}, "Invalid value  for configuration name: String must be non-empty"),
        ({"name": "n", "size": "x"}, "Invalid value x for configuration size: Not a number of type INT"),
        ({"name": "n", "size": None}, "Invalid value null for configuration size: Value must be non-null"),
        ({"name": "n", "size": "0"}, "Invalid value 0 for configuration size: Value must be at least 1"),
    ],
)
def test_parsing_raises_the_first_error(config: Mapping[str, Any], error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        SIMPLE.parse(config)
    assert str(raised.value) == error


def found(definition: ConfigDef, config: Mapping[str, Any]) -> dict[str, tuple[Any, list[str]]]:
    return {each.name: (each.value, each.errors) for each in definition.validate(config)}


def test_validation_reports_every_key_in_the_order_of_declaration() -> None:
    values = SIMPLE.validate({"name": "n", "unknown": "x"})
    assert [(each.name, each.value, each.errors, each.visible) for each in values] == [
        ("name", "n", [], True),
        ("size", 5, [], True),
        ("tags", ["a", "b"], [], True),
    ]


@pytest.mark.parametrize(
    ("config", "key", "errors"),
    [
        ({}, "name", ['Missing required configuration "name" which has no default value.']),
        (
            {"name": "n", "size": "x"},
            "size",
            [
                "Invalid value x for configuration size: Not a number of type INT",
                "Invalid value null for configuration size: Value must be non-null",
            ],
        ),
        ({"name": "n", "size": "0"}, "size", ["Invalid value 0 for configuration size: Value must be at least 1"]),
    ],
)
def test_validation_reports_all_that_is_wrong_with_a_key(
    config: Mapping[str, Any], key: str, errors: list[str]
) -> None:
    assert found(SIMPLE, config)[key][1] == errors


def test_a_missing_key_is_validated_too_as_null() -> None:
    """As Kafka does: a transform without type is missing, and no transform either."""
    definition = ConfigDef(Key("k", INT, validator=at_least(1)))
    assert found(definition, {})["k"] == (
        None,
        [
            'Missing required configuration "k" which has no default value.',
            "Invalid value null for configuration k: Value must be non-null",
        ],
    )


class Regions(Recommender):
    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        if parsed["cloud"] == "none":
            raise ConfigError("there are no regions")
        return [f"{parsed['cloud']}-{n}" for n in (1, 2)]

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        cloud: str = parsed["cloud"]
        return cloud != "home"


CLOUD = ConfigDef(
    Key("cloud", STRING, default="home", dependents=("region",)),
    Key("region", STRING, default=None, recommender=Regions()),
)


def test_recommenders_see_the_rest_of_the_configuration() -> None:
    for cloud, visible in (("home", False), ("big", True)):
        region = CLOUD.validate({"cloud": cloud})[1]
        assert region.recommended_values == [f"{cloud}-1", f"{cloud}-2"]
        assert region.visible is visible


def test_a_recommender_that_cannot_answer_is_an_error_of_its_key() -> None:
    assert found(CLOUD, {"cloud": "none"})["region"] == (None, ["there are no regions"])


# --- definitions ------------------------------------------------------------------------------------------------------


def test_a_key_has_kafka_s_defaults() -> None:
    key = Key("k", STRING)
    assert key.required
    assert (key.order, key.width, key.group, key.dependents) == (-1, Width.NONE, None, ())
    assert not Key("k", STRING, default=None).required


def test_groups_come_in_the_order_of_their_first_key() -> None:
    definition = ConfigDef(
        Key("a", STRING, group="Common"),
        Key("b", STRING, group="Errors"),
        Key("c", STRING, group="Common"),
        Key("d", STRING),
    )
    assert definition.groups == ["Common", "Errors"]


def test_definitions_add_up_and_the_later_key_wins_in_the_earlier_s_place() -> None:
    both = ConfigDef(Key("a", STRING), Key("b", STRING)) + ConfigDef(Key("c", STRING), Key("a", INT))
    assert both.names == ["a", "b", "c"]
    assert both["a"].type is INT
    assert "c" in both
    assert "d" not in both


def test_a_key_is_declared_once() -> None:
    with pytest.raises(ValueError, match="keys declared twice: \\['a'\\]"):
        ConfigDef(Key("a", STRING), Key("a", INT))


class BySize(Recommender):
    """Remembers what it was asked with."""

    asked: list[tuple[str, dict[str, Any]]] = []

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        self.asked.append((name, dict(parsed)))
        return ["small"] if parsed["size"] < 10 else ["large"]

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return bool(parsed["size"])


SIZED = ConfigDef(
    Key("size", INT, 5, at_least(0), dependents=("kind",), group="Shape"),
    Key("kind", STRING, "", recommender=BySize()),
)


def test_keys_below_a_prefix_have_their_dependents_and_recommenders_there() -> None:
    BySize.asked.clear()
    whole = ConfigDef(Key("other", STRING, "x")) + SIZED.embedded("transforms.t.", "Transforms: t")
    assert whole.names == ["other", "transforms.t.size", "transforms.t.kind"]
    assert whole["transforms.t.size"].dependents == ("transforms.t.kind",)
    assert [key.group for key in whole] == [None, "Transforms: t: Shape", "Transforms: t"]
    found = {value.name: value for value in whole.validate({"transforms.t.size": "12"})}
    assert found["transforms.t.kind"].recommended_values == ["large"]
    assert BySize.asked == [("kind", {"size": 12, "kind": ""})]
    found = {value.name: value for value in whole.validate({"transforms.t.size": "0"})}
    assert not found["transforms.t.kind"].visible
    (error,) = next(value.errors for value in whole.validate({"transforms.t.size": "-1"}) if value.errors)
    assert error == "Invalid value -1 for configuration transforms.t.size: Value must be at least 0"


def test_a_dependent_that_nobody_declared_is_an_error_of_its_own() -> None:
    keys = ConfigDef(Key("a", STRING, "", dependents=("b", "z")), Key("b", STRING, "", dependents=("z",)))
    first, second, third = keys.validate({})
    assert (first.errors, second.errors) == ([], [])
    assert third == ConfigValue("z", errors=["z is referred in the dependents, but not defined."], visible=False)
