from __future__ import annotations

import pytest
from test_validator import PLUGINS, WORKER, Counting, IsLoud, Shout

from headgate.api import Record, SourceConnector, Transform
from headgate.connectors.file_sink import FileStreamSinkConnector
from headgate.connectors.file_source import FileStreamSourceConnector
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.runtime.config.unknown_keys import told
from headgate.runtime.config.validation import UnknownKey
from headgate.runtime.config.validator import Validator
from headgate.runtime.plugins import Plugins


class Vague(SourceConnector):
    """Declares nothing, and may read anything."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []


class Loose(Transform[Record]):
    def apply(self, record: Record) -> Record | None:
        return record


VALIDATOR = Validator(
    Plugins(
        [
            FileStreamSourceConnector, FileStreamSinkConnector, Vague, Loose, Shout, IsLoud, Counting,
            SimpleHeaderConverter, *(each.cls for each in PLUGINS.all),
        ]
    ),
    WORKER,
)  # fmt: skip
SOURCE = {"name": "a", "connector.class": "FileStreamSource", "topic": "t"}
SINK = {"name": "a", "connector.class": "FileStreamSink", "topics": "t"}


def unknown(config: dict[str, str]) -> dict[str, str | None]:
    return {each.name: each.did_you_mean for each in VALIDATOR.validate(config).unknown_keys}


@pytest.mark.parametrize(
    ("key", "guess"),
    [
        ("task.max", "tasks.max"),
        ("topics", "topic"),
        ("batch-size", "batch.size"),
        ("files", "file"),
        ("connector.classes", "connector.class"),
        ("error.tolerance", "errors.tolerance"),
        ("value.convertor", "value.converter"),
        ("producer.overide.acks", "producer.override.acks"),
        ("consumers.override.max.poll.records", "consumer.override.max.poll.records"),
        ("topic.creation.group", "topic.creation.groups"),
        ("topic.creation.g.partitions", None),
        ("value.converter.schemas.enable", None),
        ("transforms.t.type", None),
        ("tasks.mxa", "tasks.max"),
        ("toipc", "topic"),
        ("fiel", "file"),
        ("nmae", "name"),
        ("zzz", None),
    ],
)
def test_a_key_that_nobody_declared(key: str, guess: str | None) -> None:
    assert unknown({**SOURCE, key: "x"}) == {key: guess}


@pytest.mark.parametrize(
    "config",
    [
        SOURCE,
        {**SOURCE, "file": "f", "batch.size": "1", "tasks.max": "1", "errors.tolerance": "all"},
        {**SOURCE, "producer.override.acks": "1", "consumer.override.x": "1", "admin.override.y": "1"},
        {**SOURCE, "topic.creation.groups": "g", "topic.creation.g.cleanup.policy": "compact"},
        {**SOURCE, "topic.creation.default.retention.ms": "1"},
        {**SOURCE, "value.converter": "Counting", "value.converter.base": "2"},
        {**SOURCE, "transforms": "t", "transforms.t.type": "Shout", "transforms.t.volume": "2"},
        {**SOURCE, "transforms": "t", "transforms.t.type": "Loose", "transforms.t.anything": "2"},
        {**SOURCE, "transforms": "t", "transforms.t.type": "Nobody", "transforms.t.anything": "2"},
        {**SOURCE, "predicates": "p", "predicates.p.type": "IsLoud", "predicates.p.from": "2"},
        {**SINK, "file": "f", "topics": "t"},
    ],
    ids=lambda config: list(config)[-1],
)
def test_keys_that_somebody_declared_or_may_read(config: dict[str, str]) -> None:
    assert unknown(config) == {}


@pytest.mark.parametrize(
    ("config", "key", "guess"),
    [
        ({"value.converter": "Counting"}, "value.converter.bases", "value.converter.base"),
        ({"transforms": "t", "transforms.t.type": "Shout"}, "transforms.t.volumes", "transforms.t.volume"),
        ({"transforms": "t", "transforms.t.type": "Shout"}, "transforms.u.volume", "transforms.t.volume"),
        (
            {"predicates": "p", "predicates.p.type": "IsLoud", "predicates.p.from": "1"},
            "predicates.p.form",
            "predicates.p.from",
        ),
    ],
)
def test_plugins_within_are_looked_at_too(config: dict[str, str], key: str, guess: str) -> None:
    assert unknown({**SOURCE, **config, key: "x"}) == {key: guess}


def test_a_connector_that_declares_nothing_may_mean_anything_but_a_slip() -> None:
    config = {"name": "a", "connector.class": "Vague", "whatever": "x", "task.max": "1"}
    assert unknown(config) == {"task.max": "tasks.max"}


def test_topic_creation_is_for_sources() -> None:
    assert unknown({**SINK, "topic.creation.default.partitions": "1"}) == {"topic.creation.default.partitions": None}


def test_it_is_no_error() -> None:
    infos = VALIDATOR.validate({**SOURCE, "task.max": "x"})
    assert infos.error_count == 0
    assert "task.max" not in {info.value.name for info in infos.configs if info.value}


def test_as_the_log_tells_it() -> None:
    assert told([UnknownKey("a", "b"), UnknownKey("c")]) == "a (did you mean b?), c"
