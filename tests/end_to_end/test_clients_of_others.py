"""REST clients that other people wrote, and a fuzzer that reads our OpenAPI document, against a running worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from harness import Client, await_, lines, sink_config, source_config
from hypothesis import HealthCheck, given, settings
from kafka_connect import KafkaConnect
from kafkaconnect.connect import Connect
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

pytestmark = pytest.mark.spark


def test_kafka_connect_py(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    connect = KafkaConnect(url=client.url)
    (tmp_path / "in.txt").write_text("one\n")
    created = connect.create_connector({"name": name, "config": source_config(tmp_path / "in.txt", topic)})
    assert created["tasks"] == [{"connector": name, "task": 0}]
    assert list(connect.list_connectors(state="RUNNING")) == [name]
    client.await_states(name, "RUNNING", "RUNNING")
    connect.pause_connector(name)
    client.await_states(name, "PAUSED", "PAUSED")
    connect.resume_connector(name)
    client.await_states(name, "RUNNING", "RUNNING")
    connect.restart_connector(name)
    restarted = connect.restart_connector(name, include_tasks=True, only_failed=False)
    assert restarted["connector"]["state"] == "RESTARTING"
    client.await_states(name, "RUNNING", "RUNNING")
    connect.restart_connector_task(name, 0)
    assert connect.get_connector_status(name)["name"] == name
    assert connect.get_connector_task_status(name, 0)["id"] == 0
    connect.update_connector(name, {**source_config(tmp_path / "in.txt", topic), "batch.size": "5"})
    assert connect.get_connector_config(name)["batch.size"] == "5"
    assert {"source", "sink"} <= {plugin["type"] for plugin in connect.list_connector_plugins()}
    connect.stop_connector(name)
    client.await_states(name, "STOPPED")
    connect.delete_connector(name)
    client.call("GET", f"/connectors/{name}", 404)


def test_kafkaconnect(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    connect = Connect(connect_url=client.url)
    connect.create_or_update(name, json.dumps({"name": name, **source_config(tmp_path / "in.txt", topic)}))
    assert name in json.loads(connect.list())
    assert json.loads(connect.info(name))["name"] == name
    assert json.loads(connect.status(name))["name"] == name
    connect.pause(name)
    client.await_states(name, "PAUSED", "PAUSED")
    connect.resume(name)
    client.await_states(name, "RUNNING", "RUNNING")
    connect.restart(name)
    connect.remove(name)
    client.call("GET", f"/connectors/{name}", 404)


def test_the_openapi_document_is_true(client: Client) -> None:
    """Calls between workers answer 500 in standalone mode and are left out."""
    described = schemathesis.openapi.from_url(f"{client.url}/openapi.json").exclude(tag="internal")
    found = list(described.get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found)
    assert len(operations) > 25
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=6, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        def check(case: Any) -> None:
            # A body can fit the schema and still name a class that does not exist.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        check()


def test_what_the_quick_reader_pastes(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    """Trailing slashes, booleans in any case, numbers as JSON numbers, a body where none is expected."""
    (tmp_path / "in.txt").write_text("one\n")
    body = {"name": f"{name}-in", "config": {**source_config(tmp_path / "in.txt", topic), "tasks.max": 1}}
    client.call("POST", "/connectors/", 201, json=body)
    client.call("POST", "/connectors/", 201, json={"name": f"{name}-out", "config": sink_config(tmp_path / "o", topic)})
    await_(lambda: lines(tmp_path / "o") == ["one"], "the line")
    client.call("POST", f"/connectors/{name}-in/restart/?includeTasks=TRUE&onlyFailed=False", 202, json={})
    client.call("PUT", f"/connectors/{name}-in/pause/", 202, json={"any": "thing"})
    client.await_states(f"{name}-in", "PAUSED", "PAUSED")
    assert client.call("GET", f"/connectors/{name}-out/topics", 200) == {f"{name}-out": {"topics": [topic]}}
