from __future__ import annotations

import pytest

from headgate.api import ConfigError
from headgate.model import TopicGroup
from headgate.runtime.config.topic_creation import topic_groups

DEFAULT = {"topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "2"}


@pytest.mark.parametrize("config", [{}, {"topic": "x", "topics.creation": "y"}])
def test_without_its_keys_there_is_none(config: dict[str, str]) -> None:
    assert topic_groups(config) == ()


def test_the_default_group() -> None:
    config = {**DEFAULT, "topic.creation.default.cleanup.policy": "compact", "topic.creation.default.include": "("}
    assert topic_groups(config) == (TopicGroup("default", ".*", "", 1, 2, {"cleanup.policy": "compact"}),)


def test_groups_in_their_order_take_what_they_do_not_say_from_the_default() -> None:
    config = {
        **DEFAULT,
        "topic.creation.default.retention.ms": "7",
        "topic.creation.groups": "b, a",
        "topic.creation.a.include": r"x, y\p{Alpha}+",
        "topic.creation.a.exclude": "yes",
        "topic.creation.a.partitions": "-1",
        "topic.creation.b.replication.factor": "-1",
        "topic.creation.b.compression.type": "lz4",
        "topic.creation.unlisted.include": "(",
    }
    assert topic_groups(config) == (
        TopicGroup("b", "", "", -1, 2, {"compression.type": "lz4"}),
        TopicGroup("a", "x|y[a-zA-Z]+", "yes", 1, -1, {}),
        TopicGroup("default", ".*", "", 1, 2, {"retention.ms": "7"}),
    )


def test_the_default_group_need_not_be_listed(caplog: pytest.LogCaptureFixture) -> None:
    (only,) = topic_groups({**DEFAULT, "topic.creation.groups": "default"})
    assert only.name == "default"
    assert "names the group 'default'" in caplog.text


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("default.replication.factor", None, "Missing required configuration"),
        ("default.partitions", None, "Missing required configuration"),
        ("default.replication.factor", "0", "Replication factor must be positive and not larger than the number of"),
        ("default.replication.factor", "-2", "or -1 to use the broker's default"),
        ("default.replication.factor", "40000", "Not a number of type SHORT"),
        ("default.partitions", "0", "Number of partitions must be positive, or -1 to use the broker's default"),
        ("default.partitions", "many", "Not a number of type INT"),
        ("g.partitions", "0", "Number of partitions must be positive"),
        ("g.include", "a,(", "Invalid regex: "),
        ("g.exclude", "(", "Invalid regex: "),
    ],
)
def test_what_is_wrong(key: str, value: str | None, message: str) -> None:
    config = {**DEFAULT, "topic.creation.groups": "g", f"topic.creation.{key}": value}
    with pytest.raises(ConfigError, match=message) as caught:
        topic_groups({name: text for name, text in config.items() if text is not None})
    assert f"topic.creation.{key}" in str(caught.value)
