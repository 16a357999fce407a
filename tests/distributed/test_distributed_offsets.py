"""KIP-875 on a cluster: offsets read on any worker, altered and reset by the leader whoever is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Worker, await_, lines, sink_config, source_config
from topic_reader import create_topic, read_topic

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

NOT_STOPPED = "Connectors must be in the STOPPED state before their offsets can be modified."
ALTERED = {"message": "The offsets for this connector have been altered successfully"}
RESET = {"message": "The offsets for this connector have been reset successfully"}


@pytest.fixture
def pair(three: Cluster, name: str, topic: str, tmp_path: Path) -> tuple[str, str]:
    """A source and a sink that have taken three lines from in.txt to out.txt."""
    return _pair(three, name, topic, tmp_path, {}, {})


def _pair(
    cluster: Cluster, name: str, topic: str, folder: Path, source: dict[str, str], sink: dict[str, str]
) -> tuple[str, str]:
    (folder / "in.txt").write_text("one\ntwo\nthree\n")
    cluster.workers[0].create(f"{name}-in", source_config(folder / "in.txt", topic, **source))
    cluster.workers[1].create(f"{name}-out", sink_config(folder / "out.txt", topic, **sink))
    await_(lambda: lines(folder / "out.txt") == ["one", "two", "three"], "the lines")
    return f"{name}-in", f"{name}-out"


def _change(worker: Worker, name: str, partition: Any, offset: Any, expected: int = 200) -> Any:
    body = {"offsets": [{"partition": partition, "offset": offset}]}
    return worker.settle("PATCH", f"/connectors/{name}/offsets", expected, json=body)


def _reset(worker: Worker, name: str, expected: int = 200) -> Any:
    return worker.settle("DELETE", f"/connectors/{name}/offsets", expected)


def _stop(worker: Worker, *names: str) -> None:
    for name in names:
        worker.put(name, "stop")
    for name in names:
        worker.await_states(name, "STOPPED")


@pytest.mark.kip(875, "Cannot view the offsets of a nonexistent connector")
@pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
@pytest.mark.kip(875, "Cannot reset the offsets of a nonexistent, paused, or running connector")
def test_offsets_of_nobody(three: Cluster) -> None:
    body = {"offsets": [{"partition": {"a": 1}, "offset": None}]}
    for worker in three.workers:
        for method, content in (("GET", None), ("DELETE", None), ("PATCH", body)):
            answer = worker.settle(method, "/connectors/nobody/offsets", 404, json=content)
            assert answer["message"] == "Connector nobody not found"


@pytest.mark.kip(875, "Can view the offsets of a running sink and source connector, and they reflect progress")
def test_offsets_of_running_connectors(three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    source, sink = pair
    progress = [{"partition": {"filename": str(tmp_path / "in.txt")}, "offset": {"position": 14}}]
    group = [{"partition": {"kafka_partition": 0, "kafka_topic": topic}, "offset": {"kafka_offset": 3}}]
    for worker in three.workers:
        await_(lambda at=worker: at.offsets(source) == progress, "the source's commit")  # type: ignore[misc]
        await_(lambda at=worker: at.offsets(sink) == group, "the sink's commit")  # type: ignore[misc]


@pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
@pytest.mark.kip(875, "Cannot reset the offsets of a nonexistent, paused, or running connector")
def test_offsets_change_only_while_stopped(three: Cluster, pair: tuple[str, str]) -> None:
    for state in ("RUNNING", "PAUSED"):
        for name in pair:
            if state == "PAUSED":
                three.workers[0].put(name, "pause")
                three.workers[0].await_states(name, "PAUSED", "PAUSED")
            for worker in (three.leader(), three.followers()[0]):
                assert NOT_STOPPED in _change(worker, name, {"a": 1}, None, 400)["message"]
                assert NOT_STOPPED in _reset(worker, name, 400)["message"]


@pytest.mark.kip(875, "offsets can be changed right after the stop")
def test_offsets_change_right_after_a_stop(three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    """Whoever is asked, nobody has to ask twice: the rebalance that follows from the stop is waited for."""
    changes: list[tuple[str, Any, Any]] = [
        (pair[0], {"filename": str(tmp_path / "in.txt")}, {"position": 8}),
        (pair[1], {"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 1}),
    ]
    for worker in three.workers:
        for name, partition, offset in changes:
            for method, body in (
                ("PATCH", {"offsets": [{"partition": partition, "offset": offset}]}),
                ("DELETE", None),
            ):
                worker.await_states(name, "RUNNING", "RUNNING")
                worker.call("PUT", f"/connectors/{name}/stop", 204)
                worker.call(method, f"/connectors/{name}/offsets", 200, json=body)
                worker.put(name, "resume")


@pytest.mark.kip(875, "Can alter the offsets of a stopped source, they are returned and used when it is resumed")
@pytest.mark.kip(875, "requests are forwarded to the leader; refused while a rebalance is pending")
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_altered_source_offsets_are_used(three: Cluster, pair: tuple[str, str], tmp_path: Path, role: str) -> None:
    source, _ = pair
    asked = three.leader() if role == "leader" else three.followers()[0]
    _stop(asked, source)
    partition = {"filename": str(tmp_path / "in.txt")}
    assert _change(asked, source, partition, {"position": 8}) == ALTERED
    for worker in three.workers:
        assert worker.offsets(source) == [{"partition": partition, "offset": {"position": 8}}]
    asked.put(source, "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three", "three"], "the third line again")


@pytest.mark.kip(875, "Can alter the offsets of a stopped sink, they are returned and used when it is resumed")
@pytest.mark.parametrize("role", ["leader", "follower"])
def test_altered_sink_offsets_are_used(
    three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path, role: str
) -> None:
    _, sink = pair
    asked = three.leader() if role == "leader" else three.followers()[0]
    _stop(asked, sink)
    assert _change(asked, sink, {"kafka_topic": topic, "kafka_partition": "0"}, {"kafka_offset": 1}) == ALTERED
    for worker in three.workers:
        assert [each["offset"] for each in worker.offsets(sink)] == [{"kafka_offset": 1}]
    asked.put(sink, "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three", "two", "three"], "two lines again")


@pytest.mark.kip(875, "Can reset the offsets of a stopped sink and source connector")
@pytest.mark.kip(875, "Second follow-up requests to reset offsets after they have been reset once are also successful")
@pytest.mark.kip(875, "source offsets are removed by tombstones in the offsets topic")
def test_offsets_are_reset_as_often_as_one_likes(
    three: Cluster, pair: tuple[str, str], broker: Broker, tmp_path: Path
) -> None:
    _stop(three.workers[0], *pair)
    for name in pair:
        for worker in (*three.followers(), three.leader()):
            assert _reset(worker, name) == RESET
            assert all(each.offsets(name) == [] for each in three.workers)
    (tmp_path / "out.txt").unlink()
    three.workers[0].put(pair[1], "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three"], "all lines again")
    mine = [each for each in read_topic(broker.bootstrap, f"{three.group}-offsets") if f'"{pair[0]}"' in each.key]
    assert mine[-1].value is None


@pytest.mark.kip(875, "For either kind of connector, the offset field may be null, which resets that partition")
def test_one_partition_is_reset_by_null(three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    source, sink = pair
    follower = three.followers()[1]
    _stop(follower, *pair)
    _change(follower, source, {"filename": "another"}, {"position": 5})
    _change(follower, source, {"filename": str(tmp_path / "in.txt")}, None)
    assert follower.offsets(source) == [{"partition": {"filename": "another"}, "offset": {"position": 5}}]
    _change(follower, sink, {"kafka_topic": topic, "kafka_partition": 0}, None)
    assert follower.offsets(sink) == []


@pytest.mark.kip(875, "the REST response depends on whether alterOffsets is not implemented, throws, or returns")
@pytest.mark.parametrize(
    ("hook", "code", "text"),
    [
        ("absent", 200, "The framework-managed offsets for this connector have been {verb} successfully. However,"),
        ("true", 200, "The offsets for this connector have been {verb} successfully"),
        ("unsupported", 500, "because it doesn't support external modification of offsets"),
        ("refused", 500, "these offsets are not wanted"),
        ("broken", 500, "Failed to modify offsets for {kind} connector {name}"),
    ],
)
def test_answers_of_the_hook(
    three: Cluster, broker: Broker, name: str, topic: str, tmp_path: Path, hook: str, code: int, text: str
) -> None:
    asked = three.followers()[0]
    more = {"offsets.hook": hook, "log": str(tmp_path / "calls")}
    create_topic(broker.bootstrap, topic)
    for kind, keys, partition, offset in (
        ("source", {"connector.class": "FaultySource"}, {"task": 0}, {"next": 5}),
        (
            "sink",
            {"connector.class": "FaultySink", "topics": topic},
            {"kafka_topic": topic, "kafka_partition": 0},
            {"kafka_offset": 0},
        ),
    ):
        each = f"{name}-{kind}"
        asked.create(each, {**keys, **more}, "STOPPED")
        asked.await_states(each, "STOPPED")
        altered = _change(asked, each, partition, offset, code)["message"]
        assert text.format(verb="altered", kind=kind, name=each) in altered
        assert bool(asked.offsets(each)) is (code == 200), "a refused change was written"
        assert text.format(verb="reset", kind=kind, name=each) in _reset(asked, each, code)["message"]


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_bad_offsets_are_refused_and_nothing_is_changed(
    three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path, role: str
) -> None:
    source, sink = pair
    asked = three.leader() if role == "leader" else three.followers()[0]
    _stop(asked, *pair)
    before = [asked.offsets(name) for name in pair]
    file = {"filename": str(tmp_path / "in.txt")}
    _change(asked, source, file, {"position": -1}, 500)
    _change(asked, source, file, {"position": [1]}, 400)
    _change(asked, sink, {"kafka_topic": "no-such-topic-here", "kafka_partition": 0}, {"kafka_offset": 1}, 500)
    _change(asked, sink, {"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": -1}, 500)
    _change(asked, sink, {"kafka_topic": topic}, {"kafka_offset": 1}, 400)
    for name in pair:
        answer = asked.settle("PATCH", f"/connectors/{name}/offsets", 400, json={"offsets": []})
        assert answer["message"] == "Partitions / offsets need to be provided for an alter offsets request"
    assert [asked.offsets(name) for name in pair] == before


# --- offsets that are somewhere else ----------------------------------------------------------------------------------


@pytest.mark.kip(875, "Can view/alter/reset the offsets for a sink connector that uses an overridden consumer group ID")
def test_overridden_group(three: Cluster, pair: tuple[str, str], name: str, topic: str, tmp_path: Path) -> None:
    follower = three.followers()[0]
    own = f"{name}-own"
    await_(lambda: follower.offsets(pair[1]), "the commit of the other group")
    group = {"consumer.override.group.id": f"own-group-{name}"}
    follower.create(own, sink_config(tmp_path / "own.txt", topic, **group))
    await_(lambda: len(lines(tmp_path / "own.txt")) == 3, "the lines")
    _stop(follower, own)
    assert [each["offset"] for each in follower.offsets(own)] == [{"kafka_offset": 3}]
    _change(follower, own, {"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 2})
    assert [each["offset"] for each in follower.offsets(own)] == [{"kafka_offset": 2}]
    _reset(follower, own)
    assert follower.offsets(own) == []
    assert follower.offsets(pair[1]) != [], "the other group was touched"


@pytest.mark.kip(875, "Can view/alter/reset the offsets for a source connector that uses a custom offsets topic")
@pytest.mark.kip(875, "successful if all are deleted on both the worker's global offsets topic and the dedicated one")
def test_an_offsets_topic_of_its_own(
    three: Cluster, name: str, topic: str, tmp_path: Path, broker: Broker, unique: Callable[[str], str]
) -> None:
    own = unique("offsets")
    source, _ = _pair(three, name, topic, tmp_path, {"offsets.storage.topic": own}, {})
    _check_source(three, source, tmp_path)
    assert [each.value for each in read_topic(broker.bootstrap, own)][-2:] == [{"position": 8}, None]
    shared = [each for each in read_topic(broker.bootstrap, f"{three.group}-offsets") if f'"{source}"' in each.key]
    assert [each.value for each in shared][-2:] == [{"position": 8}, None]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.mark.kip(875, "view/alter/reset the offsets of a sink and source that target a different Kafka cluster")
def test_connectors_on_another_kafka_cluster(
    three: Cluster, name: str, topic: str, tmp_path: Path, elsewhere: Broker, unique: Callable[[str], str]
) -> None:
    servers = {f"{client}.override.bootstrap.servers": elsewhere.bootstrap for client in ("consumer", "admin")}
    at_source = {**servers, "producer.override.bootstrap.servers": elsewhere.bootstrap}
    at_source["offsets.storage.topic"] = own = unique("offsets")
    source, sink = _pair(three, name, topic, tmp_path, at_source, servers)
    _check_source(three, source, tmp_path)
    assert read_topic(elsewhere.bootstrap, own)[-1].value is None
    follower = three.followers()[0]
    _stop(follower, sink)
    assert [each["offset"] for each in follower.offsets(sink)] == [{"kafka_offset": 3}]
    _change(follower, sink, {"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 1})
    assert [each["offset"] for each in follower.offsets(sink)] == [{"kafka_offset": 1}]
    _reset(follower, sink)
    assert follower.offsets(sink) == []


def _check_source(cluster: Cluster, name: str, folder: Path) -> None:
    """Its offsets can be viewed, altered and reset."""
    follower = cluster.followers()[0]
    partition = {"filename": str(folder / "in.txt")}
    _stop(follower, name)
    assert follower.offsets(name) == [{"partition": partition, "offset": {"position": 14}}]
    assert _change(follower, name, partition, {"position": 8}) == ALTERED
    assert cluster.leader().offsets(name) == [{"partition": partition, "offset": {"position": 8}}]
    assert _reset(follower, name) == RESET
    assert cluster.followers()[1].offsets(name) == []
