from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headgate import __version__
from headgate.api import (
    INT,
    STRING,
    ConfigDef,
    ConfigValue,
    Converter,
    Key,
    Predicate,
    Recommender,
    Record,
    SinkConnector,
    SourceConnector,
    Transform,
    at_least,
)
from headgate.connectors.file_sink import FileStreamSinkConnector
from headgate.connectors.file_source import FileStreamSourceConnector
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.pipeline.transforms.python import Python
from headgate.pipeline.transforms.sql import Sql
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos
from headgate.runtime.config.validator import Validator, failure_message, require_version
from headgate.runtime.errors import BadRequest
from headgate.runtime.plugins import Plugins
from headgate.sandbox import Sandbox

NULL = "Null value can not be supplied as the configuration value."


class Shout(Transform[Record]):
    config = ConfigDef(Key("volume", INT, 5, at_least(1)), Key("echo", STRING, ""))

    def apply(self, record: Record) -> Record | None:
        return record


class Choir(Shout):
    takes_predicate = False


class IsLoud(Predicate[Record]):
    config = ConfigDef(Key("from", INT))

    def test(self, record: Record) -> bool:
        return True


class Counting(Converter):
    config = ConfigDef(Key("base", INT, 10, at_least(2), group="Counting"), Key("sign", STRING, "+"))

    def from_connect(self, topic: str, schema: Any, value: Any) -> bytes | None:
        return None

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Any, Any]:
        return None, None


class Suggesting(Recommender):
    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[str]:
        return ["red", "blue"]

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return False


class Picky(SourceConnector):
    """Checks keys against each other, redefines one of the framework, and reports one it did not declare."""

    config: ClassVar[ConfigDef] = ConfigDef(
        Key("low", INT, 0, group="Range"),
        Key("high", INT, 9, group="Range"),
        Key("color", STRING, None, recommender=Suggesting()),
        Key("tasks.max", INT, 3, doc="redefined", group="Range"),
    )

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(config)
        low, high = values[0], values[1]
        if low.value > high.value:
            low.errors.append("low is above high")
            high.errors.append("high is below low")
        return [*values, ConfigValue("undeclared", "seen")]


class Silent(SourceConnector):
    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return None  # type: ignore[return-value]


class Sloppy(SinkConnector):
    config = {"file": "a string"}  # type: ignore[assignment]

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []


