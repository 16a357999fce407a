"""KIP-875 on a running worker: offsets read, altered, reset; the STOPPED state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Client, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark

NOT_STOPPED = "Connectors must be in the STOPPED state before their offsets can be modified."


@pytest.fixture
def pair(client: Client, name: str, topic: str, tmp_path: Path) -> tuple[str, str]:
    """A source and a sink that have taken three lines from in.txt to out.txt."""
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    source, sink = f"{name}-in", f"{name}-out"
    client.create(source, source_config(tmp_path / "in.txt", topic))
    client.create(sink, sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three"], "the lines")
    return source, sink


def _change(client: Client, name: str, partition: Any, offset: Any, expected: int = 200) -> Any:
    body = {"offsets": [{"partition": partition, "offset": offset}]}
    return client.call("PATCH", f"/connectors/{name}/offsets", expected, json=body)


@pytest.mark.kip(875, "Cannot view the offsets of a nonexistent connector")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_offsets_of_nobody(client: Client, method: str) -> None:
    assert client.call(method, "/connectors/nobody/offsets", 404)["message"] == "Connector nobody not found"


@pytest.mark.kip(875, "Can view the offsets of a running sink and source connector, and they reflect progress")
def test_offsets_of_running_connectors(client: Client, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    source, sink = pair
    partition = {"filename": str(tmp_path / "in.txt")}
    await_(lambda: client.offsets(source) == [{"partition": partition, "offset": {"position": 14}}], "the commit")
    where = {"kafka_partition": 0, "kafka_topic": topic}
    await_(lambda: client.offsets(sink) == [{"partition": where, "offset": {"kafka_offset": 3}}], "the commit")


@pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
@pytest.mark.kip(875, "Cannot reset the offsets of a nonexistent, paused, or running connector")
def test_offsets_change_only_while_stopped(client: Client, pair: tuple[str, str]) -> None:
    for name in pair:
        for state in ("RUNNING", "PAUSED"):
            if state == "PAUSED":
                client.put(name, "pause")
                client.await_states(name, "PAUSED", "PAUSED")
            assert NOT_STOPPED in _change(client, name, {"a": 1}, None, 400)["message"]
            assert NOT_STOPPED in client.call("DELETE", f"/connectors/{name}/offsets", 400)["message"]
    _change(client, "nobody", {"a": 1}, None, 404)


@pytest.mark.kip(875, "Can alter the offsets of a stopped source, they are returned and used when it is resumed")
def test_altered_source_offsets_are_used(client: Client, pair: tuple[str, str], tmp_path: Path) -> None:
    source, _ = pair
    client.put(source, "stop")
    client.await_states(source, "STOPPED")
    partition = {"filename": str(tmp_path / "in.txt")}
    answer = _change(client, source, partition, {"position": 8})
    assert answer == {"message": "The offsets for this connector have been altered successfully"}
    assert client.offsets(source) == [{"partition": partition, "offset": {"position": 8}}]
    client.put(source, "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three", "three"], "the third line again")


@pytest.mark.kip(875, "Can alter the offsets of a stopped sink, they are returned and used when it is resumed")
def test_altered_sink_offsets_are_used(client: Client, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    _, sink = pair
    client.put(sink, "stop")
    client.await_states(sink, "STOPPED")
    where = {"kafka_topic": topic, "kafka_partition": "0"}
    answer = _change(client, sink, where, {"kafka_offset": 1})
    assert answer == {"message": "The offsets for this connector have been altered successfully"}
    assert [each["offset"] for each in client.offsets(sink)] == [{"kafka_offset": 1}]
    client.put(sink, "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three", "two", "three"], "two lines again")


@pytest.mark.kip(875, "Can reset the offsets of a stopped sink and source connector")
@pytest.mark.kip(875, "Second follow-up requests to reset offsets after they have been reset once are also successful")
def test_offsets_are_reset_as_often_as_one_likes(client: Client, pair: tuple[str, str], tmp_path: Path) -> None:
    for name in pair:
        client.put(name, "stop")
        for _ in range(2):
            answer = client.call("DELETE", f"/connectors/{name}/offsets", 200)
            assert answer == {"message": "The offsets for this connector have been reset successfully"}
            assert client.offsets(name) == []
    (tmp_path / "out.txt").unlink()
    client.put(pair[1], "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three"], "all lines again")


@pytest.mark.kip(875, "For either kind of connector, the offset field may be null, which resets that partition")
def test_one_partition_is_reset_by_null(client: Client, pair: tuple[str, str], topic: str, tmp_path: Path) -> None:
    source, sink = pair
    for name, partition in (
        (source, {"filename": str(tmp_path / "in.txt")}),
        (sink, {"kafka_topic": topic, "kafka_partition": 0}),
    ):
        client.put(name, "stop")
        _change(client, name, partition, None)
        assert client.offsets(name) == []


@pytest.mark.kip(875, "Can view/alter/reset the offsets for a sink connector that uses an overridden consumer group ID")
def test_overridden_group(client: Client, pair: tuple[str, str], name: str, topic: str, tmp_path: Path) -> None:
    group = {"consumer.override.group.id": f"own-group-{name}"}
    await_(lambda: client.offsets(pair[1]), "the commit of the other group")
    client.create(f"{name}-own", sink_config(tmp_path / "own.txt", topic, **group))
    await_(lambda: len(lines(tmp_path / "own.txt")) == 3, "the lines")
    client.put(f"{name}-own", "stop")
    assert [each["offset"] for each in client.offsets(f"{name}-own")] == [{"kafka_offset": 3}]
    _change(client, f"{name}-own", {"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 2})
    assert [each["offset"] for each in client.offsets(f"{name}-own")] == [{"kafka_offset": 2}]
    client.call("DELETE", f"/connectors/{name}-own/offsets", 200)
    assert client.offsets(f"{name}-own") == []
    assert client.offsets(pair[1]) != [], "the other group was touched"


@pytest.mark.kip(875, "the REST response depends on whether alterOffsets is not implemented, throws, or returns")
@pytest.mark.parametrize("verb", ["altered", "reset"])
@pytest.mark.parametrize("kind", ["FaultySource", "FaultySink"])
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
    client: Client, name: str, topic: str, tmp_path: Path, verb: str, kind: str, hook: str, code: int, text: str
) -> None:
    config = {"connector.class": kind, "offsets.hook": hook, "log": str(tmp_path / "calls")}
    if kind == "FaultySink":
        config["topics"] = topic
    client.create(name, config, state="STOPPED")
    partition = {"task": 0} if kind == "FaultySource" else {"kafka_topic": topic, "kafka_partition": 0}
    offset = {"next": 5} if kind == "FaultySource" else {"kafka_offset": 0}
    if kind == "FaultySink":
        _make_topic(client, name, topic, tmp_path)
    if verb == "altered":
        answer = _change(client, name, partition, offset, code)
    else:
        answer = client.call("DELETE", f"/connectors/{name}/offsets", code)
    wanted = text.format(verb=verb, kind=kind.removeprefix("Faulty").lower(), name=name)
    assert wanted in answer["message"]
    if code != 200:
        assert client.offsets(name) == [], "a refused change was written"


def _make_topic(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "make.txt").write_text("make the topic\n")
    client.create(f"{name}-make", source_config(tmp_path / "make.txt", topic))
    await_(lambda: client.offsets(f"{name}-make"), "the topic")


@pytest.mark.parametrize(
    ("offset", "code"),
    [({"position": -1}, 500), ({"position": "x"}, 500), ({"place": 1}, 500), ({"position": [1]}, 400)],
)
def test_bad_source_offsets_are_refused_and_nothing_is_changed(
    client: Client, pair: tuple[str, str], tmp_path: Path, offset: Any, code: int
) -> None:
    source, _ = pair
    client.put(source, "stop")
    before = client.offsets(source)
    _change(client, source, {"filename": str(tmp_path / "in.txt")}, offset, code)
    assert client.offsets(source) == before


@pytest.mark.parametrize(
    ("partition", "offset", "code"),
    [
        ({"kafka_topic": "no-such-topic-here", "kafka_partition": 0}, {"kafka_offset": 1}, 500),
        ({"kafka_topic": "TOPIC", "kafka_partition": 99}, {"kafka_offset": 1}, 500),
        ({"kafka_topic": "TOPIC", "kafka_partition": 0}, {"kafka_offset": -1}, 500),
        ({"kafka_topic": "TOPIC", "kafka_partition": "zero"}, {"kafka_offset": 1}, 400),
        ({"kafka_topic": "TOPIC"}, {"kafka_offset": 1}, 400),
    ],
)
def test_bad_sink_offsets_are_refused_and_nothing_is_changed(
    client: Client, pair: tuple[str, str], topic: str, partition: dict[str, Any], offset: Any, code: int
) -> None:
    _, sink = pair
    client.put(sink, "stop")
    before = client.offsets(sink)
    if partition["kafka_topic"] == "TOPIC":
        partition = {**partition, "kafka_topic": topic}
    _change(client, sink, partition, offset, code)
    assert client.offsets(sink) == before


@pytest.mark.kip(875, "For either kind of connector, the offset field may be null, which resets that partition")
def test_null_for_a_partition_of_a_group_that_is_not_there(client: Client, pair: tuple[str, str], topic: str) -> None:
    _, sink = pair
    client.put(sink, "stop")
    client.call("DELETE", f"/connectors/{sink}/offsets", 200)
    _change(client, sink, {"kafka_topic": topic, "kafka_partition": 0}, None)
    assert client.offsets(sink) == []


def test_offsets_that_are_on_a_kafka_that_is_away(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    away = {"admin.override.bootstrap.servers": "127.0.0.1:1"}  # nothing listens there
    client.create(name, sink_config(tmp_path / "out.txt", topic, **away), state="STOPPED")
    answer = client.http.get(f"/connectors/{name}/offsets")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("Kafka does not answer at 127.0.0.1:1 (")
    assert answer.elapsed.total_seconds() < 6


# --- the STOPPED state ------------------------------------------------------------------------------------------------


@pytest.mark.kip(875, "Can stop a running connector")
@pytest.mark.kip(875, "Can stop a paused connector")
@pytest.mark.kip(875, "Can stop a stopped connector (i.e., stopping an already-stopped connector is idempotent)")
@pytest.mark.kip(875, "Cannot see task configuration or status information in the REST API for a stopped connector")
@pytest.mark.parametrize("before", ["RUNNING", "PAUSED", "STOPPED"])
def test_stop(client: Client, pair: tuple[str, str], before: str) -> None:
    for name in pair:
        if before != "RUNNING":
            client.put(name, {"PAUSED": "pause", "STOPPED": "stop"}[before])
            client.await_states(name, before, *(["PAUSED"] if before == "PAUSED" else []))
        client.put(name, "stop", 204)
        assert client.states(name) == ("STOPPED", [])
        assert client.call("GET", f"/connectors/{name}/tasks", 200) == []
        assert client.call("GET", f"/connectors/{name}", 200)["tasks"] == []
        client.call("GET", f"/connectors/{name}/tasks/0/status", 404)


@pytest.mark.kip(875, "Can delete a stopped connector")
def test_a_stopped_connector_can_be_deleted(client: Client, pair: tuple[str, str]) -> None:
    client.put(pair[0], "stop")
    client.delete(pair[0])
    client.call("GET", f"/connectors/{pair[0]}", 404)
    client.call("GET", f"/connectors/{pair[0]}/status", 404)


@pytest.mark.kip(875, "Can resume a stopped connector")
@pytest.mark.kip(875, "Can pause a stopped connector")
@pytest.mark.parametrize(("verb", "state"), [("resume", "RUNNING"), ("pause", "PAUSED")])
def test_what_was_stopped_can_be_resumed_and_paused(
    client: Client, pair: tuple[str, str], verb: str, state: str
) -> None:
    for name in pair:
        client.put(name, "stop")
        client.put(name, verb)
        client.await_states(name, state, state)


@pytest.mark.kip(875, "Stopping a failed connector updates its state to STOPPED in the REST API")
@pytest.mark.kip(875, "Stopping a connector that fails during shutdown updates its state to STOPPED in the REST API")
@pytest.mark.kip(875, "Can resume a connector after its Connector has failed both before and during shutdown")
@pytest.mark.parametrize("fail_in", ["connector.start", "connector.stop"])
def test_stop_wins_over_failure(client: Client, name: str, tmp_path: Path, fail_in: str) -> None:
    flag = tmp_path / "fail"
    flag.touch()
    config = {"connector.class": "FaultySource", "fail.in": fail_in, "fail.while": str(flag)}
    client.create(name, config, 500 if fail_in == "connector.start" else 201)
    assert client.states(name)[0] == ("FAILED" if fail_in == "connector.start" else "RUNNING")
    client.put(name, "stop", 204)
    assert client.states(name) == ("STOPPED", [])
    flag.unlink()
    client.put(name, "resume")
    client.await_states(name, "RUNNING", "RUNNING")
