"""A cluster as Mirror sees it, and makes room on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.api import ConnectError
from headgate.connectors.mirror.cluster import Cluster, Unreachable
from headgate.dev.broker import Broker


@pytest.fixture
def cluster(broker: Broker) -> Cluster:
    return Cluster({"bootstrap.servers": broker.bootstrap})


@pytest.mark.broker
def test_topics_are_made_and_grow(
    cluster: Cluster, unique: Callable[[str], str], eventually: Callable[..., None]
) -> None:
    first, second = unique("first"), unique("second")
    cluster.create({first: 2})
    cluster.create({first: 5, second: 1})  # the one that is there stays as it is
    eventually(lambda: {first, second} <= cluster.look(10).topics.keys())
    known = cluster.look(10)
    assert (known.topics[first], known.topics[second], bool(known.id)) == (2, 1, True)
    cluster.grow({first: 3, second: 2})
    cluster.grow({first: 3})
    eventually(lambda: [cluster.look(10).topics[each] for each in (first, second)] == [3, 2])


@pytest.mark.broker
def test_a_topic_that_cannot_be_made_is_told_with_what_to_do(cluster: Cluster) -> None:
    with pytest.raises(
        ConnectError, match=r"^Topic no topic cannot be created on Cluster .* set create\.topics to false$"
    ):
        cluster.create({"no topic": 1})
    with pytest.raises(ConnectError, match=r"^Topic there-is-none cannot be given more partitions on Cluster "):
        cluster.grow({"there-is-none": 2})


@pytest.mark.process
def test_a_cluster_that_is_away_may_be_there_later() -> None:
    with pytest.raises(Unreachable, match=r"^Cluster 127\.0\.0\.1:1 does not answer: "):
        Cluster({"bootstrap.servers": "127.0.0.1:1"}).look(0.5)
