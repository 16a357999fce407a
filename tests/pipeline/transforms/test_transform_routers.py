"""RegexRouter, TimestampRouter and Filter, and the regular expressions of Java."""

from __future__ import annotations

import re

import pytest
from transform_support import apply, configured, sink, source

from headgate.api import ConfigError, DataError
from headgate.pipeline.transforms.filter import Filter
from headgate.pipeline.transforms.regex_router import RegexRouter
from headgate.pipeline.transforms.timestamp_router import TimestampRouter


@pytest.mark.parametrize(
    ("regex", "replacement", "topic"),
    [
        ("topic-(.*)", "x-$1", "x-1"),
        ("topic", "x", "topic-1"),
        ("(?<n>t).*", "${n}y", "ty"),
        (".*", r"a\$b\\c", r"a$b\c"),
        ("(t).*", "$12", "t2"),
        ("(t)(o)(p)(i)(c)(-)(.)", "$7$10", "1t0"),
        ("(t)?(z)?.*", "[$2]", "[]"),
        (".*", "", ""),
        (".*", "$0$0", "topic-1topic-1"),
        # The whole topic matches, but the first match that is replaced is the shortest.
        ("topic-(.*?)", "x-$1", "x-1"),
        ("t|topic-1", "x", "xopic-1"),
        (r"\p{Alpha}+-\d", "x", "x"),
        (r"topic-1\z", "x", "x"),
        ("(?i)TOPIC-1", "x", "x"),
        ("t++.*", "x", "x"),
        (r"\Qtopic-1\E", "x", "x"),
        (r"\Qtopic-1", "x", "x"),
        ("^topic-1$", "x", "x"),
        (r"\p{L}+-[\p{Nd}_]", "x", "x"),
        (r"\P{Digit}+\pN", "x", "x"),
        (r"(?<one>t)opic-1|(?<two>\k<one>)", "${one}", "t"),
        ("[^x&|~]+", "x", "x"),
        (r"topic-1\Z", "x", "x"),
    ],
)
def test_regex_router(regex: str, replacement: str, topic: str) -> None:
    record = sink("v", headers=())
    changed = apply(RegexRouter, {"regex": regex, "replacement": replacement}, record)
    assert changed.topic == topic
    assert changed == record.replace(topic=topic)


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        ("$1", "No group 1"),
        ("a$", "Illegal group reference: group index is missing"),
        ("${zz}", "No group with name {zz}"),
        ("a\\", "character to be escaped is missing"),
    ],
)
def test_a_wrong_replacement_fails_the_records_that_match(replacement: str, message: str) -> None:
    router = configured(RegexRouter, {"regex": "topic-1", "replacement": replacement})
    with pytest.raises(DataError) as error:
        router.apply(sink("v"))
    assert str(error.value) == message
    unchanged = router.apply(sink("v", topic="other"))
    assert unchanged is not None
    assert unchanged.topic == "other"


@pytest.mark.parametrize(
    ("config", "start"),
    [
        ({"regex": "[", "replacement": "x"}, "Invalid value [ for configuration regex: Invalid regex: "),
        ({"regex": r"\p{Zz}", "replacement": "x"}, r"Invalid value \p{Zz} for configuration regex: Invalid regex: "),
        ({"regex": "x"}, 'Missing required configuration "replacement" which has no default value.'),
        ({"replacement": "x"}, 'Missing required configuration "regex" which has no default value.'),
    ],
)
def test_regex_router_config(config: dict[str, str], start: str) -> None:
    with pytest.raises(ConfigError, match=r"^" + re.escape(start)):
        configured(RegexRouter, config)


@pytest.mark.parametrize(
    ("config", "topic"),
    [
        ({}, "topic-1-20231114"),
        (
            {"topic.format": "x${timestamp}y${topic}z${timestamp}", "timestamp.format": "yyyy-MM"},
            "x2023-11ytopic-1z2023-11",
        ),
        ({"topic.format": "const"}, "const"),
        ({"timestamp.format": "HHmmss.SSS"}, "topic-1-221320.123"),
        ({"timestamp.format": "yyyyMMdd-HH"}, "topic-1-20231114-22"),
    ],
)
def test_timestamp_router(config: dict[str, str], topic: str) -> None:
    record = sink("v")
    assert apply(TimestampRouter, config, record) == record.replace(topic=topic)


@pytest.mark.parametrize("pattern", ["yyyyMMdd", "yyyyMMddHH", "HHmm", "HHmmss", "SSS", "a", "'x'"])
def test_topics_are_remembered_no_longer_than_they_hold(pattern: str) -> None:
    config = {"timestamp.format": pattern, "topic.format": "${timestamp}"}
    router = configured(TimestampRouter, config)
    for ms in (0, 1, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 43_200_000, 86_399_999, 86_400_000, -1):
        routed = router.apply(sink(timestamp=ms))
        assert routed is not None
        assert routed.topic == apply(TimestampRouter, config, sink(timestamp=ms)).topic


def test_timestamp_router_without_timestamp() -> None:
    with pytest.raises(
        DataError, match=r"^Timestamp missing on record: \{topic='topic-1', kafkaPartition=null, key=nu"
    ):
        apply(TimestampRouter, {}, source("v"))


def test_timestamp_router_with_a_wrong_pattern() -> None:
    with pytest.raises(ConfigError) as error:
        configured(TimestampRouter, {"timestamp.format": "bogus"})
    assert str(error.value) == ("Invalid value bogus for configuration timestamp.format: Illegal pattern character 'b'")


def test_filter_drops_all() -> None:
    assert apply(Filter, {}, sink("v")) is None
