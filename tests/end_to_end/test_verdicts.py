"""Verdicts: what is wrong shows within ten seconds, beside a state that stays RUNNING, and names its cause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from harness import Client, await_, sink_config, source_config

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

SHOWS_S = 10.0


def health(client: Client, name: str) -> Any:
    task = client.status(name)["tasks"]
    assert [each["state"] for each in task] == ["RUNNING"]
    return task[0]["health"]


def await_verdict(client: Client, name: str, *wanted: str, seconds: float = SHOWS_S) -> Any:
    """How the only task of a connector fares, which runs, once it fares so."""

    def found() -> Any:
        shown = health(client, name)
        return shown if shown["verdict"] in wanted else None

    return await_(found, f"{name} is {' or '.join(wanted)}", seconds)


@pytest.fixture
def guard(tmp_path: Path) -> Path:
    """Connectors misbehave while it is there."""
    file = tmp_path / "misbehave"
    file.touch()
    return file


def test_a_connector_that_works_is_ok_and_tells_its_rate(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    client.create(name, source_config(tmp_path / "in.txt", topic))
    client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: health(client, name)["last_progress"], "the lines are in Kafka", 30)
    found = await_verdict(client, name, "ok")
    assert found["rate"] > 0
    listed = client.call("GET", "/connectors?expand=health", 200)[name]["health"]
    assert (listed["verdict"], [task["id"] for task in listed["tasks"]]) == ("ok", [0])


def test_a_put_that_is_tried_again(client: Client, name: str, topic: str, tmp_path: Path, guard: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    config = {"connector.class": "FaultySink", "topics": topic, "log": str(tmp_path / "log"), "tasks.max": "1"}
    text = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    client.create(name, {**config, **text, "fail.in": "retry", "fail.while": str(guard)})
    client.await_states(name, "RUNNING", "RUNNING")
    assert "not now" in await_verdict(client, name, "retrying", seconds=30)["reason"]
    assert client.status(name)["connector"]["health"]["verdict"] == "retrying"
    guard.unlink()
    assert "not now" in await_verdict(client, name, "ok")["last_error"]


def test_a_poll_that_hangs_is_idle_and_stalled_once_it_ignores_a_pause(client: Client, name: str, guard: Path) -> None:
    client.create(name, {"connector.class": "FaultySource", "fail.in": "hang:task.poll", "fail.while": str(guard)})
    client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: "in poll() since" in (health(client, name)["reason"] or ""), "the call is named", SHOWS_S)
    assert health(client, name)["verdict"] == "idle"
    client.put(name, "pause")
    assert "in poll() since" in await_verdict(client, name, "stalled", seconds=2 * SHOWS_S)["reason"]
    guard.unlink()
    paused = client.await_states(name, "PAUSED", "PAUSED")["tasks"][0]["health"]
    assert (paused["verdict"], paused["reason"]) == ("held", "paused")


def test_a_sink_whose_group_has_no_members_says_what_it_waits_for(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    often = {"consumer.override.metadata.max.age.ms": "500"}
    config = {**sink_config(tmp_path / "out.txt", ""), "topics.regex": f"{topic}-.+", **often}
    del config["topics"]
    client.create(name, config)
    client.await_states(name, "RUNNING", "RUNNING")
    waits = f"in the wait for partitions of {topic}-.+ since"
    await_(lambda: waits in (health(client, name)["reason"] or ""), "the pattern is named", SHOWS_S)
    assert health(client, name)["verdict"] == "idle"
    admin, group = AdminClient({"bootstrap.servers": broker.bootstrap}), f"connect-{name}"
    assert not admin.describe_consumer_groups([group])[group].result(10).members
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", f"{topic}-a"))
    await_verdict(client, name, "ok", seconds=30)


def test_a_failure_is_told_in_one_line(client: Client, name: str) -> None:
    client.create(name, {"connector.class": "FaultySource", "fail.in": "task.poll"})
    found = client.await_states(name, "RUNNING", "FAILED")
    for each in (found["connector"], found["tasks"][0]):
        assert each["health"]["verdict"] == "failed"
        assert each["health"]["reason"] == "RuntimeError: told to fail in task.poll"


def test_what_is_held_says_how(client: Client, name: str) -> None:
    client.create(name, {"connector.class": "FaultySource"}, state="STOPPED")
    found = client.await_states(name, "STOPPED")["connector"]["health"]
    assert (found["verdict"], found["reason"]) == ("held", "stopped")


def test_a_chain_that_keeps_ending_its_python_workers(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("crash\n")
    steps = {"transforms": "c", "transforms.c.type": "CrashingTransform"}
    client.create(name, {**source_config(tmp_path / "in.txt", topic), **steps})
    found = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]
    assert found["health"]["verdict"] == "failed"
    assert "has ended 3 residents of Spark in a row" in found["health"]["reason"]


@pytest.fixture
def doomed() -> Iterator[Broker]:
    with Broker(heap="256m") as running:
        yield running


def test_kafka_that_goes_away_and_comes_back(
    client: Client, name: str, topic: str, tmp_path: Path, doomed: Broker
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\n")
    where = {f"{kind}.override.bootstrap.servers": doomed.bootstrap for kind in ("producer", "consumer", "admin")}
    source, sink = f"{name}-in", f"{name}-out"
    client.create(source, {**source_config(file, topic), **where})
    client.create(sink, {**sink_config(tmp_path / "out.txt", topic), **where})
    for each in (source, sink):
        client.await_states(each, "RUNNING", "RUNNING")
        await_verdict(client, each, "ok", seconds=30)
    doomed.kill()
    with file.open("a") as more:
        more.write("two\n")
    for each in (source, sink):
        found = await_verdict(client, each, "retrying", seconds=1.5 * SHOWS_S)
        assert doomed.bootstrap.partition(":")[2] in found["reason"], "the address is named"
    doomed.restart()
    for each in (source, sink):
        await_verdict(client, each, "ok", "idle", seconds=60)
    await_(lambda: (tmp_path / "out.txt").read_text() == "one\ntwo\n", "nothing is lost", 30)
