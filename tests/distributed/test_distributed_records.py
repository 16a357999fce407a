"""What stands in the internal topics, and in which order: other workers, Apache's too, live by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Faulty, await_, source_config
from topic_reader import TopicRecord, about, read_topic

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

STARTED = {"state": "STARTED", "state.v2": "STARTED"}
PAUSED = {"state": "PAUSED", "state.v2": "PAUSED"}
STOPPED = {"state": "PAUSED", "state.v2": "STOPPED"}


class Topics:
    """The internal topics of the shared workers, as far as one connector is concerned."""

    def __init__(self, broker: Broker, cluster: Cluster) -> None:
        self._broker, self._group = broker.bootstrap, cluster.group

    def configs(self, name: str) -> list[tuple[str, Any]]:
        """Keys without the connector's name."""
        return [(record.key.replace(f"-{name}", ""), record.value) for record in self.config_records(name)]

    def config_records(self, name: str) -> list[TopicRecord]:
        return about(read_topic(self._broker, f"{self._group}-configs"), name)

    def statuses(self, key: str) -> list[TopicRecord]:
        """Of one key, which is one partition: in their order."""
        return [record for record in read_topic(self._broker, f"{self._group}-statuses") if record.key == key]

    def states(self, key: str) -> list[str | None]:
        """Each only once if it was written several times in a row."""
        found: list[str | None] = []
        for record in self.statuses(key):
            state = None if record.value is None else record.value["state"]
            if found[-1:] != [state]:
                found.append(state)
        return found


@pytest.fixture
def topics(broker: Broker, three: Cluster) -> Topics:
    return Topics(broker, three)


@pytest.mark.kip(980, "the target state is written to the config topic before the connector's config")
@pytest.mark.parametrize(("state", "wanted"), [("RUNNING", STARTED), ("PAUSED", PAUSED), ("STOPPED", STOPPED)])
def test_create_writes_the_state_before_the_config(
    three: Cluster, topics: Topics, name: str, topic: str, tmp_path: Path, state: str, wanted: Any
) -> None:
    config = source_config(tmp_path / "in.txt", topic)
    three.followers()[0].create(name, config, state)
    assert topics.configs(name)[:2] == [
        ("target-state", wanted),
        ("connector", {"properties": {**config, "name": name}}),
    ]


