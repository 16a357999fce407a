"""Status tells the truth: whatever dies is FAILED with its reason, and nothing else is touched."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import JSON, STRING, Client, await_, lines, sink_config, source_config

from headgate import log
from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


def test_a_task_that_raises_is_failed_with_its_traceback(client: Client, name: str) -> None:
    client.create(name, {"connector.class": "FaultySource", "fail.in": "task.poll"})
    task = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]
    assert task["trace"].endswith("RuntimeError: told to fail in task.poll")
    assert "faulty.py" in task["trace"]


def test_a_task_that_cannot_start_is_failed(client: Client, name: str) -> None:
    client.create(name, {"connector.class": "FaultySource", "fail.in": "task.start"})
    task = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]
    assert task["trace"].endswith("RuntimeError: told to fail in task.start")


def test_a_connector_that_cannot_start_is_stored_and_failed(client: Client, name: str) -> None:
    answer = client.create(name, {"connector.class": "FaultySource", "fail.in": "connector.start"}, 500)
    assert answer["message"] == f"Failed to transition connector {name} to state STARTED"
    connector = client.status(name)["connector"]
    assert connector["state"] == "FAILED"
    assert connector["trace"].endswith("RuntimeError: told to fail in connector.start")


def test_too_many_tasks_is_answered_at_once(client: Client, name: str) -> None:
    answer = client.create(name, {"connector.class": "FaultySource", "tasks": "3", "tasks.max": "2"}, 500)
    assert answer["message"].startswith(f"The connector {name} has generated 3 tasks, which is greater than 2,")
    assert client.states(name) == ("FAILED", [])
    client.call("PATCH", f"/connectors/{name}/config", 200, json={"tasks.max.enforce": "false"})
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING", "RUNNING")


def test_a_record_that_cannot_be_converted_fails_its_task_and_says_which(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("this is no json\n")
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic, **{"value.converter": JSON}))
    trace = client.await_states(f"{name}-out", "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert trace.splitlines()[0].endswith(
        f"; the value of topic {topic}, partition 0, offset 0 has 15 bytes, first 74 68 69 73 20 69 73 20: plain text,"
        " so for value.converter=org.apache.kafka.connect.storage.StringConverter"
    )
    assert "Tolerance exceeded in error handler" in trace
    assert client.states(f"{name}-in") == ("RUNNING", ["RUNNING"])


def flushing_sink(client: Client, name: str, topic: str, folder: Path, **more: str) -> None:
    """Its topic has one record; its task cannot flush."""
    (folder / "in.txt").write_text("a line\n")
    client.create(f"{name}-in", source_config(folder / "in.txt", topic))
    await_(lambda: client.offsets(f"{name}-in"), "the line in Kafka")
    told = {"log": str(folder / "calls"), "value.converter": STRING, **more}
    client.create(name, {"connector.class": "FaultySink", "topics": topic, **told})


def test_a_sink_that_cannot_flush_is_tried_three_times_and_then_failed_with_nothing_committed(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    flushing_sink(client, name, topic, tmp_path, **{"fail.in": "task.flush"})
    trace = client.await_states(name, "RUNNING", "FAILED", seconds=60)["tasks"][0]["trace"]
    assert trace.splitlines()[0] == (
        "ConnectError: pre_commit() failed 3 times in a row, without a commit in between:"
        " RuntimeError: told to fail in task.flush"
    )
    assert "faulty.py" in trace
    assert client.offsets(name) == []
    assert lines(tmp_path / "calls.records") == [f"{topic}-0@0 'a line'"] * 3


def test_a_sink_that_asks_for_patience_gets_it_and_the_retries_are_counted(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "busy").touch()
    flushing_sink(client, name, topic, tmp_path, **{"fail.in": "later:flush", "fail.while": str(tmp_path / "busy")})

    def retries() -> float:
        found = re.search(
            rf'task_error_total_retries\{{connector="{name}",task="0"\}} (\S+)', client.http.get("/metrics").text
        )
        return float(found[1]) if found else 0.0

    await_(lambda: retries() >= 4, "four tries", 60)
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    assert client.offsets(name) == []
    (tmp_path / "busy").unlink()
    await_(lambda: [each["offset"]["kafka_offset"] for each in client.offsets(name)] == [1], "the commit", 60)


def test_a_plugin_that_crashes_the_python_worker_fails_its_own_task_only(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    crash = {"transforms": "c", "transforms.c.type": "CrashingTransform"}
    for number in (1, 2):
        (tmp_path / f"{number}.txt").write_text("fine\n")
        client.create(f"{name}-{number}", source_config(tmp_path / f"{number}.txt", f"{topic}-{number}", **crash))
    for number in (1, 2):
        await_(lambda each=number: client.offsets(f"{name}-{each}"), "the first line")  # type: ignore[misc]
    for number, text in ((1, "crash"), (2, "still fine")):
        with (tmp_path / f"{number}.txt").open("a") as file:
            file.write(f"{text}\n")
    client.await_states(f"{name}-1", "RUNNING", "FAILED", seconds=60)
    size = (tmp_path / "2.txt").stat().st_size
    await_(lambda: client.offsets(f"{name}-2")[0]["offset"]["position"] == size, "the other connector going on", 60)
    assert client.states(f"{name}-2") == ("RUNNING", ["RUNNING"])


def test_an_unwritable_file_fails_the_task_and_names_the_file(client: Client, name: str, topic: str) -> None:
    client.create(name, sink_config(Path("/proc/no/such/folder/out.txt"), topic))
    trace = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert "/proc/no/such/folder/out.txt" in trace


def test_put_that_may_be_retried_is_retried_and_nothing_is_committed_before(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    flag = tmp_path / "fail"
    flag.touch()
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    config = {"connector.class": "FaultySink", "topics": topic, "fail.in": "retry", "fail.while": str(flag)}
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    string = "org.apache.kafka.connect.storage.StringConverter"
    client.create(f"{name}-out", {**config, "log": str(tmp_path / "calls"), "value.converter": string})

    def retried() -> bool:
        text = client.http.get("/metrics").text
        wanted = f'kafka_connect_task_error_total_retries{{connector="{name}-out",task="0"}}'
        return any(line.startswith(wanted) and float(line.split()[-1]) > 2 for line in text.splitlines())

    await_(retried, "retries")
    assert client.states(f"{name}-out") == ("RUNNING", ["RUNNING"])
    assert client.offsets(f"{name}-out") == []
    flag.unlink()
    expected = [f"{topic}-0@0 'one'", f"{topic}-0@1 'two'"]
    await_(lambda: lines(tmp_path / "calls.records") == expected, "the records")
    await_(lambda: client.offsets(f"{name}-out"), "the commit")


def test_a_connector_that_hangs_in_start_can_still_be_deleted(client: Client, name: str, tmp_path: Path) -> None:
    flag = tmp_path / "fail"
    flag.touch()
    config = {"connector.class": "FaultySource", "fail.in": "hang:connector.start", "fail.while": str(flag)}
    answers: list[int] = []

    def create() -> None:
        answers.append(client.http.post("/connectors", json={"name": name, "config": config}).status_code)

    creating = threading.Thread(target=create)
    creating.start()
    await_(lambda: name in client.call("GET", "/connectors", 200), "the connector")
    client.delete(name)
    creating.join(10)
    flag.unlink()
    assert answers == [409]
    client.call("GET", f"/connectors/{name}", 404)


def test_a_task_that_ignores_stop_is_given_up_on(client: Client, name: str, tmp_path: Path) -> None:
    flag = tmp_path / "fail"
    flag.touch()
    client.create(name, {"connector.class": "FaultySource", "fail.in": "hang:task.poll", "fail.while": str(flag)})
    client.await_states(name, "RUNNING", "RUNNING")
    client.put(name, "stop", 204)
    assert client.states(name) == ("STOPPED", [])
    client.put(name, "resume")
    flag.unlink()
    client.await_states(name, "RUNNING", "RUNNING")


def test_log_lines_name_the_connector_and_the_task(
    client: Client, name: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    log.configure()
    try:
        client.create(name, {"connector.class": "FaultySource", "fail.in": "task.poll"})
        client.await_states(name, "RUNNING", "FAILED")
        assert f"[{name}|task-0] Task failed" in capsys.readouterr().err
    finally:
        root.handlers[:], root.level = before


# --- the death of the JVM ---------------------------------------------------------------------------------------------


@pytest.fixture
def kill_jvm(worker: StandaloneWorker) -> Iterator[Callable[[], int]]:
    def kill() -> int:
        pid = worker.engine.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        return pid

    yield kill
    with warnings.catch_warnings():
        # py4j leaves the sockets open with which it did not reach the JVM any more: collected here, they fail no other.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_after_the_death_of_the_spark_jvm_tasks_go_on_without_a_person(
    client: Client, name: str, topic: str, tmp_path: Path, kill_jvm: Callable[[], int], caplog: pytest.LogCaptureFixture
) -> None:
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\n")
    client.create(f"{name}-in", source_config(source, topic))
    client.create(f"{name}-out", sink_config(out, topic))
    await_(lambda: lines(out) == ["one"], "the first line")
    pid = kill_jvm()
    with source.open("a") as file:
        file.write("two\n")
    await_(lambda: lines(out) == ["one", "two"], "going on after the death", 60)
    for each in (f"{name}-in", f"{name}-out"):
        assert client.states(each) == ("RUNNING", ["RUNNING"])

    def said() -> int:
        return sum(f"The Spark driver JVM (pid {pid}) ended with exit code -9" in each for each in caplog.messages)

    await_(said, "the death in the log")  # residents may outlive the JVM for as long as a line takes
    with source.open("a") as file:
        file.write("three\n")
    await_(lambda: lines(out) == ["one", "two", "three"], "a new session", 60)
    assert said() == 1


# --- a worker of its own ----------------------------------------------------------------------------------------------


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_a_broker_that_is_away_for_a_while_costs_no_record(
    own_broker: Broker, client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    """The connector's clients go to another cluster than the worker's (KIP-458), which is then stopped and started."""
    own: dict[str, Any] = {"bootstrap.servers": own_broker.bootstrap}
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\n")
    overrides = {
        f"{kind}.override.{key}": value for kind in ("producer", "consumer", "admin") for key, value in own.items()
    }
    client.create(f"{name}-in", source_config(source, topic, **overrides))
    client.create(f"{name}-out", sink_config(out, topic, **overrides))
    await_(lambda: lines(out) == ["one"], "the first line")
    own_broker.restart()
    with source.open("a") as file:
        file.write("two\nthree\n")
    await_(lambda: lines(out)[-1:] == ["three"], "the lines after the restart", 60)
    assert list(dict.fromkeys(lines(out))) == ["one", "two", "three"]
    await_(lambda: client.offsets(f"{name}-out")[0]["offset"]["kafka_offset"] == 3, "the offsets in the other cluster")
