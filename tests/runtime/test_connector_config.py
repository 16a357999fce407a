from __future__ import annotations

import pytest

from headgate.api import ConfigError
from headgate.model import ConnectorType
from headgate.runtime.config.connector_config import (
    ConnectorConfig,
    aliases,
    definition,
    predicate_keys,
    transform_keys,
    with_prefix,
)

COMMON: dict[str, object] = {  # key: (type, default, importance, group, order), as in the contract
    "name": ("STRING", "required", "HIGH", "Common", 1),
    "connector.class": ("STRING", "required", "HIGH", "Common", 2),
    "connector.plugin.version": ("STRING", None, "MEDIUM", "Common", 3),
    "tasks.max": ("INT", 1, "HIGH", "Common", 4),
    "tasks.max.enforce": ("BOOLEAN", True, "LOW", "Common", 5),
    "key.converter": ("CLASS", None, "LOW", "Common", 6),
    "key.converter.plugin.version": ("STRING", None, "LOW", "Common", 7),
    "value.converter": ("CLASS", None, "LOW", "Common", 8),
    "value.converter.plugin.version": ("STRING", None, "LOW", "Common", 9),
    "header.converter": ("CLASS", None, "LOW", "Common", 10),
    "header.converter.plugin.version": ("STRING", None, "LOW", "Common", 11),
    "transforms": ("LIST", [], "LOW", "Transforms", 12),
    "predicates": ("LIST", [], "LOW", "Predicates", 13),
    "config.action.reload": ("STRING", "restart", "LOW", "Common", 14),
    "errors.retry.timeout": ("LONG", 0, "MEDIUM", "Error Handling", 1),
    "errors.retry.delay.max.ms": ("LONG", 60000, "MEDIUM", "Error Handling", 2),
    "errors.tolerance": ("STRING", "none", "MEDIUM", "Error Handling", 3),
    "errors.log.enable": ("BOOLEAN", False, "MEDIUM", "Error Handling", 4),
    "errors.log.include.messages": ("BOOLEAN", False, "MEDIUM", "Error Handling", 5),
}
DEAD_LETTERS: dict[str, object] = {
    "errors.deadletterqueue.topic.name": ("STRING", "", "MEDIUM", "Error Handling", 6),
    "errors.deadletterqueue.topic.replication.factor": ("SHORT", 3, "MEDIUM", "Error Handling", 7),
    "errors.deadletterqueue.context.headers.enable": ("BOOLEAN", False, "MEDIUM", "Error Handling", 8),
}
SOURCE: dict[str, object] = {
    **DEAD_LETTERS,
    "topic.creation.groups": ("LIST", [], "LOW", "Topic Creation", 1),
    "exactly.once.support": ("STRING", "requested", "MEDIUM", "Exactly Once Support", 2),
    "transaction.boundary": ("STRING", "poll", "MEDIUM", "Exactly Once Support", 3),
    "transaction.boundary.interval.ms": ("LONG", None, "LOW", "Exactly Once Support", 4),
    "offsets.storage.topic": ("STRING", None, "LOW", "offsets.topic", 1),
}
SINK: dict[str, object] = {
    "topics": ("LIST", [], "HIGH", "Common", 4),
    "topics.regex": ("STRING", "", "HIGH", "Common", 4),
    **DEAD_LETTERS,
}


@pytest.mark.parametrize(("kind", "own"), [(ConnectorType.SOURCE, SOURCE), (ConnectorType.SINK, SINK)])
def test_the_keys_of_every_connector(kind: ConnectorType, own: dict[str, object]) -> None:
    declared = {
        key.name: (
            key.type.value, "required" if key.required else key.default, key.importance.value, key.group, key.order
        )
        for key in definition(kind)
    }  # fmt: skip
    assert declared == {**COMMON, **own}
    assert list(declared) == [*COMMON, *own]
    assert all(key.doc and key.display_name for key in definition(kind))


def test_the_keys_of_a_transform_and_a_predicate() -> None:
    transform = transform_keys("t")
    assert [(key.name, key.required, key.group) for key in transform] == [
        ("transforms.t.type", True, "Transforms: t"),
        ("transforms.t.plugin.version", False, "Transforms: t"),
        ("transforms.t.predicate", False, "Transforms: t"),
        ("transforms.t.negate", False, "Transforms: t"),
    ]
    assert [(key.name, key.required, key.group) for key in predicate_keys("p")] == [
        ("predicates.p.type", True, "Predicates: p"),
        ("predicates.p.plugin.version", False, "Predicates: p"),
    ]


@pytest.mark.parametrize(
    ("text", "found"), [(None, []), ("", []), (" a , b,, a ", ["a", "b"]), ("a", ["a"]), (" , ", [])]
)
def test_aliases_are_listed_once_and_in_order(text: str | None, found: list[str]) -> None:
    assert aliases({"transforms": text}, "transforms") == found
    assert aliases({}, "transforms") == []


def test_keys_below_a_prefix() -> None:
    assert with_prefix({"a.x": "1", "a.": "2", "a": "3", "b.x": "4"}, "a.") == {"x": "1", "": "2"}


class TestWhatTheRuntimeReads:
    def test_defaults(self) -> None:
        raw = {"name": " a ", "connector.class": "X", "anything": "else"}
        config = ConnectorConfig.parse(raw)
        assert (config.connector_class, config.tasks_max, config.tasks_max_enforce) == ("X", 1, True)
        assert config.task_limit == 1

    @pytest.mark.parametrize(("enforce", "limit"), [("true", 4), ("false", -1), ("FALSE", -1)])
    def test_the_limit_counts_unless_it_is_switched_off(self, enforce: str, limit: int) -> None:
        raw = {"name": "a", "connector.class": "X", "tasks.max": " 4 ", "tasks.max.enforce": enforce}
        assert ConnectorConfig.parse(raw).task_limit == limit

    def test_a_wrong_value_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="Value must be at least 1"):
            ConnectorConfig.parse({"name": "a", "connector.class": "X", "tasks.max": "0"})