PLUGINS = Plugins(
    [
        FileStreamSourceConnector, FileStreamSinkConnector, Picky, Silent, Sloppy, Shout, Choir, IsLoud, Counting,
        StringConverter, JsonConverter, SimpleHeaderConverter,
    ]
)  # fmt: skip
WORKER = {"key.converter": "JsonConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
VALIDATOR = Validator(PLUGINS, WORKER)


def validate(kind: str, /, **config: str | None) -> ConfigInfos:
    """Underscores for dots."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    return VALIDATOR.validate({"name": "a", "connector.class": kind, **given})


def source(**config: str | None) -> ConfigInfos:
    return validate("FileStreamSource", **{"topic": "t", **config})


def sink(**config: str | None) -> ConfigInfos:
    return validate("FileStreamSink", **config)


def entry(infos: ConfigInfos, name: str) -> ConfigInfo:
    (found,) = (info for info in infos.configs if info.value is not None and info.value.name == name)
    return found


def errors(infos: ConfigInfos) -> dict[str, list[str]]:
    return {info.value.name: info.value.errors for info in infos.configs if info.value and info.value.errors}


def names(infos: ConfigInfos) -> list[str]:
    return [info.value.name for info in infos.configs if info.value]


COMMON = [
    "name", "connector.class", "connector.plugin.version", "tasks.max", "tasks.max.enforce", "key.converter",
    "key.converter.plugin.version", "value.converter", "value.converter.plugin.version", "header.converter",
    "header.converter.plugin.version", "transforms", "predicates", "config.action.reload", "errors.retry.timeout",
    "errors.retry.delay.max.ms", "errors.tolerance", "errors.log.enable", "errors.log.include.messages",
]  # fmt: skip
DEAD_LETTERS = [
    "errors.deadletterqueue.topic.name", "errors.deadletterqueue.topic.replication.factor",
    "errors.deadletterqueue.context.headers.enable",
]  # fmt: skip
SOURCE = [
    *DEAD_LETTERS,
    "topic.creation.groups", "exactly.once.support", "transaction.boundary", "transaction.boundary.interval.ms",
    "offsets.storage.topic",
]  # fmt: skip
SINK = ["topics", "topics.regex", *DEAD_LETTERS]


class TestBuiltIns:
    def test_a_source_that_is_right(self) -> None:
        infos = source(file="/in")
        assert (infos.name, infos.error_count, errors(infos)) == ("FileStreamSource", 0, {})
        assert infos.groups == [
            "Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support",
            "offsets.topic",
        ]  # fmt: skip
        assert names(infos) == [*COMMON, *SOURCE, "file", "topic", "batch.size"]
        assert all(info.key is not None and info.key.name == info.value.name for info in infos.configs if info.value)
        assert [entry(infos, key).value.value for key in ("tasks.max", "batch.size", "file")] == [1, 2000, "/in"]  # type: ignore[union-attr]

    def test_a_source_without_its_topic(self) -> None:
        infos = validate("FileStreamSource")
        assert infos.error_count == 1
        assert errors(infos) == {"topic": ['Missing required configuration "topic" which has no default value.']}

    def test_a_sink_that_is_right(self) -> None:
        infos = sink(topics="t")
        assert (infos.error_count, errors(infos)) == (0, {})
        assert infos.groups == ["Common", "Transforms", "Predicates", "Error Handling"]
        assert names(infos) == [*COMMON, *SINK, "file", "exactly.once"]

    @pytest.mark.parametrize(
        "name",
        [
            "FileStreamSource",
            "FileStreamSourceConnector",
            "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "headgate.connectors.file_source.FileStreamSourceConnector",
            " FileStreamSource ",
        ],
    )
    def test_the_name_is_shown_as_it_was_given(self, name: str) -> None:
        infos = validate(name, topic="t")
        assert (infos.name, infos.error_count) == (name, 0)

    def test_a_number_that_is_none_is_wrong_twice(self) -> None:
        infos = source(tasks_max="x")
        assert errors(infos) == {
            "tasks.max": [
                "Invalid value x for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ]
        }
        assert infos.error_count == 2

    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            ("tasks_max", "0", "Value must be at least 1"),
            ("errors_tolerance", "some", "String must be one of: none, all"),
            ("errors_log_enable", "yes", "Expected value to be either true or false"),
            ("config_action_reload", "maybe", "String must be one of: none, restart"),
            ("exactly_once_support", "never", "String must be one of: requested, required"),
            ("transaction_boundary", "x", "String must be one of: poll, interval, connector"),
            ("transaction_boundary_interval_ms", "-1", "Value must be at least 0"),
            ("offsets_storage_topic", "", "String must be non-empty"),
            ("name", "", "String may not be empty"),
            (
                "name",
                "a\x07b\x1fc",
                "String may not contain control sequences but had the following ASCII chars: 7, 31",
            ),
        ],
    )
    def test_framework_keys_are_checked(self, key: str, value: str, reason: str) -> None:
        dotted = key.replace("_", ".")
        assert errors(source(**{key: value})) == {
            dotted: [f"Invalid value {value} for configuration {dotted}: {reason}"]
        }

    def test_a_missing_name_is_wrong_once(self) -> None:
        infos = VALIDATOR.validate({"connector.class": "FileStreamSource", "topic": "t"})
        assert errors(infos) == {"name": ['Missing required configuration "name" which has no default value.']}

    @pytest.mark.parametrize("name", ["a/b", "50 %", "ä", "a?b&c+d"])
    def test_names_may_have_what_they_like(self, name: str) -> None:
        assert source(name=name).error_count == 0

    def test_keys_nobody_declared_are_not_reported(self) -> None:
        assert "whatever" not in names(source(whatever="x"))


class TestClass:
    def test_none(self) -> None:
        text = "Connector config {name=a, x=null} contains no connector type"
        for given in ({}, {"connector.class": ""}):
            with pytest.raises(BadRequest, match=r"^Connector config \{.*\} contains no connector type$"):
                VALIDATOR.validate({"name": "a", "x": None, **given})
        with pytest.raises(BadRequest, match=re.escape(text)):
            VALIDATOR.validate({"name": "a", "x": None})

    def test_unknown(self) -> None:
        with pytest.raises(BadRequest) as raised:
            validate("Nobody")
        assert str(raised.value).startswith(
            "Failed to find any class that implements Connector and which name matches Nobody, available connectors"
            " are: org.apache.kafka.connect.file.FileStreamSinkConnector, "
        )

    def test_another_kind_of_plugin_is_no_connector(self) -> None:
        with pytest.raises(BadRequest, match="Failed to find any class that implements Connector"):
            validate("StringConverter")

    def test_one_that_declares_no_keys_or_finds_no_values_is_broken(self) -> None:
        with pytest.raises(BadRequest, match=r"Sloppy\.config must be a ConfigDef\.$"):
            validate("Sloppy", topics="t")
        with pytest.raises(BadRequest, match=r"Silent\.validate\(\) must return a list of ConfigValue"):
            validate("Silent")


class TestConnectorsOwn:
    def test_it_may_check_keys_against_each_other(self) -> None:
        infos = validate("Picky", low="9", high="1")
        assert errors(infos) == {"low": ["low is above high"], "high": ["high is below low"]}
        assert infos.error_count == 2

    def test_its_definition_of_a_framework_key_takes_the_frameworks_place(self) -> None:
        infos = validate("Picky")
        found = entry(infos, "tasks.max")
        assert found.key is not None
        assert found.value is not None
        assert (found.key.doc, found.value.value) == ("redefined", 3)
        assert names(infos).index("tasks.max") > names(infos).index("color")

    def test_a_key_it_reports_without_having_declared_it_has_no_definition(self) -> None:
        found = entry(validate("Picky"), "undeclared")
        assert found.key is None
        assert found.value is not None
        assert found.value.value == "seen"

    def test_its_groups_come_after_the_frameworks(self) -> None:
        assert validate("Picky").groups[-1] == "Range"

    def test_its_recommenders_are_asked(self) -> None:
        found = entry(validate("Picky"), "color").value
        assert found is not None
        assert (found.recommended_values, found.visible) == (["red", "blue"], False)


class TestNulls:
    def test_a_null_is_wrong_whoever_declared_the_key(self) -> None:
        infos = source(errors_tolerance=None, whatever=None)
        assert errors(infos) == {"whatever": [NULL], "errors.tolerance": [NULL]}
        assert infos.error_count == 2

    def test_a_key_without_definition_comes_first(self) -> None:
        infos = source(whatever=None)
        assert (names(infos)[0], infos.configs[0].key) == ("whatever", None)

    def test_a_null_that_is_missed_is_wrong_twice(self) -> None:
        assert errors(source(name=None)) == {
            "name": ['Missing required configuration "name" which has no default value.', NULL]
        }

    def test_a_null_of_the_connectors_own_key_is_as_if_it_was_not_there(self) -> None:
        assert errors(source(file=None)) == {}


class TestVersion:
    @pytest.mark.parametrize("wanted", [__version__, "[0.0,99)", "(,99]", f"[{__version__}]", f"[{__version__},)"])
    def test_one_that_fits(self, wanted: str) -> None:
        assert source(connector_plugin_version=wanted).error_count == 0

    @pytest.mark.parametrize(
        ("wanted", "shown"),
        [("9.9", "[9.9,9.9]"), ("[9.0,10)", "[9.0,10)"), (f"({__version__},)", f"({__version__},)"), ("", "[,]")],
    )
    def test_one_that_does_not_is_all_that_is_told(self, wanted: str, shown: str) -> None:
        infos = VALIDATOR.validate({"connector.class": "FileStreamSource", "connector.plugin.version": wanted})
        text = (
            "Plugin org.apache.kafka.connect.file.FileStreamSourceConnector not found that matches the version range"
            f" {shown}, available versions: [{__version__}]"
        )
        assert errors(infos) == {"connector.class": [text], "connector.plugin.version": [text]}
        assert (infos.error_count, infos.groups, len(infos.configs)) == (2, ["Common"], 2)

    def test_keys_describe_the_version_that_is_there(self) -> None:
        infos = source(
            transforms="t,u", transforms_t_type="Shout", transforms_u_type="Nobody", predicates="p",
            predicates_p_type="IsLoud", predicates_p_from="3", value_converter="JsonConverter",
        )  # fmt: skip
        there = {
            name: (info.key.default, info.value.value, info.value.recommended_values)
            for info in infos.configs
            if info.key and info.value and (name := info.value.name).endswith("plugin.version")
        }
        own = (__version__, __version__, [__version__])
        assert there == {
            **{f"{kind}.converter.plugin.version": own for kind in ("key", "value", "header")},
            **{f"{prefix}.plugin.version": own for prefix in ("connector", "transforms.t", "predicates.p")},
            "transforms.u.plugin.version": (None, None, []),
        }

    @pytest.mark.parametrize(
        ("key", "name", "full"),
        [
            ("value.converter", "JsonConverter", "org.apache.kafka.connect.json.JsonConverter"),
            ("transforms.t.type", "Shout", f"{Shout.__module__}.Shout"),
            ("predicates.p.type", "IsLoud", f"{IsLoud.__module__}.IsLoud"),
        ],
    )
    def test_one_that_does_not_fit_is_told_of_class_and_version(self, key: str, name: str, full: str) -> None:
        version = f"{key.removesuffix('.type')}.plugin.version"
        steps = {"transforms.t.type": "Shout", "predicates.p.type": "IsLoud", "predicates.p.from": "3"}
        infos = source(transforms="t", predicates="p", **{**steps, key: name, version: "9.9"})
        text = f"Plugin {full} not found that matches the version range [9.9,9.9], available versions: [{__version__}]"
        assert errors(infos) == {key: [text], version: [text]}
        assert infos.error_count == 2
        assert entry(infos, key).value.value == full  # type: ignore[union-attr]

    def test_a_version_of_the_workers_converter_is_not_looked_at(self) -> None:
        assert source(**{"key.converter.plugin.version": "9.9"}).error_count == 0

    def test_numbers_are_compared_as_numbers(self) -> None:
        found = PLUGINS.find_connector("Picky")
        require_version(found, "[0.0.9,0.10)")
        with pytest.raises(BadRequest):
            require_version(found, "[0.10,1)")

    def test_what_is_no_version(self) -> None:
        found = PLUGINS.find_connector("FileStreamSource")
        with pytest.raises(BadRequest, match=r"^Invalid version specification: \[1,$"):
            require_version(found, "[1,")
        with pytest.raises(BadRequest, match=r"not found that matches the version range \[7,7\]"):
            require_version(found, "7")
        require_version(found, None)
        require_version(found, __version__)


class TestTopicsOfSinks:
    def test_none(self) -> None:
        text = "Must configure one of topics or topics.regex"
        for given in ({}, {"topics": ""}, {"topics": " , "}):
            assert errors(sink(**given)) == {"topics": [text], "topics.regex": [text]}

    def test_both(self) -> None:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
        assert errors(sink(topics="a", topics_regex="b")) == {"topics": [text], "topics.regex": [text]}

    @pytest.mark.parametrize(
        "given",
        [{"topics": "a, b"}, *({"topics_regex": each} for each in ("a.*", r"\p{Alpha}+", "(?<x>a)\\k<x>", "a*+b"))],
    )
    def test_one_of_them(self, given: dict[str, str]) -> None:
        assert sink(**given).error_count == 0

    def test_a_pattern_that_is_none(self) -> None:
        ((key, (text,)),) = errors(sink(topics_regex="a(")).items()
        assert key == "topics.regex"
        assert text.startswith("Invalid value a( for configuration topics.regex: Invalid regex: ")

    def test_the_dead_letter_topic_is_not_read_by_name(self) -> None:
        text = "The DLQ topic 'd' may not be included in the list of topics ('topics=[a, d]') consumed by the connector"
        assert errors(sink(topics="a,d", errors_deadletterqueue_topic_name="d")) == {"topics": [text]}
        assert sink(topics="a", errors_deadletterqueue_topic_name="d").error_count == 0

    def test_the_dead_letter_topic_is_not_read_by_pattern(self) -> None:
        text = (
            "The DLQ topic 'd-1' may not be matched by the regex for the topics ('topics.regex=d.*') consumed by the"
            " connector"
        )
        assert errors(sink(topics_regex="d.*", errors_deadletterqueue_topic_name="d-1")) == {"topics.regex": [text]}
        assert sink(topics_regex="d", errors_deadletterqueue_topic_name="d-1").error_count == 0
        assert sink(topics_regex=r"\p{Alpha}", errors_deadletterqueue_topic_name="d").error_count == 1

    def test_a_source_has_no_such_rules(self) -> None:
        assert "topics" not in names(source())


class TestTransforms:
    def test_their_keys_are_declared_and_checked(self) -> None:
        infos = source(transforms="t", transforms_t_type="Shout", transforms_t_volume="0")
        assert errors(infos) == {
            "transforms.t.volume": ["Invalid value 0 for configuration transforms.t.volume: Value must be at least 1"]
        }
        assert infos.groups == [
            "Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support",
            "offsets.topic", "Transforms: t",
        ]  # fmt: skip
        found = entry(infos, "transforms.t.volume").key
        assert found is not None
        assert (found.name, found.group) == ("transforms.t.volume", "Transforms: t")

    def test_type_and_version_come_first_then_the_rest_by_name_then_the_connectors(self) -> None:
        infos = source(
            transforms="t,u", transforms_t_type="Shout", transforms_u_type="Shout", predicates="p",
            predicates_p_type="IsLoud", predicates_p_from="3",
        )  # fmt: skip
        assert names(infos)[len(COMMON) + len(SOURCE) :] == [
            "transforms.t.type", "transforms.t.plugin.version", "transforms.t.echo", "transforms.t.negate",
            "transforms.t.predicate", "transforms.t.volume", "transforms.u.type", "transforms.u.plugin.version",
            "transforms.u.echo", "transforms.u.negate", "transforms.u.predicate", "transforms.u.volume",
            "predicates.p.type", "predicates.p.plugin.version", "predicates.p.from", "file", "topic", "batch.size",
        ]  # fmt: skip

    def test_a_type_is_needed_and_must_be_known(self) -> None:
        infos = source(transforms="t,u,v", transforms_u_type="Nobody", transforms_v_type="IsLoud")
        assert errors(infos) == {
            "transforms.t.type": ['Missing required configuration "transforms.t.type" which has no default value.'],
            "transforms.u.type": [
                "Invalid value Nobody for configuration transforms.u.type: Class Nobody could not be found."
            ],
            "transforms.v.type": [
                "Invalid value IsLoud for configuration transforms.v.type: Class IsLoud could not be found."
            ],
        }

    def test_a_type_with_blanks_around_it_is_checked_with_its_keys(self) -> None:
        infos = source(transforms=" t ", transforms_t_type=" Shout ", transforms_t_volume="0")
        assert list(errors(infos)) == ["transforms.t.volume"]

    def test_an_alias_is_used_once(self) -> None:
        infos = source(transforms="t, t", transforms_t_type="Shout")
        assert errors(infos) == {
            "transforms": ["Invalid value [t, t] for configuration transforms: Duplicate alias provided."]
        }

    def test_a_predicate_can_be_named_and_negated(self) -> None:
        infos = source(
            transforms="t", transforms_t_type="Shout", transforms_t_predicate="p", transforms_t_negate="true",
            predicates="p", predicates_p_type="IsLoud", predicates_p_from="3",
        )  # fmt: skip
        assert infos.error_count == 0
        assert infos.groups[-2:] == ["Transforms: t", "Predicates: p"]

    def test_negate_needs_a_predicate(self) -> None:
        infos = source(transforms="t", transforms_t_type="Shout", transforms_t_negate="false")
        text = (
            "Config 'transforms.t.negate' was provided but there is no config 'transforms.t.predicate' defining a"
            " predicate to be negated."
        )
        assert errors(infos) == {"transforms.t.negate": [text]}

    def test_a_predicate_that_is_named_must_be_there(self) -> None:
        infos = source(transforms="t", transforms_t_type="Shout", transforms_t_predicate="q")
        text = (
            "Invalid value q for configuration transforms.t.predicate: No predicate of this alias in 'predicates':"
            " there are none"
        )
        assert errors(infos) == {"transforms.t.predicate": [text]}

    def test_a_transform_of_batches_takes_no_predicate(self) -> None:
        infos = source(
            transforms="t", transforms_t_type="Choir", transforms_t_predicate="p", predicates="p",
            predicates_p_type="IsLoud", predicates_p_from="3",
        )  # fmt: skip
        text = (
            "Invalid value p for configuration transforms.t.predicate: This transform works on whole batches: a"
            " predicate cannot decide about single records"
        )
        assert errors(infos) == {"transforms.t.predicate": [text]}
        assert errors(source(transforms="t", transforms_t_type="Choir")) == {}

    def test_keys_of_predicates_are_checked(self) -> None:
        infos = source(predicates="p,q", predicates_p_type="IsLoud", predicates_q_type="Shout")
        assert errors(infos) == {
            "predicates.p.from": ['Missing required configuration "predicates.p.from" which has no default value.'],
            "predicates.q.type": [
                "Invalid value Shout for configuration predicates.q.type: Class Shout could not be found."
            ],
        }


class TestConverters:
    def shown(self, infos: ConfigInfos) -> dict[str, Any]:
        values = {info.value.name: info.value.value for info in infos.configs if info.value}
        return {key: value for key, value in values.items() if "converter" in key}

    def test_the_workers_are_shown_where_the_connector_names_none(self) -> None:
        assert self.shown(source()) == {
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.plugin.version": __version__,
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter.plugin.version": __version__,
            "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
            "header.converter.plugin.version": __version__,
        }

    def test_the_workers_are_the_defaults(self) -> None:
        infos = source(key_converter="StringConverter", header_converter="StringConverter")
        defaults = [entry(infos, f"{kind}.converter").key.default for kind in ("key", "header")]  # type: ignore[union-attr]
        assert defaults == [
            "org.apache.kafka.connect.json.JsonConverter",
            "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        ]

    def test_the_keys_of_one_that_the_connector_names_come_last(self) -> None:
        infos = source(value_converter="Counting", key_converter="Counting", header_converter="StringConverter")
        assert names(infos)[-6:] == [
            "header.converter.converter.type", "header.converter.converter.encoding", "key.converter.base",
            "key.converter.sign", "value.converter.base", "value.converter.sign",
        ]  # fmt: skip
        assert infos.groups[-1] == "Counting"
        assert infos.configs[-1].key is not None
        assert infos.configs[-1].key.name == "value.converter.sign"

    def test_its_keys_are_checked_and_each_counts_once(self) -> None:
        infos = source(value_converter="Counting", value_converter_base="x")
        assert errors(infos) == {
            "value.converter.base": [
                "Invalid value x for configuration value.converter.base: Not a number of type INT",
                "Invalid value null for configuration value.converter.base: Value must be non-null",
            ]
        }
        assert infos.error_count == 1

    def test_keys_for_the_workers_converter_are_not_looked_at(self) -> None:
        assert source(value_converter_schemas_enable="x").error_count == 0

    @pytest.mark.parametrize("key", ["key.converter", "value.converter", "header.converter"])
    def test_one_that_is_not_there(self, key: str) -> None:
        infos = source(**{key.replace(".", "_"): "Nobody"})
        assert errors(infos) == {
            key: [f"Invalid value Nobody for configuration {key}: Class Nobody could not be found."]
        }
        assert entry(infos, f"{key}.plugin.version").value.value is None  # type: ignore[union-attr]

    def test_one_for_values_is_none_for_headers(self) -> None:
        assert list(errors(source(header_converter="Counting"))) == ["header.converter"]

    def test_blanks_around_its_name_do_no_harm(self) -> None:
        infos = source(value_converter=" Counting ")
        assert (infos.error_count, names(infos)[-1]) == (0, "value.converter.sign")


class TestRecommendations:
    def test_classes_are_recommended_where_a_class_is_wanted(self) -> None:
        found = source(transforms="s", predicates="p", **{"transforms.s.type": "Shout", "predicates.p.type": "IsLoud"})
        recommended = {
            info.value.name: info.value.recommended_values for info in found.configs if info.value is not None
        }
        assert any(name.endswith(".Shout") for name in recommended["transforms.s.type"])
        assert any(name.endswith(".IsLoud") for name in recommended["predicates.p.type"])
        json = "org.apache.kafka.connect.json.JsonConverter"
        assert json in recommended["value.converter"]
        assert json in recommended["key.converter"]
        assert "org.apache.kafka.connect.storage.SimpleHeaderConverter" in recommended["header.converter"]

    def test_keys_of_a_transform_see_each_other_by_their_own_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Louder(Recommender):
            def valid_values(self, name: str, parsed: Mapping[str, Any]) -> list[str]:
                return [f"{name} at {parsed['volume']}"]

        definition = ConfigDef(
            Key("volume", INT, 5, dependents=("echo", "missing")), Key("echo", STRING, "", recommender=Louder())
        )
        monkeypatch.setattr(Shout, "config", definition)
        found = source(transforms="s", **{"transforms.s.type": "Shout", "transforms.s.volume": "7"})
        echo, volume = entry(found, "transforms.s.echo"), entry(found, "transforms.s.volume")
        assert echo.value is not None
        assert echo.value.recommended_values == ["echo at 7"]
        assert volume.key is not None
        assert volume.key.dependents == ("transforms.s.echo", "transforms.s.missing")
        undefined = "transforms.s.missing"
        assert errors(found) == {undefined: [f"{undefined} is referred in the dependents, but not defined."]}
        assert found.error_count == 1


class TestUnavailable:
    """A plugin that is there, but misses something of its own."""

    @pytest.fixture(autouse=True)
    def without_a_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for cls in (Shout, Counting, Picky):
            monkeypatch.setattr(cls, "unavailable", classmethod(lambda cls: "pip install acme"))

    def test_where_a_connector_names_it(self) -> None:
        config = {"transforms": "s", "transforms.s.type": "Shout", "value.converter": "Counting"}
        assert errors(validate("FileStreamSource", file="f", topic="t", **config)) == {
            key: [f"Invalid value {name} for configuration {key}: pip install acme"]
            for key, name in (("value.converter", "Counting"), ("transforms.s.type", "Shout"))
        }

    def test_a_connector(self) -> None:
        with pytest.raises(BadRequest, match=r"^Invalid value Picky for configuration connector.class: pip install"):
            validate("Picky")


def test_the_message_of_a_refused_config_lists_all_that_is_wrong() -> None:
    infos = validate("FileStreamSource", errors_tolerance="x")
    assert failure_message(infos) == (
        "Connector configuration is invalid and contains the following 2 error(s):\n"
        "Invalid value x for configuration errors.tolerance: String must be one of: none, all\n"
        'Missing required configuration "topic" which has no default value.\n'
        "You can also find the above list of errors at the endpoint"
        " `/connector-plugins/{connectorType}/config/validate`"
    )


class TestSteps:
    """What only others can judge: a function must be there, and SQL is for the engine."""

    PLUGINS = Plugins([FileStreamSinkConnector, StringConverter, SimpleHeaderConverter, Python, Sql])
    OPEN = Validator(PLUGINS, WORKER, sandbox=Sandbox(mode="open"))
    SINK: ClassVar = {"name": "a", "connector.class": "FileStreamSink", "topics": "t", "transforms": "x"}

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("json.dumps", None),
            ("nowhere.enrich", "It cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
            ("json.enrich", "It cannot be imported: <module 'json' from"),
            ("json.decoder", "It must be the dotted name of a function, e.g. my_module.enrich"),
            ("enrich", "It must be the dotted name of a function, e.g. my_module.enrich"),
        ],
    )
    def test_a_function_is_looked_for(self, name: str, reason: str | None) -> None:
        key = "transforms.x.function"
        given = {**self.SINK, "transforms.x.type": "headgate.transforms.Python", key: name}
        found = errors(self.OPEN.validate(given))
        if reason is None:
            assert found == {}
        else:
            assert list(found) == [key]
            assert found[key][0].startswith(f"Invalid value {name} for configuration {key}: {reason}")

    def test_a_function_that_is_not_named_is_missing_and_no_more(self) -> None:
        given = {**self.SINK, "transforms.x.type": "headgate.transforms.Python"}
        missing = 'Missing required configuration "transforms.x.function" which has no default value.'
        assert errors(self.OPEN.validate(given)) == {"transforms.x.function": [missing]}

    def test_a_module_that_fails_is_named_with_its_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "half_written.py").write_text("def enrich(record)\n")
        monkeypatch.syspath_prepend(tmp_path)
        given = {**self.SINK, "transforms.x.type": "Python", "transforms.x.function": "half_written.enrich"}
        (said,) = errors(self.OPEN.validate(given))["transforms.x.function"]
        assert "It cannot be imported: SyntaxError: expected ':' (half_written.py, line 1)" in said

    def test_the_engine_is_asked_about_sql_and_what_is_wrong_without_it_is_said_once(self) -> None:
        def try_step(cls: type, settings: Mapping[str, str]) -> Mapping[str, str]:
            assert (cls, "type" in settings) == (Sql, True)
            return {"statement": "Syntax error (line 1, pos 7)"}

        validator = Validator(self.PLUGINS, WORKER, try_step=try_step)
        given = {**self.SINK, "transforms.x.type": "headgate.transforms.Sql"}
        key = "transforms.x.statement"
        found = errors(validator.validate({**given, key: "SELECT * FORM records"}))
        assert found == {
            key: [f"Invalid value SELECT * FORM records for configuration {key}: Syntax error (line 1, pos 7)"]
        }
        (said,) = errors(validator.validate({**given, key: "DROP TABLE records"}))[key]
        assert "Only a query is possible" in said
