"""Task configs made by the owner, written by the leader, and run by all workers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from cluster_harness import Cluster, Faulty, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


def owners(status: dict[str, list[dict[str, str]]]) -> Counter[str]:
    return Counter(task["worker_id"] for task in status["tasks"])


def test_tasks_are_spread_over_all_workers(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=6)
    status = three.workers[0].await_states(name, "RUNNING", *["RUNNING"] * 6)
    assert owners(status) == {worker.id: 2 for worker in three.workers}
    for worker in three.workers:
        tasks = worker.call("GET", f"/connectors/{name}/tasks", 200)
        assert [each["id"]["task"] for each in tasks] == list(range(6))
        assert [each["config"]["number"] for each in tasks] == [str(number) for number in range(6)]


def test_connectors_are_spread_over_all_workers(three: Cluster, faulty: Faulty) -> None:
    names = [faulty.create(tasks=0, name=faulty.named(str(number))) for number in range(3)]
    found = {three.workers[0].await_states(name, "RUNNING")["connector"]["worker_id"] for name in names}
    assert found == {worker.id for worker in three.workers}


def test_more_and_fewer_tasks(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=2)
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    for count in (5, 1, 0, 3):
        follower.settle("PUT", f"/connectors/{name}/config", 200, json=faulty.config(tasks=count))
        for worker in three.workers:
            worker.await_states(name, "RUNNING", *["RUNNING"] * count)
            assert len(worker.call("GET", f"/connectors/{name}", 200)["tasks"]) == count
        assert follower.http.get(f"/connectors/{name}/tasks/{count}/status").status_code == 404
    starts, stops = faulty.count("task.start"), faulty.count("task.stop")
    assert (starts, stops) == (2 + 5 + 1 + 3, 2 + 5 + 1)


def test_a_new_config_reaches_the_tasks(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    follower = three.followers()[1]
    config = source_config(tmp_path / "in.txt", topic)
    follower.create(name, config)
    follower.create(f"{name}-out", sink_config(tmp_path / "out.txt", f"{topic}-b"))
    await_(lambda: follower.offsets(name), "the first line")
    follower.settle("PATCH", f"/connectors/{name}/config", 200, json={"topic": f"{topic}-b"})
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    await_(lambda: lines(tmp_path / "out.txt") == ["two"], "the next line in the other topic")


def test_the_same_config_again_leaves_the_tasks_alone(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=2)
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    follower.settle("PUT", f"/connectors/{name}/config", 200, json=faulty.config(tasks=2))
    await_(lambda: faulty.count("connector.start") == 2, "the connector with its new config")
    await_(lambda: faulty.count("connector.task_configs") == 2, "its task configs")
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    assert faulty.count("task.start") == 2
    assert faulty.count("task.stop") == 0


def test_task_configs_of_sinks_have_their_topics(three: Cluster, name: str, topic: str, tmp_path: Path) -> None:
    three.followers()[0].create(name, sink_config(tmp_path / "out.txt", topic))
    three.leader().await_states(name, "RUNNING", "RUNNING")
    (task,) = three.leader().call("GET", f"/connectors/{name}/tasks", 200)
    assert task["config"]["topics"] == topic
    assert task["config"]["task.class"].endswith("FileStreamSinkTask")


def test_too_many_tasks_fail_the_connector(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=3, tasks_max="2")
    for worker in three.workers:
        trace = worker.await_states(name, "FAILED")["connector"]["trace"]
        assert f"The connector {name} has generated 3 tasks, which is greater than 2" in trace
        assert worker.call("GET", f"/connectors/{name}/tasks", 200) == []


def test_a_connector_that_cannot_say_its_tasks_is_asked_again(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("connector.task_configs", tasks=2)
    await_(lambda: faulty.count("connector.task_configs") >= 2, "it is asked again")
    assert three.leader().states(name) == ("RUNNING", [])
    faulty.heal()
    three.leader().await_states(name, "RUNNING", "RUNNING", "RUNNING")


def test_tasks_that_failed_are_not_started_by_a_rebalance(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create("task.poll", tasks=3)
    three.workers[0].await_states(name, "RUNNING", "FAILED", "FAILED", "FAILED")
    started = faulty.count("task.start")
    faulty.heal()
    for number in range(2):
        other = faulty.create(tasks=0, name=faulty.named(str(number)))
        three.workers[0].await_states(other, "RUNNING")
        three.workers[0].settle("DELETE", f"/connectors/{other}", 204)
    assert three.workers[0].states(name) == ("RUNNING", ["FAILED"] * 3)
    assert faulty.count("task.start") == started


def test_one_connector_that_hangs_does_not_hold_up_others(three: Cluster, faulty: Faulty) -> None:
    hanging = faulty.create("hang:connector.start", tasks=1, name=faulty.named("hanging"))
    await_(lambda: faulty.count("connector.start"), "the start that hangs")
    names = [faulty.create(tasks=3, name=faulty.named(str(number))) for number in range(3)]
    for name in names:
        three.workers[0].await_states(name, "RUNNING", *["RUNNING"] * 3)
    assert three.workers[0].states(hanging) == ("UNASSIGNED", [])
    three.followers()[0].settle("DELETE", f"/connectors/{hanging}", 204)
    await_(lambda: three.workers[0].states(hanging) is None, "it is gone")
