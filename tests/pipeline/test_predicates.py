"""HasHeaderKey, RecordIsTombstone and TopicNameMatches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headgate.api import ConfigError, Header, Predicate, Record
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches


def configured(cls: type[Predicate[Any]], config: Mapping[str, str]) -> Predicate[Any]:
    made = cls()
    made.configure(config)
    return made


@pytest.mark.parametrize(
    ("names", "expected"), [((), False), (("a",), False), (("a", "h", "h"), True), (("H",), False)]
)
def test_has_header_key(names: tuple[str, ...], expected: bool) -> None:
    record = Record(topic="t", headers=tuple(Header(name, None) for name in names))
    assert configured(HasHeaderKey, {"name": "h"}).test(record) is expected


@pytest.mark.parametrize(("value", "expected"), [(None, True), ("", False), (0, False), ({}, False), (b"", False)])
def test_record_is_tombstone(value: Any, expected: bool) -> None:
    assert configured(RecordIsTombstone, {}).test(Record(topic="t", value=value, key="k")) is expected


@pytest.mark.parametrize(
    ("pattern", "topic", "expected"),
    [
        ("orders", "orders", True),
        ("orders", "orders-1", False),
        ("order", "reorder", False),
        (r"orders-\d+", "orders-12", True),
        ("(?<n>a)b", "ab", True),
        (".*", None, False),
    ],
)
def test_topic_name_matches(pattern: str, topic: Any, expected: bool) -> None:
    assert configured(TopicNameMatches, {"pattern": pattern}).test(Record(topic=topic)) is expected


@pytest.mark.parametrize(
    ("cls", "config", "message"),
    [
        (HasHeaderKey, {}, 'Missing required configuration "name" which has no default value.'),
        (HasHeaderKey, {"name": ""}, "Invalid value  for configuration name: String must be non-empty"),
        (TopicNameMatches, {}, 'Missing required configuration "pattern" which has no default value.'),
        (TopicNameMatches, {"pattern": ""}, "Invalid value  for configuration pattern: String must be non-empty"),
        (
            TopicNameMatches,
            {"pattern": "["},
            "Invalid value [ for configuration pattern: Invalid regex: unterminated character set",
        ),
    ],
)
def test_wrong_config(cls: type[Predicate[Any]], config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(cls, config)
    assert str(error.value) == message
