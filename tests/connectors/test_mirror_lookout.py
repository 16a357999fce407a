"""What Mirror sees of clusters, and what it tells of it; the clusters are plain values here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from headgate.api import ConfigError, ConnectError, TopicPartition
from headgate.connectors.mirror.cluster import Known, Unreachable
from headgate.connectors.mirror.config import MirrorConfig
from headgate.connectors.mirror.lookout import Lookout

ELSEWHERE = {"source.bootstrap.servers": "far:9092"}


class Paper:
    """A cluster on paper."""

    def __init__(self, id: str, **topics: int) -> None:
        self.id, self.topics, self.away, self.looks = id, topics, False, 0
        self.refusal: ConnectError | None = None

    def look(self, seconds: float) -> Known:
        self.looks += 1
        if self.away:
            raise Unreachable("nobody there")
        return Known(self.id, dict(self.topics))

    def create(self, topics: Mapping[str, int]) -> None:
        if self.refusal:
            raise self.refusal
        self.topics |= topics

    grow = create


class Desk:
    def __init__(self) -> None:
        self.changes = 0
        self.errors: list[Exception] = []

    def changed(self) -> None:
        self.changes += 1


Watch = Callable[..., tuple[Lookout, Desk]]


@pytest.fixture
def watch() -> Iterator[Watch]:
    started: list[Lookout] = []

    def start(source: Paper, target: Paper | None = None, **config: str) -> tuple[Lookout, Desk]:
        given = {key.replace("_", "."): value for key, value in config.items()}
        parsed = MirrorConfig.of({"refresh.interval.ms": "100", **({} if source is target else ELSEWHERE), **given})
        desk, clusters = Desk(), (source, target)
        made: Any = Lookout(parsed, *clusters, desk.changed, desk.errors.append)  # type: ignore[arg-type]
        started.append(made)
        made.start()
        return made, desk

    yield start
    for each in started:
        each.stop(5)


def places(**topics: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for topic, count in topics.items() for number in range(count))


def test_partitions_are_found_and_there_is_room_for_them(watch: Watch) -> None:
    source, target = Paper("east", orders=2, other=1), Paper("west")
    lookout, desk = watch(source, target, topics="orders")
    sight = lookout.take(5)
    assert sight is not None
    assert (sight.partitions, sight.one_cluster) == (places(orders=2), False)
    assert target.topics == {"orders": 2}
    assert desk.changes == 0


def test_what_is_new_is_told_once(watch: Watch, eventually: Callable[..., None]) -> None:
    source, target = Paper("east", a1=1), Paper("west")
    lookout, desk = watch(source, target, topics_regex="a.*")
    lookout.take(5)
    source.topics |= {"a1": 3, "a2": 1}
    eventually(lambda: desk.changes)
    sight = lookout.take(0)
    assert sight is not None
    assert sight.partitions == places(a1=3, a2=1)
    assert target.topics == {"a1": 3, "a2": 1}
    changes, looks = desk.changes, source.looks
    eventually(lambda: source.looks > looks + 2)
    assert desk.changes == changes


def test_a_topic_that_goes_is_told_too(watch: Watch, eventually: Callable[..., None]) -> None:
    source = Paper("east", a=1, b=1)
    lookout, desk = watch(source, Paper("west"), topics="a,b")
    lookout.take(5)
    del source.topics["a"]
    eventually(lambda: desk.changes)
    sight = lookout.take(0)
    assert sight is not None
    assert sight.partitions == places(b=1)


def test_existing_topics_are_left_alone_but_for_partitions_that_they_lack(watch: Watch) -> None:
    source, target = Paper("east", wide=2, narrow=4), Paper("west", wide=8, narrow=1)
    watch(source, target, topics="wide,narrow")[0].take(5)
    assert target.topics == {"wide": 8, "narrow": 4}


def test_by_key_any_number_of_partitions_will_do(watch: Watch) -> None:
    source, target = Paper("east", a=4), Paper("west", a=1)
    watch(source, target, topics="a", partition_policy="by-key")[0].take(5)
    assert target.topics == {"a": 1}


def test_topics_that_share_a_copy_have_room_for_the_largest(watch: Watch) -> None:
    source, target = Paper("east", a=4, b=2), Paper("west")
    watch(source, target, topics="a,b", topic_format="all")[0].take(5)
    assert target.topics == {"all": 4}


def test_nothing_is_created_where_that_is_not_wanted(watch: Watch) -> None:
    source, target = Paper("east", a=4), Paper("west")
    watch(source, target, topics="a", create_topics="false")[0].take(5)
    assert target.topics == {}


def test_a_refused_topic_is_a_failure_of_the_connector(watch: Watch) -> None:
    source, target = Paper("east", a=4), Paper("west")
    target.refusal = ConnectError("not allowed")
    lookout, desk = watch(source, target, topics="a")
    with pytest.raises(ConnectError, match="not allowed"):
        lookout.take(5)
    assert desk.errors == [target.refusal]


def test_a_cluster_that_is_away_is_waited_for_and_complained_about_once(
    watch: Watch, eventually: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    source = Paper("east", a=1)
    source.away = True
    lookout, desk = watch(source, Paper("west"), topics="a")
    assert lookout.take(0) is None
    eventually(lambda: source.looks > 3)
    source.away = False
    eventually(lambda: desk.changes)
    sight = lookout.take(0)
    assert sight is not None
    assert sight.partitions == places(a=1)
    told = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(told) == 1


def test_what_was_seen_counts_while_the_cluster_is_away(watch: Watch, eventually: Callable[..., None]) -> None:
    source = Paper("east", a=1)
    lookout, desk = watch(source, Paper("west"), topics="a")
    lookout.take(5)
    source.away, looks = True, source.looks
    eventually(lambda: source.looks > looks + 2)
    sight = lookout.take(0)
    assert sight is not None
    assert (sight.partitions, desk.changes) == (places(a=1), 0)


# --- one cluster ------------------------------------------------------------------------------------------------------


def test_within_one_cluster_copies_are_not_copied_again(watch: Watch, eventually: Callable[..., None]) -> None:
    cluster = Paper("here", a=1, b=2)
    lookout, desk = watch(cluster, cluster, topics_regex=".*")
    sight = lookout.take(5)
    assert sight is not None
    assert (sight.partitions, sight.one_cluster) == (places(a=1, b=2), True)
    looks = cluster.looks
    eventually(lambda: cluster.looks > looks + 4)
    assert cluster.topics == {"a": 1, "b": 2, "source.a": 1, "source.b": 2}
    assert desk.changes == 0


def test_a_cluster_that_was_named_and_is_the_same_is_recognised(watch: Watch) -> None:
    sight = watch(Paper("here", a=1), Paper("here"), topics="a", topic_format="b")[0].take(5)
    assert sight is not None
    assert sight.one_cluster


@pytest.mark.parametrize("chosen", [{"topics": "a"}, {"topics_regex": "a"}])
def test_a_topic_that_turns_out_to_be_copied_onto_itself_is_a_failure(watch: Watch, chosen: dict[str, str]) -> None:
    lookout, desk = watch(Paper("here", a=1), Paper("here", a=1), **chosen)
    with pytest.raises(ConfigError, match="Topic a would be copied onto itself"):
        lookout.take(5)
    assert len(desk.errors) == 1


def test_a_name_that_is_too_long_is_told(watch: Watch) -> None:
    source = Paper("east", **{"x" * 249: 1})
    with pytest.raises(ConnectError, match="too long"):
        watch(source, Paper("west"), topics_regex=".*", topic_format="a.${topic}")[0].take(5)
