"""Connectors created and configured over any worker of a cluster (KIP-980), and what all workers then know."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_harness import Cluster, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


@pytest.mark.kip(980, "Can create a connector in the PAUSED state in distributed mode")
@pytest.mark.kip(980, "Can create a connector in the STOPPED state in distributed mode")
@pytest.mark.kip(980, "No tasks are spawned for a connector created in the PAUSED or STOPPED state")
@pytest.mark.kip(980, "Can resume a connector created in the PAUSED or STOPPED state")
@pytest.mark.kip(980, "Can delete a connector created in the PAUSED or STOPPED state")
def test_created_in_a_state_over_any_worker(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    asked = {"PAUSED": three.workers[0], "stopped": three.workers[1], "Paused": three.workers[2]}
    for state, worker in asked.items():
        created = worker.create(f"{name}-{state}", source_config(tmp_path / "in.txt", topic), state)
        assert created["tasks"] == []
    for state in asked:
        for worker in three.workers:
            worker.await_states(f"{name}-{state}", state.upper())
            assert worker.call("GET", f"/connectors/{name}-{state}/tasks", 200) == []
            assert worker.offsets(f"{name}-{state}") == []
    three.workers[2].put(f"{name}-PAUSED", "resume")
    three.workers[0].put(f"{name}-stopped", "resume")
    for state in ("PAUSED", "stopped"):
        three.workers[1].await_states(f"{name}-{state}", "RUNNING", "RUNNING")
    await_(lambda: three.workers[0].offsets(f"{name}-stopped"), "the first line")
    three.workers[1].settle("DELETE", f"/connectors/{name}-Paused", 204)
    for worker in three.workers:
        await_(lambda at=worker: at.states(f"{name}-Paused") is None, "the status gone")  # type: ignore[misc]
        worker.call("GET", f"/connectors/{name}-Paused", 404)


@pytest.mark.kip(980, "Creating a connector with no explicit state specified results in a RUNNING state connector")
def test_created_running(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    for worker, state in zip(three.workers, (None, "RUNNING", "running"), strict=True):
        created = worker.create(f"{name}-{state}", source_config(tmp_path / "in.txt", topic), state)
        assert created == {
            "name": f"{name}-{state}",
            "config": {**source_config(tmp_path / "in.txt", topic), "name": f"{name}-{state}"},
            "tasks": [],
            "type": "source",
        }
    for worker, state in zip(three.workers, (None, "RUNNING", "running"), strict=True):
        worker.await_states(f"{name}-{state}", "RUNNING", "RUNNING")


@pytest.mark.kip(980, "If the value of the initial_state field is invalid, a 400 Bad Request response will be returned")
def test_what_is_refused_is_refused_by_every_worker_and_creates_nothing(
    three: Cluster, name: str, topic: str, tmp_path: Path
) -> None:
    good = source_config(tmp_path / "in.txt", topic)
    refused = {
        "must be one of RUNNING, PAUSED, STOPPED": {"name": name, "config": good, "initial_state": "SLEEPING"},
        "contains no connector type": {"name": name, "config": {"topic": topic}},
        "Failed to find any class": {"name": name, "config": {"connector.class": "Nothing"}},
        "Connector configuration is invalid": {"name": name, "config": {**good, "batch.size": "none"}},
        "doesn't match connector name": {"name": name, "config": {**good, "name": "other"}},
    }
    for worker in three.workers:
        for text, body in refused.items():
            assert text in worker.settle("POST", "/connectors", 400, json=body)["message"]
        worker.call("GET", f"/connectors/{name}", 404)


@pytest.mark.kip(980, "Can modify the offsets for a connector created in the STOPPED state")
def test_offsets_before_the_first_start(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    asked = three.followers()[0]
    asked.create(f"{name}-in", source_config(tmp_path / "in.txt", topic), "STOPPED")
    partition = {"filename": str(tmp_path / "in.txt")}
    body = {"offsets": [{"partition": partition, "offset": {"position": 8}}]}
    asked.settle("PATCH", f"/connectors/{name}-in/offsets", 200, json=body)
    asked.put(f"{name}-in", "resume")
    asked.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["three"], "the third line alone")


def test_a_name_is_taken_on_all_workers_at_once(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    config = source_config(tmp_path / "in.txt", topic)
    three.leader().create(name, config)
    for worker in three.workers:
        body = {"name": name, "config": config}
        assert worker.settle("POST", "/connectors", 409, json=body)["message"] == f"Connector {name} already exists"


def test_put_creates_then_replaces(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    config = source_config(tmp_path / "in.txt", topic)
    leader, (follower, other) = three.leader(), three.followers()
    created = follower.http.put(f"/connectors/{name}/config", json=config)
    assert created.status_code == 201
    assert created.headers["location"] == f"{follower.url}/connectors/{name}"
    other.await_states(name, "RUNNING", "RUNNING")
    for worker in (leader, follower, other):
        more = {**config, "batch.size": str(worker.port)}
        replaced = worker.settle("PUT", f"/connectors/{name}/config", 200, json=more)
        assert replaced["config"] == {**more, "name": name}
        assert replaced["tasks"] == [{"connector": name, "task": 0}]
        # Whoever has answered has it; the others read it from Kafka.
        for each in three.workers:
            await_(
                lambda at=each, wanted={**more, "name": name}: (  # type: ignore[misc]
                    at.call("GET", f"/connectors/{name}/config", 200) == wanted
                ),
                f"{each.name} knows the new config",
            )
    other.await_states(name, "RUNNING", "RUNNING")


def test_patch_changes_some_keys_and_removes_others(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    config = {**source_config(tmp_path / "in.txt", topic), "name": name}
    three.leader().create(name, config)
    follower = three.followers()[0]
    answer = follower.settle("PATCH", f"/connectors/{name}/config", 200, json={"batch.size": "7", "topic": "other"})
    assert answer["config"] == {**config, "batch.size": "7", "topic": "other"}
    answer = follower.settle("PATCH", f"/connectors/{name}/config", 200, json={"batch.size": None, "topic": topic})
    assert answer["config"] == config
    for worker in three.workers:
        worker.settle("PATCH", f"/connectors/{name}/config", 400, json={"name": "other"})
        worker.settle("PATCH", f"/connectors/{name}/config", 400, json={"batch.size": "none"})
        unknown = worker.settle("PATCH", "/connectors/nobody/config", 404, json={"batch.size": "7"})
        assert unknown["message"] == "Connector nobody not found"


@pytest.mark.parametrize("created", ["PAUSED", "STOPPED"])
def test_a_new_config_leaves_the_wanted_state(
    three: Cluster, name: str, topic: str, tmp_path: Path, created: str
) -> None:
    config = source_config(tmp_path / "in.txt", topic)
    worker = three.followers()[1]
    worker.create(name, config, created)
    worker.await_states(name, created)
    worker.settle("PUT", f"/connectors/{name}/config", 200, json={**config, "batch.size": "7"})
    worker.put(name, "resume")
    worker.await_states(name, "RUNNING", "RUNNING")
    assert worker.call("GET", f"/connectors/{name}/tasks", 200)[0]["config"]["batch.size"] == "7"