def test_task_configs_come_before_their_commit(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create(tasks=3)
    three.workers[0].await_states(name, "RUNNING", *["RUNNING"] * 3)
    (first, *tasks, last) = topics.configs(name)
    assert first[0] == "connector"
    assert [key for key, _ in tasks] == ["task-0", "task-1", "task-2"]
    for number, (_, value) in enumerate(tasks):
        assert value["properties"]["number"] == str(number)
        assert value["properties"]["task.class"] == "faulty.FaultySourceTask"
    assert last == ("commit", {"tasks": 3})


@pytest.mark.kip(52, "the target state is a record of the config topic; absence means started")
@pytest.mark.kip(875, 'target state record {"state", "state.v2"}, which workers from before it can obey')
@pytest.mark.kip(875, "an empty set of task configs is written before the state STOPPED")
def test_stop_writes_no_tasks_before_the_state(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create(tasks=1)
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING")
    for verb in ("pause", "resume", "stop"):
        follower.put(name, verb)
    follower.await_states(name, "STOPPED")
    follower.settle("DELETE", f"/connectors/{name}", 204)
    written = topics.configs(name)
    assert [key for key, _ in written[:3]] == ["connector", "task-0", "commit"]
    assert written[3:] == [
        ("target-state", PAUSED),
        ("target-state", STARTED),
        ("commit", {"tasks": 0}),
        ("target-state", STOPPED),
        ("connector", None),
        ("target-state", None),
    ]


@pytest.mark.kip(980, "a connector created STOPPED is never UNASSIGNED")
@pytest.mark.kip(980, "created with initial_state STOPPED, then paused: no tasks until it is resumed")
def test_what_was_never_resumed_has_no_tasks_and_is_never_unassigned(
    three: Cluster, topics: Topics, name: str, topic: str, tmp_path: Path
) -> None:
    asked = three.followers()[0]
    asked.create(name, source_config(tmp_path / "in.txt", topic), "STOPPED")
    asked.await_states(name, "STOPPED")
    for _ in range(2):
        asked.put(name, "pause")
        asked.await_states(name, "PAUSED")
        for _ in range(2):
            asked.put(name, "stop")
        asked.await_states(name, "STOPPED")
    assert [key for key, _ in topics.configs(name)] == ["target-state", "connector", *["target-state"] * 4]
    assert topics.states(f"status-connector-{name}") == ["STOPPED", *["PAUSED", "STOPPED"] * 2]
    asked.put(name, "resume")
    asked.await_states(name, "RUNNING", "RUNNING")


@pytest.mark.kip(745, "distributed: restart request in the config topic, key restart-connector-{name}")
@pytest.mark.kip(745, "RESTARTING is written for all targets before the request")
def test_restart_writes_restarting_before_the_request(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create("task.poll", tasks=2)
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "FAILED", "FAILED")
    faulty.heal()
    follower.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    follower.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    request = topics.config_records(name)[-1]
    assert request.key == f"restart-connector-{name}"
    assert request.value == {"include-tasks": True, "only-failed": False}
    for key in (f"status-connector-{name}", f"status-task-{name}-0", f"status-task-{name}-1"):
        first = next(each for each in topics.statuses(key) if each.value["state"] == "RESTARTING")
        assert first.timestamp <= request.timestamp, f"{key} was RESTARTING only after the request"
        assert first.value["trace"] is None
        states = topics.states(key)
        # The leader says it first; the owner again once the old instance has ended.
        assert states[states.index("RESTARTING") :] == ["RESTARTING", "UNASSIGNED", "RESTARTING", "RUNNING"]


def test_plain_restarts_write_nothing_to_the_config_topic(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create(tasks=1)
    follower = three.followers()[0]
    follower.await_states(name, "RUNNING", "RUNNING")
    before = topics.configs(name)
    follower.settle("POST", f"/connectors/{name}/restart", 204)
    follower.settle("POST", f"/connectors/{name}/tasks/0/restart", 204)
    follower.await_states(name, "RUNNING", "RUNNING")
    assert topics.configs(name) == before
    # From the beginning to the end of it: so the leader knows that it is under way, and refuses a plan for it.
    seen = ["UNASSIGNED", "RUNNING", "RESTARTING", "UNASSIGNED", "RESTARTING", "RUNNING"]
    assert topics.states(f"status-connector-{name}") == seen
    assert topics.states(f"status-task-{name}-0") == seen


def test_statuses_say_whose_they_are_and_of_which_generation(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create(tasks=3)
    status = three.workers[0].await_states(name, "RUNNING", *["RUNNING"] * 3)
    owners = {"status-connector-" + name: status["connector"]["worker_id"]}
    owners |= {f"status-task-{name}-{each['id']}": each["worker_id"] for each in status["tasks"]}
    assert set(owners.values()) == {worker.id for worker in three.workers}
    for key, owner in owners.items():
        records = topics.statuses(key)
        assert {record.value["worker_id"] for record in records} == {owner}
        generations = [record.value["generation"] for record in records]
        assert generations == sorted(generations)
        assert generations[0] > 0
        said = set(records[-1].value) - {"again"}  # which stands where only the health is new
        assert said == {"state", "trace", "worker_id", "generation", "version", "health"}
        assert records[-1].value["version"] == "0.1.0"
        assert records[0].value["state"] == "UNASSIGNED"
        assert records[0].value["version"] is None


def test_a_deleted_connector_leaves_tombstones(three: Cluster, topics: Topics, faulty: Faulty) -> None:
    name = faulty.create(tasks=2)
    three.workers[0].await_states(name, "RUNNING", "RUNNING", "RUNNING")
    three.followers()[0].settle("DELETE", f"/connectors/{name}", 204)
    for key in (f"status-connector-{name}", f"status-task-{name}-0", f"status-task-{name}-1"):
        await_(lambda each=key: topics.statuses(each)[-1].value is None, f"a tombstone of {key}")  # type: ignore[misc]
        assert topics.states(key)[-2:] == ["UNASSIGNED", None]
