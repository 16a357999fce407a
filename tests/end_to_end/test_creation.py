"""KIP-980 on a running worker: connectors created in a given state."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Client, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


@pytest.mark.kip(980, "Can create a connector in the PAUSED state in standalone mode")
@pytest.mark.kip(980, "Can create a connector in the STOPPED state in standalone mode")
@pytest.mark.kip(980, "No tasks are spawned for a connector created in the PAUSED or STOPPED state")
@pytest.mark.kip(980, "Can resume a connector created in the PAUSED or STOPPED state")
@pytest.mark.kip(980, "Can delete a connector created in the PAUSED or STOPPED state")
@pytest.mark.parametrize("state", ["PAUSED", "STOPPED", "paused", "Stopped"])
def test_created_in_a_state(client: Client, name: str, topic: str, tmp_path: Path, state: str) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    created = client.create(name, source_config(tmp_path / "in.txt", topic), state=state)
    assert created["tasks"] == []
    assert client.states(name) == (state.upper(), [])
    assert client.offsets(name) == []
    client.put(name, "resume")
    client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: client.offsets(name), "the first line")
    client.delete(name)
    client.create(name, source_config(tmp_path / "in.txt", topic), state=state)
    client.delete(name)
    client.call("GET", f"/connectors/{name}", 404)


@pytest.mark.kip(980, "Creating a connector with no explicit state specified results in a RUNNING state connector")
@pytest.mark.parametrize("state", [None, "RUNNING", "running"])
def test_created_running(client: Client, name: str, topic: str, tmp_path: Path, state: str | None) -> None:
    created = client.create(name, source_config(tmp_path / "in.txt", topic), state=state)
    assert created["tasks"] == [{"connector": name, "task": 0}]
    client.await_states(name, "RUNNING", "RUNNING")


@pytest.mark.kip(980, "If the value of the initial_state field is invalid, a 400 Bad Request response will be returned")
def test_an_invalid_state_creates_nothing(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    answer = client.create(name, source_config(tmp_path / "in.txt", topic), 400, state="SLEEPING")
    assert all(valid in answer["message"] for valid in ("RUNNING", "PAUSED", "STOPPED"))
    client.call("GET", f"/connectors/{name}", 404)


@pytest.mark.kip(980, "Can modify the offsets for a connector created in the STOPPED state")
def test_offsets_before_the_first_start(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic), state="STOPPED")
    partition = {"filename": str(tmp_path / "in.txt")}
    body = {"offsets": [{"partition": partition, "offset": {"position": 8}}]}
    client.call("PATCH", f"/connectors/{name}-in/offsets", 200, json=body)
    client.put(f"{name}-in", "resume")
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["three"], "the third line alone")


def test_updating_and_patching_a_config(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    config = source_config(tmp_path / "in.txt", topic)
    client.create(name, config)
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", f"{topic}-b"))
    client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: client.offsets(name), "the first line")
    answer = client.call("PATCH", f"/connectors/{name}/config", 200, json={"topic": f"{topic}-b", "batch.size": "7"})
    assert answer["config"]["topic"] == f"{topic}-b"
    client.await_states(name, "RUNNING", "RUNNING")
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    await_(lambda: lines(tmp_path / "out.txt") == ["two"], "the next line in the other topic")
    answer = client.call("PATCH", f"/connectors/{name}/config", 200, json={"batch.size": None})
    assert "batch.size" not in answer["config"]
    client.call("PATCH", f"/connectors/{name}/config", 400, json={"name": "other"})
    client.call("PUT", f"/connectors/{name}/config", 400, json={**config, "batch.size": "none"})
    assert client.call("GET", f"/connectors/{name}/config", 200)["topic"] == f"{topic}-b"
    client.call("PUT", f"/connectors/{name}/config", 200, json=config)
    assert client.call("GET", f"/connectors/{name}/topics", 200)[name]["topics"][:1] == [topic]
