"""Configuration on a running worker: secrets that nobody sees, topics that are created as told, refused overrides."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from harness import Client, await_, lines, sink_config, source_config

from headgate.dev.broker import Broker
from headgate.log import LineFormatter

pytestmark = pytest.mark.spark

SECRET = "correct-horse-battery-staple"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secrets.properties"
    file.write_text(f"password={SECRET}\nfile={tmp_path / 'in.txt'}\n")
    return file


class _Lines(logging.Handler):
    """The lines of the log, as `headgate` writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LineFormatter("%(levelname)s %(message)s"))
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    handler = _Lines()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


def _everything(client: Client, name: str) -> str:
    """All that the REST API tells of a connector."""
    paths = ["", "/config", "/status", "/tasks", "/tasks-config", "/tasks/0/status", "/topics", "/offsets"]
    answers = [client.http.get(f"/connectors/{name}{path}").text for path in paths]
    answers.append(client.http.get("/connectors?expand=info&expand=status").text)
    answers.append(client.http.get("/metrics").text)
    answers.append(client.http.post(f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true").text)
    return "\n".join(answers)


@pytest.mark.parametrize("where", ["connector.start", "connector.task_configs", "task.start", "task.poll"])
def test_a_secret_that_fails_a_connector_is_told_nowhere(
    client: Client, name: str, secret_file: Path, log_lines: list[str], where: str
) -> None:
    variable = f"${{file:{secret_file}:password}}"
    config = {"connector.class": "faulty.FaultySource", "fail.in": where, "fail.text": variable, "count": variable}
    wrong = client.http.put("/connector-plugins/faulty.FaultySource/config/validate", json={"name": name, **config})
    refused = client.http.post("/connectors", json={"name": name, "config": config})
    assert refused.status_code == 400
    assert "Invalid value [hidden] for configuration count: Not a number of type INT" in refused.json()["message"]
    config["count"] = "1"
    in_connector = where.startswith("connector")
    created = client.http.post("/connectors", json={"name": name, "config": config})
    assert created.status_code == (500 if in_connector else 201), created.text
    states = ("FAILED",) if in_connector else ("RUNNING", "FAILED")
    status = client.await_states(name, *states)
    trace = (status["connector"] if in_connector else status["tasks"][0])["trace"]
    assert trace.endswith(f"RuntimeError: told to fail in {where} [hidden]")
    assert client.call("GET", f"/connectors/{name}/config", 200)["fail.text"] == variable
    tasks = client.call("GET", f"/connectors/{name}/tasks", 200)
    assert [task["config"]["fail.text"] for task in tasks] == ([] if in_connector else [variable])
    told = "\n".join([wrong.text, refused.text, created.text, _everything(client, name), *log_lines])
    assert "About to fail: [hidden]" in told
    assert SECRET not in told


def test_values_from_a_file_reach_connector_and_task(
    client: Client, name: str, topic: str, secret_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    config = source_config(tmp_path / "unused", topic) | {"file": f"${{file:{secret_file}:file}}"}
    client.create(f"{name}-in", config)
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one"], "the line")
    (task,) = client.call("GET", f"/connectors/{name}-in/tasks", 200)
    assert task["config"]["file"] == config["file"]
    missing = {**config, "file": "${file:/no/such/file:x}"}
    answer = client.create(name, missing, 400)
    assert answer["message"] == "Could not read properties from file /no/such/file"


def _partitions(broker: Broker, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found: Any = admin.list_topics(timeout=10).topics.get(topic)
    return len(found.partitions) if found else 0


def _setting(broker: Broker, topic: str, key: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (answer,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return str(answer.result(10)[key].value)


def test_topics_are_created_as_told(client: Client, name: str, topic: str, broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    creation = {
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "2",
        "topic.creation.groups": "wide",
        "topic.creation.wide.include": ".*-wide",
        "topic.creation.wide.partitions": "5",
        "topic.creation.wide.retention.ms": "7654321",
    }
    client.create(name, source_config(tmp_path / "in.txt", topic, **creation))
    client.create(f"{name}-wide", source_config(tmp_path / "in.txt", f"{topic}-wide", **creation))
    await_(lambda: client.offsets(name) and client.offsets(f"{name}-wide"), "the lines")
    assert (_partitions(broker, topic), _partitions(broker, f"{topic}-wide")) == (2, 5)
    assert _setting(broker, f"{topic}-wide", "retention.ms") == "7654321"
    assert _setting(broker, topic, "retention.ms") != "7654321"


def test_a_topic_that_cannot_be_created_fails_the_task(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    creation = {"topic.creation.default.replication.factor": "7", "topic.creation.default.partitions": "1"}
    client.create(name, source_config(tmp_path / "in.txt", topic, **creation))
    status = client.await_states(name, "RUNNING", "FAILED")
    expected = (
        f"Task failed to create new topic (name={topic}, numPartitions=1, replicationFactor=7,"
        " replicasAssignments=null, configs={}). Ensure that the task is authorized to create topics or that the topic"
        " exists and restart the task"
    )
    assert status["tasks"][0]["trace"].endswith(expected)
    del creation["topic.creation.default.replication.factor"]
    client.create(f"{name}-b", source_config(tmp_path / "in.txt", topic, **creation), 500)
    status = client.status(f"{name}-b")
    assert status["connector"]["state"] == "FAILED"
    assert status["connector"]["trace"].endswith(
        'Missing required configuration "topic.creation.default.replication.factor" which has no default value.'
    )


def test_settings_that_cannot_be_done_are_refused_by_validation(client: Client, name: str, topic: str) -> None:
    config = {
        **source_config(Path("in.txt"), topic),
        "name": name,
        "producer.override.linger.ms": "soon",
        "exactly.once.support": "required",
        "task.max": "1",
    }
    infos = client.call("PUT", "/connector-plugins/FileStreamSource/config/validate", 200, json=config)
    errors = {each["value"]["name"]: each["value"]["errors"] for each in infos["configs"] if each["value"]["errors"]}
    key = "producer.override.linger.ms"
    refused = f"Invalid value soon for configuration {key}: linger.ms must be a whole number, not 'soon'."
    assert errors == {
        "exactly.once.support": ["This worker does not have exactly-once source support enabled."],
        key: [refused],
    }
    assert infos["error_count"] == 2
    assert infos["unknown_keys"] == [{"name": "task.max", "did_you_mean": "tasks.max"}]
