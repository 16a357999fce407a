"""KIP-52 and KIP-745 on a running worker: pause, resume and every form of restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Client, await_, lines, source_config

from headgate.cli.assembly import StandaloneWorker

pytestmark = pytest.mark.spark


@pytest.fixture
def faulty(client: Client, name: str, topic: str, tmp_path: Path) -> Iterator[Any]:
    """Creates a connector that fails as told, until the file `tmp_path/fail` is removed."""

    def create(fail_in: str = "", tasks: int = 2, expected: int = 201, **more: str) -> str:
        (tmp_path / "fail").touch()
        config = {
            "connector.class": "FaultySource",
            "topic": topic,
            "fail.in": fail_in,
            "fail.while": str(tmp_path / "fail"),
            "log": str(tmp_path / "calls"),
            "tasks": str(tasks),
            "tasks.max": str(tasks),
            **more,
        }
        client.create(name, config, expected)
        return name

    yield create
    (tmp_path / "fail").unlink(missing_ok=True)


# --- KIP-52 -----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(52, "pause: 202, asynchronously suspends the connector and its tasks; a no-op when already paused")
def test_pause_suspends_connector_and_tasks_and_may_be_repeated(client: Client, faulty: Any) -> None:
    name = faulty(count="1000000")
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    for _ in range(2):
        client.put(name, "pause", 202)
        client.await_states(name, "PAUSED", "PAUSED", "PAUSED")


@pytest.mark.kip(52, "resume: 202, asynchronously resumes processing; a no-op when already started")
def test_resume_goes_on_and_may_be_repeated(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    client.create(name, source_config(source, topic))
    client.await_states(name, "RUNNING", "RUNNING")
    client.put(name, "pause")
    client.await_states(name, "PAUSED", "PAUSED")
    before = client.offsets(name)
    with source.open("a") as file:
        file.write("two\n")
    for _ in range(2):
        client.put(name, "resume", 202)
        client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: client.offsets(name)[0]["offset"]["position"] == 8, "the second line")
    assert before[0]["offset"]["position"] in (0, 4)


@pytest.mark.kip(52, "pause, resume, restart: 404 if the connector does not exist")
@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("PUT", "pause", "Unknown connector nobody"),
        ("PUT", "resume", "Unknown connector nobody"),
        ("PUT", "stop", "Unknown connector nobody"),
        ("POST", "restart", "Unknown connector: nobody"),
        ("POST", "restart?includeTasks=true", "Unknown connector: nobody"),
        ("POST", "restart?onlyFailed=true", "Unknown connector: nobody"),
        ("POST", "tasks/0/restart", "Unknown connector: nobody"),
    ],
)
def test_control_of_an_unknown_connector_is_404(client: Client, method: str, path: str, message: str) -> None:
    answer = client.call(method, f"/connectors/nobody/{path}", 404)
    assert answer == {"error_code": 404, "message": message}


@pytest.mark.kip(52, "restart: 204, synchronously restarts the connector")
def test_plain_restart_restarts_the_connector_and_not_its_tasks(client: Client, faulty: Any, tmp_path: Path) -> None:
    name = faulty()
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    client.call("POST", f"/connectors/{name}/restart", 204)
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    calls = [call for call in lines(tmp_path / "calls") if call != "task.poll"]
    assert calls.count("connector.start") == 2
    assert calls.count("connector.stop") == 1
    assert calls.count("task.start") == 2


@pytest.mark.kip(52, "restart task: 204 on success, 404 if the task does not exist")
def test_task_restart_restarts_that_task_alone(client: Client, faulty: Any, tmp_path: Path) -> None:
    name = faulty("task.poll")
    client.await_states(name, "RUNNING", "FAILED", "FAILED")
    (tmp_path / "fail").unlink()
    client.call("POST", f"/connectors/{name}/tasks/1/restart", 204)
    client.await_states(name, "RUNNING", "FAILED", "RUNNING")
    missing = client.call("POST", f"/connectors/{name}/tasks/7/restart", 404)
    assert missing["message"] == f"Unknown task: {name}-7"
    assert [task["id"] for task in client.status(name)["tasks"]] == [0, 1]


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_second_restart_meanwhile_is_409(client: Client, faulty: Any, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    (tmp_path / "fail").unlink(missing_ok=True)
    name = faulty("hang:connector.stop")
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.call, "POST", f"/connectors/{name}/restart", 204)
        await_(lambda: "connector.stop" in lines(tmp_path / "calls"), "the first restart")
        second = client.call("POST", f"/connectors/{name}/restart", 409)
        (tmp_path / "fail").unlink()
        first.result()
    assert second["message"] == f"Connector {name} is already being restarted"


# --- KIP-745 ----------------------------------------------------------------------------------------------------------


def _restarting(body: Any) -> tuple[bool, list[int]]:
    tasks = [task["id"] for task in body["tasks"] if task["state"] == "RESTARTING"]
    return body["connector"]["state"] == "RESTARTING", tasks


@pytest.mark.kip(745, "includeTasks and onlyFailed: which instances are restarted")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("includeTasks=true", (True, [0, 1])),
        ("includeTasks=true&onlyFailed=false", (True, [0, 1])),
        ("includeTasks=TRUE&onlyFailed=True", (False, [0, 1])),
        ("onlyFailed=true", (False, [])),
    ],
)
def test_restart_of_a_connector_whose_tasks_failed(
    client: Client, faulty: Any, tmp_path: Path, query: str, expected: tuple[bool, list[int]]
) -> None:
    name = faulty("task.poll")
    client.await_states(name, "RUNNING", "FAILED", "FAILED")
    (tmp_path / "fail").unlink()
    body = client.call("POST", f"/connectors/{name}/restart?{query}", 202)
    assert _restarting(body) == expected
    assert all("trace" not in each for each in body["tasks"] if each["state"] == "RESTARTING")
    after = "RUNNING" if expected[1] else "FAILED"
    client.await_states(name, "RUNNING", after, after)


@pytest.mark.kip(745, "onlyFailed=true restarts a failed connector and leaves running tasks alone")
def test_restart_of_a_failed_connector(client: Client, faulty: Any, tmp_path: Path) -> None:
    name = faulty()
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    config = client.call("GET", f"/connectors/{name}/config", 200)
    client.call("PUT", f"/connectors/{name}/config", 500, json={**config, "fail.in": "connector.start"})
    assert client.states(name)[0] == "FAILED"
    (tmp_path / "fail").unlink()
    body = client.call("POST", f"/connectors/{name}/restart?onlyFailed=true&includeTasks=true", 202)
    assert _restarting(body) == (True, [])
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")


@pytest.mark.kip(745, "202 also when nothing is failed, and nothing is marked RESTARTING")
def test_restart_of_nothing_failed_changes_nothing(client: Client, faulty: Any, tmp_path: Path) -> None:
    name = faulty()
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    before = [call for call in lines(tmp_path / "calls") if call != "task.poll"]
    body = client.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", 202)
    assert _restarting(body) == (False, [])
    assert [call for call in lines(tmp_path / "calls") if call != "task.poll"] == before


@pytest.mark.kip(745, "a stopped connector stays STOPPED, a paused one comes back paused")
@pytest.mark.parametrize(("verb", "state"), [("stop", "STOPPED"), ("pause", "PAUSED")])
def test_restart_keeps_the_target_state(client: Client, faulty: Any, verb: str, state: str) -> None:
    name = faulty()
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    client.put(name, verb)
    tasks = ["PAUSED", "PAUSED"] if verb == "pause" else []
    client.await_states(name, state, *tasks)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    client.await_states(name, state, *tasks)


@pytest.mark.kip(745, "status metric knows the value restarting")
def test_states_are_metrics(client: Client, worker: StandaloneWorker, faulty: Any) -> None:
    name = faulty("task.poll")
    client.await_states(name, "RUNNING", "FAILED", "FAILED")
    text = client.http.get("/metrics").text
    assert f'kafka_connect_connector_status{{connector="{name}",status="running"}} 1.0' in text
    assert f'kafka_connect_connector_task_status{{connector="{name}",status="failed",task="1"}} 1.0' in text
    assert f'kafka_connect_task_error_total_record_failures{{connector="{name}",task="1"}} 0.0' in text
    assert f'kafka_connect_worker_connector_failed_task_count{{connector="{name}"}} 2.0' in text
    assert f'kafka_connect_worker_connector_restarting_task_count{{connector="{name}"}} 0.0' in text
    client.delete(name)
    assert not re.search(f'connector="{name}"', client.http.get("/metrics").text)
