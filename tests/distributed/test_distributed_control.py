"""Pause, resume, stop and delete (KIP-52, KIP-875), over the leader and over workers that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_harness import Cluster, Faulty, Worker, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


@pytest.fixture
def pair(three: Cluster, name: str, topic: str, tmp_path: Path) -> tuple[str, str]:
    """A source and a sink that have taken a line from in.txt to out.txt."""
    (tmp_path / "in.txt").write_text("one\n")
    source, sink = f"{name}-in", f"{name}-out"
    three.workers[0].create(source, source_config(tmp_path / "in.txt", topic))
    three.workers[1].create(sink, sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one"], "the first line")
    return source, sink


def everywhere(cluster: Cluster, name: str, connector: str, *tasks: str) -> None:
    for worker in cluster.workers:
        worker.await_states(name, connector, *tasks)


# --- KIP-52 -----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(52, "pause: 202, asynchronously suspends the connector and its tasks; a no-op when already paused")
@pytest.mark.kip(52, "resume: 202, asynchronously resumes processing; a no-op when already started")
def test_any_worker_pauses_and_resumes(three: Cluster, pair: tuple[str, str], tmp_path: Path) -> None:
    text = ["one"]
    for number, worker in enumerate(three.workers):
        for name in pair:
            for _ in range(2):
                worker.call("PUT", f"/connectors/{name}/pause", 202)
            everywhere(three, name, "PAUSED", "PAUSED")
        with (tmp_path / "in.txt").open("a") as file:
            file.write(f"{number}\n")
        for name in pair:
            for _ in range(2):
                worker.call("PUT", f"/connectors/{name}/resume", 202)
            everywhere(three, name, "RUNNING", "RUNNING")
        text.append(str(number))
        await_(lambda expected=list(text): lines(tmp_path / "out.txt") == expected, "the next line")  # type: ignore[misc]


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
        ("DELETE", "", "Connector nobody not found"),
    ],
)
def test_control_of_an_unknown_connector_is_404(three: Cluster, method: str, path: str, message: str) -> None:
    for worker in three.workers:
        answer = worker.settle(method, f"/connectors/nobody/{path}", 404)
        assert answer == {"error_code": 404, "message": message}


@pytest.mark.kip(52, "the paused state stays over rebalances")
def test_what_is_paused_stays_so_when_its_tasks_are_made_anew(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=2)
    # Who is paused before it has tasks makes none, as in Apache's.
    everywhere(three, name, "RUNNING", "RUNNING", "RUNNING")
    three.workers[0].put(name, "pause")
    everywhere(three, name, "PAUSED", "PAUSED", "PAUSED")
    other = faulty.create(tasks=1, name=f"{name}-other")  # a rebalance
    everywhere(three, other, "RUNNING", "RUNNING")
    everywhere(three, name, "PAUSED", "PAUSED", "PAUSED")
    assert faulty.count("connector.start") == 2


# --- KIP-875 ----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(875, "Can stop a running connector")
@pytest.mark.kip(875, "Can stop a paused connector")
@pytest.mark.kip(875, "Can stop a stopped connector (i.e., stopping an already-stopped connector is idempotent)")
@pytest.mark.kip(875, "Cannot see task configuration or status information in the REST API for a stopped connector")
def test_stop(three: Cluster, pair: tuple[str, str]) -> None:
    leader, (follower, other) = three.leader(), three.followers()
    follower.put(pair[1], "pause")
    everywhere(three, pair[1], "PAUSED", "PAUSED")
    for worker in (follower, leader, other):
        for name in pair:
            worker.settle("PUT", f"/connectors/{name}/stop", 204)
    for name in pair:
        everywhere(three, name, "STOPPED")
        for worker in three.workers:
            assert worker.call("GET", f"/connectors/{name}/tasks", 200) == []
            assert worker.call("GET", f"/connectors/{name}", 200)["tasks"] == []
            assert worker.call("GET", f"/connectors/{name}/tasks/0/status", 404)["message"] == (
                f"No status found for task {name}-0"
            )


@pytest.mark.kip(875, "Can delete a stopped connector")
def test_a_stopped_connector_can_be_deleted(three: Cluster, pair: tuple[str, str]) -> None:
    follower = three.followers()[0]
    for name in pair:
        follower.put(name, "stop")
        follower.settle("DELETE", f"/connectors/{name}", 204)
    for name in pair:
        gone(three, name)


@pytest.mark.kip(875, "Can resume a stopped connector")
@pytest.mark.kip(875, "Can pause a stopped connector")
@pytest.mark.parametrize(("verb", "state"), [("resume", "RUNNING"), ("pause", "PAUSED")])
def test_what_was_stopped_can_be_resumed_and_paused(
    three: Cluster, pair: tuple[str, str], verb: str, state: str, tmp_path: Path
) -> None:
    follower = three.followers()[0]
    for name in pair:
        follower.put(name, "stop")
        everywhere(three, name, "STOPPED")
        follower.put(name, verb)
    for name in pair:
        everywhere(three, name, state, state)
        if verb == "pause":
            follower.put(name, "resume")
            everywhere(three, name, "RUNNING", "RUNNING")
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two"], "the second line, and the first not again")


@pytest.mark.kip(875, "Can resume a stopped connector")
@pytest.mark.kip(875, "Can pause a stopped connector")
def test_a_stop_that_is_overtaken_still_counts(three: Cluster, faulty: Faulty) -> None:
    """Whatever the workers have carried out of a request when the next one comes."""
    name = faulty.create(tasks=2)
    for worker in three.workers:
        worker.put(name, "stop")
        worker.put(name, "pause")
        everywhere(three, name, "PAUSED", "PAUSED", "PAUSED")
        worker.put(name, "stop")
        worker.put(name, "resume")
        everywhere(three, name, "RUNNING", "RUNNING", "RUNNING")
        worker.put(name, "stop")
        worker.put(name, "resume")
        everywhere(three, name, "RUNNING", "RUNNING", "RUNNING")


@pytest.mark.kip(875, "Stopping a failed connector updates its state to STOPPED in the REST API")
@pytest.mark.kip(875, "Stopping a connector that fails during shutdown updates its state to STOPPED in the REST API")
@pytest.mark.kip(875, "Can resume a connector after its Connector has failed both before and during shutdown")
@pytest.mark.parametrize(("fail_in", "before"), [("connector.start", "FAILED"), ("connector.stop", "RUNNING")])
def test_stop_wins_over_failure(three: Cluster, faulty: Faulty, fail_in: str, before: str) -> None:
    name = faulty.create(fail_in, tasks=1)
    follower = three.followers()[0]
    follower.await_states(name, before, *(["RUNNING"] if before == "RUNNING" else []))
    follower.put(name, "stop")
    everywhere(three, name, "STOPPED")
    assert "trace" not in follower.status(name)["connector"]
    faulty.heal()
    follower.put(name, "resume")
    everywhere(three, name, "RUNNING", "RUNNING")


# --- deleting ---------------------------------------------------------------------------------------------------------


def gone(cluster: Cluster, name: str) -> None:
    """On every worker, with all that was known of it."""
    for worker in cluster.workers:
        await_(lambda at=worker: _nothing(at, name), f"{worker.name} forgets {name}")  # type: ignore[misc]
        assert name not in worker.call("GET", "/connectors", 200)
        assert worker.call("GET", f"/connectors/{name}/status", 404)["message"] == (
            f"No status found for connector {name}"
        )


def _nothing(worker: Worker, name: str) -> bool:
    paths = ("", "/config", "/tasks", "/status", "/tasks/0/status", "/offsets")
    return all(worker.http.get(f"/connectors/{name}{path}").status_code == 404 for path in paths)


def test_what_is_deleted_leaves_nothing_but_its_offsets(
    three: Cluster, pair: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    source, sink = pair
    leader, follower = three.leader(), three.followers()[0]
    partition = {"filename": str(tmp_path / "in.txt")}
    await_(lambda: [each["partition"] for each in leader.offsets(source)] == [partition], "the commit")
    follower.settle("DELETE", f"/connectors/{source}", 204)
    leader.settle("DELETE", f"/connectors/{sink}", 204)
    for name in pair:
        gone(three, name)
        assert leader.call("GET", f"/connectors/{name}/topics", 200)[name]["topics"] == []
        leader.settle("DELETE", f"/connectors/{name}", 404)
    follower.create(source, source_config(tmp_path / "in.txt", topic), "STOPPED")
    assert follower.offsets(source) == [{"partition": partition, "offset": {"position": 4}}]


def test_a_name_can_be_used_again_at_once(three: Cluster, faulty: Faulty) -> None:
    name = faulty.create(tasks=3)
    everywhere(three, name, "RUNNING", "RUNNING", "RUNNING", "RUNNING")
    for worker in three.workers:
        worker.settle("DELETE", f"/connectors/{name}", 204)
        faulty.create(tasks=2, worker=worker)
        everywhere(three, name, "RUNNING", "RUNNING", "RUNNING")
