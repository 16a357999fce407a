"""Mirror's keys: names of topics, which topics, where to begin, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headgate.api import ConfigError, ConnectError, ExactlyOnceSupport, TopicPartition
from headgate.connectors import Mirror
from headgate.connectors.mirror.config import MirrorConfig
from headgate.connectors.mirror.naming import Naming
from headgate.connectors.mirror.offset_policy import Begin, OffsetPolicy
from headgate.connectors.mirror.positions import dealt, position, read, written
from headgate.connectors.mirror.selection import Selection

ELSEWHERE = {"source.bootstrap.servers": "far:9092"}


def errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in Mirror().validate(config) if value.errors}


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("${topic}", "orders"),
        ("${source}.${topic}", "east.orders"),
        ("copy-of-${topic}", "copy-of-orders"),
        ("everything", "everything"),
    ],
)
def test_topics_are_called_by_the_format(shape: str, name: str) -> None:
    naming = Naming(shape, "east")
    assert naming.name("orders") == name
    assert naming.makes(name)
    assert naming.keeps("orders") is (name == "orders")


def test_what_a_format_makes_is_known_by_its_name() -> None:
    naming = Naming("${source}.${topic}", "east")
    assert not naming.makes("orders")
    assert not naming.makes("east.")
    assert not naming.makes("eastXorders")
    assert Naming("${topic}-${topic}", "east").makes("a-a")
    assert not Naming("${topic}-${topic}", "east").makes("a-b")


def test_another_cluster_keeps_the_names_and_the_same_cluster_has_the_alias_before_them() -> None:
    assert MirrorConfig.of({"topics": "a", **ELSEWHERE}).naming.name("a") == "a"
    assert MirrorConfig.of({"topics": "a"}).naming.name("a") == "source.a"


@pytest.mark.parametrize("shape", ["", ".", "${other}", "a b", "a/${topic}", "${topic"])
def test_a_format_that_can_make_no_topic_is_refused(shape: str) -> None:
    assert "topic.format" in errors({"topics": "a", "topic.format": shape})


@pytest.mark.parametrize(
    "config",
    [
        {"topics": "a", "topic.format": "${topic}"},
        {"topics": "a,b", "topic.format": "b"},
        {"topics.regex": ".*", "topic.format": "${topic}"},
    ],
)
def test_no_topic_is_copied_onto_itself(config: dict[str, str]) -> None:
    (told,) = errors(config)["topic.format"]
    assert "would be copied onto itself: the cluster that is read is the one that records go to" in told
    with pytest.raises(ConfigError, match="onto itself"):
        MirrorConfig.of(config)
    assert errors({**config, **ELSEWHERE}) == {}
    if "topics" in config:
        assert errors({**config, "topics.exclude": config["topics"].split(",")[-1]}) == {}


# --- which topics -----------------------------------------------------------------------------------------------------


def test_topics_by_name_or_by_pattern_without_those_that_are_excluded() -> None:
    known = ["__consumer_offsets", "a", "ab", "b", "c"]
    assert Selection(("a", "c", "zz")).of(known) == ["a", "c"]
    assert Selection(("a", "c", "zz")).missing(known) == ["zz"]
    assert Selection(pattern="a.*|b").of(known) == ["a", "ab", "b"]
    assert Selection(pattern=r"\p{Alpha}", exclude=("(?<x>a)",)).of(known) == ["b", "c"]
    assert Selection(pattern=".*", exclude=("a.", "c")).of(known) == ["a", "b"]
    assert Selection(("__consumer_offsets",)).of(known) == ["__consumer_offsets"]


def test_one_of_topics_and_pattern_is_needed() -> None:
    assert list(errors({})) == ["topics"]
    assert list(errors({"topics": "a", "topics.regex": "b"})) == ["topics"]
    assert list(errors({"topics.regex": "("})) == ["topics.regex"]
    assert list(errors({"topics": "a", "topics.exclude": "a,("})) == ["topics.exclude"]


# --- where to begin ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", OffsetPolicy(Begin.EARLIEST)),
        ("latest", OffsetPolicy(Begin.LATEST)),
        ("committed", OffsetPolicy(Begin.COMMITTED)),
        ("timestamp:1714979289000", OffsetPolicy(Begin.TIMESTAMP, 1714979289000)),
        ("timestamp:2024-05-06T07:08:09Z", OffsetPolicy(Begin.TIMESTAMP, 1714979289000)),
        ("timestamp:2024-05-06T09:08:09.000+02:00", OffsetPolicy(Begin.TIMESTAMP, 1714979289000)),
    ],
)
def test_policies(text: str, policy: OffsetPolicy) -> None:
    assert MirrorConfig.of({"topics": "a", "offset.policy": text}).offset_policy == policy
    assert OffsetPolicy.parse(str(policy)) == policy


@pytest.mark.parametrize(
    "text", ["", "timestamp", "timestamp:", "timestamp:yesterday", "timestamp:2024-05-06T07:08:09", "timestamp:-1"]
)
def test_other_policies_are_refused(text: str) -> None:
    assert list(errors({"topics": "a", "offset.policy": text})) == ["offset.policy"]


@pytest.mark.parametrize(
    ("text", "wanted", "at"),
    [
        ("earliest", None, 10),
        ("latest", None, 20),
        ("committed", 15, 15),
        ("committed", None, 10),
        ("committed", 5, 10),
        ("committed", 25, 20),
        ("timestamp:1", 15, 15),
        ("timestamp:1", None, 20),
    ],
)
def test_where_a_partition_with_offsets_10_to_19_is_begun(text: str, wanted: int | None, at: int) -> None:
    assert OffsetPolicy.parse(text).start(wanted, 10, 20) == at


# --- partitions among tasks -------------------------------------------------------------------------------------------

A, B = (tuple(TopicPartition(topic, number) for number in range(3)) for topic in "ab")


def test_partitions_are_dealt_out_in_turn() -> None:
    assert dealt([*B, *A], 2) == [[A[0], A[2], B[1]], [A[1], B[0], B[2]]]
    assert dealt(reversed([*B, *A]), 2) == dealt([*A, *B], 2)
    assert dealt(A, 10) == [[A[0]], [A[1]], [A[2]]]
    assert dealt([], 3) == []


def test_what_a_task_gets_is_text() -> None:
    (first, second) = dealt([*A, *B], 2)
    assert written(first) == '{"a":[0,2],"b":[1]}'
    assert read(written(second)) == second


# --- offsets ----------------------------------------------------------------------------------------------------------

PLACE = {"cluster": "source", "topic": "a", "partition": 0}


def test_offsets_in_the_form_of_mirrormaker_may_be_altered_and_anything_may_be_reset() -> None:
    assert Mirror().alter_offsets({"topics": "a"}, [(PLACE, {"offset": 7}), ({"what": "ever"}, None)]) is True


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        (None, {"offset": 1}, "this one is null"),
        ({"topic": "a", "partition": 0}, {"offset": 1}, "this one has topic, partition"),
        ({**PLACE, "more": 1}, {"offset": 1}, "no others"),
        ({**PLACE, "cluster": "west"}, {"offset": 1}, "reads the cluster 'source' .*, not 'west'"),
        ({**PLACE, "topic": ""}, {"offset": 1}, "topic of a partition"),
        ({**PLACE, "partition": "0"}, {"offset": 1}, "number of a partition"),
        ({**PLACE, "partition": -1}, {"offset": 1}, "number of a partition"),
        (PLACE, {}, "this one has none"),
        (PLACE, {"position": 1}, "this one has position"),
        (PLACE, {"offset": -1}, "0 or more, not -1"),
        (PLACE, {"offset": 1.5}, "whole number"),
        (PLACE, {"offset": True}, "whole number"),
    ],
)
def test_other_offsets_are_refused_with_what_is_wrong(
    partition: dict[str, object] | None, offset: dict[str, object], told: str
) -> None:
    with pytest.raises(ConnectError, match=told):
        Mirror().alter_offsets({"topics": "a"}, [(partition, offset)])  # type: ignore[list-item]


def test_a_stored_offset_that_is_none_is_told() -> None:
    assert position(A[0], None) is None
    assert position(A[0], {"offset": 3}) == 3
    with pytest.raises(ConnectError, match="stored offset of a-0"):
        position(A[0], {"offset": "3"})


# --- clients of the cluster that is read ------------------------------------------------------------------------------


def test_settings_below_source_are_those_of_its_clients() -> None:
    config = {"topics": "a", "source.security.protocol": "SSL", "source.alias": "east"}
    target = {"bootstrap.servers": "near:9092", "sasl.mechanism": "PLAIN"}
    assert MirrorConfig.of(config).clients(target) == {**target, "security.protocol": "SSL"}
    assert MirrorConfig.of({**config, **ELSEWHERE}).clients(target) == {
        "bootstrap.servers": "far:9092",
        "security.protocol": "SSL",
    }


def test_settings_below_source_are_checked_and_secrets_are_hidden() -> None:
    config = {
        "topics": "a",
        "source.fetch.max.bytes": "many",
        "source.group.id": "g",
        "source.ssl.key.password": "geheim",
    }
    found = {value.name: value for value in Mirror().validate(config)}
    assert "fetch.max.bytes must be a whole number" in found["source.fetch.max.bytes"].errors[0]
    assert "set group" in found["source.group.id"].errors[0]
    assert found["source.ssl.key.password"].value == "[hidden]"


def test_it_can_be_relied_on_for_exactly_once() -> None:
    assert Mirror().exactly_once_support({"topics": "a"}) is ExactlyOnceSupport.SUPPORTED


def test_json_is_read_by_the_executors() -> None:
    assert Mirror.leading_transforms({"topics": "a"}) == []
    assert Mirror.leading_transforms({"value.format": "json"}) == [("headgate.transforms.FromJson$Value", {})]
    assert len(Mirror.leading_transforms({"value.format": "json", "key.format": "json"})) == 2
