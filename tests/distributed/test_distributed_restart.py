"""Every form of restart (KIP-52, KIP-745), asked of the leader, of the owner, and of a worker that is neither."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cluster_harness import Cluster, Faulty, await_

pytestmark = pytest.mark.spark


# --- KIP-52 -----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(52, "restart: 204, synchronously restarts the connector")
@pytest.mark.kip(52, "restart is sent to the worker that has the connector or task, in two hops at most")
def test_plain_restart_restarts_the_connector_and_not_its_tasks(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create()
    three.workers[0].await_states(name, "RUNNING", "RUNNING", "RUNNING")
    for number, worker in enumerate(three.workers, 1):
        worker.settle("POST", f"/connectors/{name}/restart", 204)
        assert faulty.count("connector.stop") == number
        assert faulty.count("connector.start") == number + 1
        worker.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    assert faulty.count("task.start") == 2


@pytest.mark.kip(52, "restart: 204, synchronously restarts the connector")
def test_a_connector_that_does_not_start_again(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create()
    three.workers[0].await_states(name, "RUNNING", "RUNNING", "RUNNING")
    three.workers[0].settle("PUT", f"/connectors/{name}/config", 200, json=faulty.config("connector.start"))
    for worker in three.workers:
        worker.await_states(name, "FAILED", "RUNNING", "RUNNING")
        answer = worker.settle("POST", f"/connectors/{name}/restart", 500)
        assert answer == {"error_code": 500, "message": f"Failed to start connector: {name}"}
        trace = worker.await_states(name, "FAILED", "RUNNING", "RUNNING")["connector"]["trace"]
        assert "told to fail in connector.start" in trace
    faulty.heal()
    three.workers[0].settle("POST", f"/connectors/{name}/restart", 204)
    three.workers[0].await_states(name, "RUNNING", "RUNNING", "RUNNING")


@pytest.mark.kip(52, "restart task: 204 on success, 404 if the task does not exist")
@pytest.mark.kip(52, "restart is sent to the worker that has the connector or task, in two hops at most")
def test_task_restart_restarts_that_task_alone(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("task.poll", tasks=3)
    three.workers[0].await_states(name, "RUNNING", "FAILED", "FAILED", "FAILED")
    assert "told to fail in task.poll" in three.workers[0].status(name)["tasks"][1]["trace"]
    faulty.heal()
    states = ["FAILED", "FAILED", "FAILED"]
    # From one worker: of three tasks on three workers, two are elsewhere.
    follower = three.followers()[0]
    for task in range(3):
        follower.settle("POST", f"/connectors/{name}/tasks/{task}/restart", 204)
        states[task] = "RUNNING"
        follower.await_states(name, "RUNNING", *states)
    for worker in three.workers:
        missing = worker.settle("POST", f"/connectors/{name}/tasks/7/restart", 404)
        assert missing["message"] == f"Unknown task: {name}-7"
        assert worker.states(name) == ("RUNNING", states)
    assert faulty.count("task.start") == 6


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_second_restart_meanwhile_is_409(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("hang:connector.stop")
    first, second, third = three.workers
    first.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(first.settle, "POST", f"/connectors/{name}/restart", 204)
        await_(lambda: faulty.count("connector.stop"), "the first restart")
        for worker in (second, third):
            answer = worker.settle("POST", f"/connectors/{name}/restart", 409)
            assert answer["message"] == f"Connector {name} is already being restarted"
        faulty.heal()
        slow.result()


@pytest.mark.kip(52, "restart task: 409 if it is already being restarted")
def test_a_second_restart_of_a_task_meanwhile_is_409(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("hang:task.stop", tasks=1)
    first, second, third = three.workers
    first.await_states(name, "RUNNING", "RUNNING")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(first.settle, "POST", f"/connectors/{name}/tasks/0/restart", 204)
        await_(lambda: faulty.count("task.stop"), "the first restart")
        for worker in (second, third):
            answer = worker.settle("POST", f"/connectors/{name}/tasks/0/restart", 409)
            assert answer["message"] == f"Task {name}-0 is already being restarted"
        faulty.heal()
        slow.result()


# --- KIP-745 ----------------------------------------------------------------------------------------------------------


def _restarting(body: Any) -> tuple[bool, list[int]]:
    tasks = [task["id"] for task in body["tasks"] if task["state"] == "RESTARTING"]
    return body["connector"]["state"] == "RESTARTING", tasks


@pytest.mark.kip(745, "includeTasks and onlyFailed: which instances are restarted")
@pytest.mark.kip(745, "distributed: every worker restarts its own instances")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("includeTasks=true", (True, [0, 1, 2])),
        ("includeTasks=TRUE&onlyFailed=True", (False, [0, 1, 2])),
        ("onlyFailed=true", (False, [])),
    ],
)
def test_restart_of_a_connector_whose_tasks_failed(
    three: Cluster, faulty: Faulty, query: str, expected: tuple[bool, list[int]]
) -> None:
    name = faulty.create("task.poll", tasks=3)
    after = "RUNNING" if expected[1] else "FAILED"
    three.workers[0].await_states(name, "RUNNING", "FAILED", "FAILED", "FAILED")
    follower = three.followers()[1]
    before = follower.status(name)
    faulty.heal()
    body = follower.settle("POST", f"/connectors/{name}/restart?{query}", 202)
    assert _restarting(body) == expected
    assert all("trace" not in each for each in body["tasks"] if each["state"] == "RESTARTING")
    assert [each["worker_id"] for each in body["tasks"]] == [each["worker_id"] for each in before["tasks"]]
    for worker in three.workers:
        worker.await_states(name, "RUNNING", after, after, after)
    assert faulty.count("connector.start") == 1 + expected[0]
    assert faulty.count("task.start") == 3 + len(expected[1])


@pytest.mark.kip(745, "onlyFailed=true restarts a failed connector and leaves running tasks alone")
def test_restart_of_a_failed_connector(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create()
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    follower.settle("PUT", f"/connectors/{name}/config", 200, json=faulty.config("connector.start"))
    follower.await_states(name, "FAILED", "RUNNING", "RUNNING")
    faulty.heal()
    body = follower.settle("POST", f"/connectors/{name}/restart?onlyFailed=true", 202)
    assert _restarting(body) == (True, [])
    for worker in three.workers:
        worker.await_states(name, "RUNNING", "RUNNING", "RUNNING")


@pytest.mark.kip(745, "202 also when nothing is failed, and nothing is marked RESTARTING")
def test_restart_of_nothing_failed_changes_nothing(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create()
    three.workers[0].await_states(name, "RUNNING", "RUNNING", "RUNNING")
    before = faulty.calls
    for worker in three.workers:
        body = worker.settle("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", 202)
        assert _restarting(body) == (False, [])
    # What comes later in the config topic is carried out after it.
    three.workers[0].put(name, "pause")
    three.workers[0].await_states(name, "PAUSED", "PAUSED", "PAUSED")
    assert faulty.calls == [*before, "connector.stop"]


@pytest.mark.kip(745, "a stopped connector stays STOPPED, a paused one comes back paused")
@pytest.mark.parametrize(("verb", "state", "tasks"), [("stop", "STOPPED", 0), ("pause", "PAUSED", 2)])
def test_restart_keeps_the_wanted_state(three: Cluster, faulty: Faulty, verb: str, state: str, tasks: int) -> None:
    name = faulty.create()
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    follower.put(name, verb)
    follower.await_states(name, state, *["PAUSED"] * tasks)
    body = follower.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    assert _restarting(body) == ((True, [0, 1]) if tasks else (False, []))
    for worker in three.workers:
        worker.await_states(name, state, *["PAUSED"] * tasks)
    follower.settle("POST", f"/connectors/{name}/restart", 204)
    for worker in three.workers:
        worker.await_states(name, state, *["PAUSED"] * tasks)
    assert faulty.count("connector.start") == 1


@pytest.mark.kip(745, "restart: 409 if it is already being restarted (KIP-52)")
def test_a_second_plan_meanwhile_is_409(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("hang:connector.stop")
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    follower.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    await_(lambda: faulty.count("connector.stop"), "the first restart")
    answer = follower.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 409)
    assert answer["message"] == f"Connector {name} is already being restarted"
    faulty.heal()
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    follower.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
@pytest.mark.kip(52, "restart task: 409 if it is already being restarted")
@pytest.mark.parametrize(("hangs", "path"), [("connector.stop", ""), ("task.stop", "/tasks/0")])
def test_a_restart_under_way_counts_for_the_other_form(three: Cluster, faulty: Faulty, hangs: str, path: str) -> None:
    name = faulty.create(f"hang:{hangs}", tasks=1)
    leader = three.leader()
    leader.await_states(name, "RUNNING", "RUNNING")
    plan, plain = f"/connectors/{name}/restart?includeTasks=true", f"/connectors/{name}{path}/restart"
    problem = f"{f'Task {name}-0' if path else f'Connector {name}'} is already being restarted"

    leader.settle("POST", plan, 202)
    for worker in three.workers:
        assert worker.call("POST", plain, 409)["message"] == problem
    faulty.heal()
    leader.await_states(name, "RUNNING", "RUNNING")

    faulty.break_again()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(leader.settle, "POST", plain, 204)
        await_(lambda: faulty.count(hangs) == 2, "it has begun")
        for worker in three.workers:
            assert worker.call("POST", plan, 409)["message"] == problem
        faulty.heal()
        slow.result()
    leader.await_states(name, "RUNNING", "RUNNING")


@pytest.mark.kip(745, "distributed: every worker restarts its own instances")
def test_a_restart_moves_nothing_to_another_worker(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=3)
    leader = three.leader()

    def placed() -> list[str]:
        found = leader.await_states(name, "RUNNING", *["RUNNING"] * 3)
        return [found["connector"]["worker_id"], *(task["worker_id"] for task in found["tasks"])]

    before = placed()
    leader.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    await_(lambda: faulty.count("task.start") == 6, "all tasks started again")
    assert placed() == before
    for worker in three.workers:
        told = [line for line in worker.log.read_text().splitlines() if name in line]
        assert not any("Giving up" in line for line in told)
