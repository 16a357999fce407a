"""Plugin code that never returns: it costs its own connector, and nobody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from cluster_harness import await_, lines
from lab import GRACE_S, Flow, Lab, metrics
from topic_reader import read_topic

pytestmark = pytest.mark.spark

CONNECTOR_GRACE_S: Final = 5.0
SOON_S: Final = 5.0


class Hanging:
    """The configuration of a source that hangs in some method for as long as a file exists."""

    def __init__(self, folder: Path, topic: str) -> None:
        self._guard, self.log, self._topic = folder / "hang", folder / "calls.txt", topic
        self._guard.touch()

    def config(self, where: str, count: int = 1000) -> dict[str, str]:
        return {
            "connector.class": "faulty.FaultySource",
            "topic": self._topic,
            "fail.in": f"hang:{where}" if where else "",
            "fail.while": str(self._guard),
            "log": str(self.log),
            "count": str(count),
        }

    def calls(self, what: str) -> int:
        return lines(self.log).count(what)

    def let_go(self) -> None:
        self._guard.unlink(missing_ok=True)


@pytest.fixture
def hanging(tmp_path: Path, topic: str) -> Iterator[Hanging]:
    made = Hanging(tmp_path, topic)
    yield made
    made.let_go()


def test_a_connector_that_hangs_in_start(lab: Lab, name: str, tmp_path: Path, hanging: Hanging, unique: Any) -> None:
    leader = lab.cluster.leader()
    leader.create(name, hanging.config("connector.start"))
    await_(lambda: hanging.calls("connector.start"), "it hangs")

    flow = Flow(tmp_path, unique("others"))
    flow.create(lab.workers[0])
    flow.write(10)
    flow.await_all()
    for worker in lab.workers:
        began = time.monotonic()
        assert worker.states(name) == ("UNASSIGNED", [])
        worker.call("GET", f"/connectors/{name}", 200)
        assert worker.healthy()
        assert time.monotonic() - began < SOON_S

    asked = lab.cluster.followers()[0]
    plan = asked.settle("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    assert plan["connector"]["state"] == "RESTARTING"
    await_(lambda: hanging.calls("connector.start") == 2, "it hangs again", CONNECTOR_GRACE_S + SOON_S)
    asked.settle("PUT", f"/connectors/{name}/stop", 204)
    asked.await_states(name, "STOPPED", seconds=CONNECTOR_GRACE_S + SOON_S)
    asked.put(name, "resume")
    await_(lambda: hanging.calls("connector.start") == 3, "and again")
    asked.settle("PUT", f"/connectors/{name}/config", 200, json=hanging.config(""))
    asked.await_states(name, "RUNNING", "RUNNING", seconds=CONNECTOR_GRACE_S + SOON_S)
    asked.settle("PUT", f"/connectors/{name}/config", 200, json=hanging.config("connector.start"))
    await_(lambda: hanging.calls("connector.start") == 5, "and again")
    asked.settle("DELETE", f"/connectors/{name}", 204)
    lab.await_whole(flow.expected, CONNECTOR_GRACE_S + SOON_S)

    hanging.let_go()
    # Each that comes back after all is stopped, also the one that was replaced by one that ran.
    await_(lambda: hanging.calls("connector.stop") == 5, "all of them were stopped")
    lab.await_whole(flow.expected)
    flow.write(10)
    flow.await_all()


@pytest.mark.parametrize("where", ["task.start", "task.poll", "task.stop"])
def test_a_task_that_hangs_is_given_up_on_and_says_nothing_later(
    lab: Lab, flow: Flow, name: str, hanging: Hanging, where: str
) -> None:
    leader = lab.cluster.leader()
    leader.create(name, hanging.config(where))
    await_(lambda: hanging.calls("task.start"), "it was started")
    if where != "task.stop":
        await_(lambda: hanging.calls(where), "it hangs")
    began = time.monotonic()
    leader.settle("POST", f"/connectors/{name}/tasks/0/restart", 204)
    assert time.monotonic() - began < GRACE_S + SOON_S
    await_(lambda: hanging.calls("task.start") == 2, "a new one is started")

    leader.settle("PUT", f"/connectors/{name}/config", 200, json=hanging.config(""))
    await_(lambda: hanging.calls("task.start") == 3, "one that does not hang", GRACE_S + SOON_S)
    leader.await_states(name, "RUNNING", "RUNNING", seconds=SOON_S)
    flow.write(10)
    flow.await_all()
    before = _statuses(lab, name)

    hanging.let_go()
    await_(lambda: hanging.calls("task.stop") == 2, "the two that hung have ended")
    lab.await_whole({**flow.expected, name: 1})
    assert _statuses(lab, name) == before
    assert [value["state"] for value in before if value][-1] == "RUNNING"


def _statuses(lab: Lab, name: str) -> list[Any]:
    """All states that were ever written of its task, in order; not how it fared in them."""
    found = read_topic(lab.broker.bootstrap, f"{lab.cluster.group}-statuses")
    values = [record.value for record in found if record.key == f"status-task-{name}-0"]
    return [value for value in values if not value.get("again")]


def test_a_worker_that_leaves_is_not_held_back(lab: Lab, flow: Flow, name: str, hanging: Hanging) -> None:
    """Its rebalance waits for what hangs, as long as it must; then its work is done elsewhere."""
    lab.workers[0].create(name, hanging.config("task.poll"))
    lab.await_whole({**flow.expected, name: 1})
    owner = lab.cluster.owner(name, task=0)
    began = time.monotonic()
    assert owner.stop() == 0
    took = time.monotonic() - began
    print(f"\nThe worker ended after {took:.1f} s")
    lab.await_whole({**flow.expected, name: 1})
    assert (name, 0) in set().union(*(metrics(worker)[0] for worker in lab.workers))
    hanging.let_go()
    flow.write(10)
    flow.await_all()
