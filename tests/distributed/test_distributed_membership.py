"""Workers that come and go, as operators let them: nothing waits that need not, nothing stops that may stay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Faulty, Worker, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark

AT_ONCE_S = 20.0
"""Long before lost work would be given to others, which is after five minutes."""


@pytest.fixture
def busy(two: Cluster, tmp_path: Path, name: str, topic: str) -> Iterator[Faulty]:
    made = Faulty(two, tmp_path, name, topic)
    yield made
    made.heal()


def placed(worker: Worker, *names: str) -> dict[str, str]:
    """By connector or task: the worker that has it."""
    found: dict[str, str] = {}
    for name in names:
        status = worker.status(name)
        found[name] = status["connector"]["worker_id"]
        found |= {f"{name}-{task['id']}": task["worker_id"] for task in status["tasks"]}
    return found


def all_running(worker: Worker, *names: str) -> bool:
    statuses = [worker.status(name) for name in names]
    return all(
        each is not None
        and each["connector"]["state"] == "RUNNING"
        and [task["state"] for task in each["tasks"]] == ["RUNNING"] * 3
        for each in statuses
    )


def await_moved(worker: Worker, gone: Worker, names: list[str], began: float) -> None:
    """All of it runs again, and nothing of it where it was."""
    left = AT_ONCE_S - (time.monotonic() - began)
    await_(
        lambda: all_running(worker, *names) and gone.id not in placed(worker, *names).values(),
        f"the work of {gone.name} elsewhere, not {placed(worker, *names)}",
        max(left, 1.0),
    )


def test_a_new_worker_takes_its_share_and_a_leaving_one_hands_it_over(two: Cluster, busy: Faulty) -> None:
    names = [busy.create(tasks=3, name=busy.named(str(number))) for number in range(2)]
    first = two.alive[0]
    await_(lambda: all_running(first, *names), "all running")
    before = placed(first, *names)
    starts, stops = busy.count("task.start"), busy.count("task.stop")
    assert (starts, stops) == (6, 0)

    third = two.add().await_ready()
    await_(lambda: third.id in placed(first, *names).values() and all_running(first, *names), "a share of the work")
    after = placed(first, *names)
    moved = {what for what in after if after[what] != before[what]}
    assert {after[what] for what in moved} == {third.id}
    tasks = [what for what in moved if what not in names]
    assert len(tasks) == 2, "two of six tasks are a third"
    assert (busy.count("task.start") - starts, busy.count("task.stop") - stops) == (2, 2), "others were stopped, too"

    began = time.monotonic()
    third.signal(15)
    await_moved(first, third, names, began)
    assert third.wait() == 0
    assert {what: where for what, where in placed(first, *names).items() if what not in moved} == {
        what: where for what, where in before.items() if what not in moved
    }
    assert (busy.count("task.start") - starts, busy.count("task.stop") - stops) == (4, 4)


@pytest.mark.kip(52, "the paused state is persistent: it stays also when the cluster is restarted")
@pytest.mark.kip(745, "requests that are seen at start-up are ignored")
def test_the_leader_leaves_then_all_and_all_come_back(
    two: Cluster, busy: Faulty, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    running = [busy.create(tasks=3, name=busy.named(str(number))) for number in range(2)]
    leader = two.leader()
    (other,) = two.followers()
    other.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    other.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    for state, verb in (("PAUSED", "pause"), ("STOPPED", "stop")):
        busy.create(tasks=1, name=busy.named(state))
        other.await_states(busy.named(state), "RUNNING", "RUNNING")
        other.put(busy.named(state), verb)
    await_(lambda: all_running(other, *running), "all running")
    await_(lambda: lines(tmp_path / "out.txt") == ["one"], "the first line")
    other.await_states(busy.named("PAUSED"), "PAUSED", "PAUSED")
    other.await_states(busy.named("STOPPED"), "STOPPED")

    began = time.monotonic()
    leader.signal(15)
    await_moved(other, leader, running, began)
    assert leader.wait() == 0
    _unchanged(other, busy)
    # Of a restart that was asked for before they started, workers that start know nothing.
    other.settle("POST", f"/connectors/{running[0]}/restart?includeTasks=true", 202)
    await_(lambda: all_running(other, *running), "all running")
    assert other.stop() == 0

    started = busy.count("connector.start")
    for worker in (leader, other):
        worker.start()
    for worker in (leader, other):
        worker.await_ready()
    await_(lambda: all_running(other, *running), "all running again")
    _unchanged(leader, busy)
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two"], "the second line, and the first not again")
    # Each of the two that run once, or twice where the second worker took it from the first.
    assert busy.count("connector.start") - started <= 4


def _unchanged(worker: Worker, busy: Faulty) -> None:
    worker.await_states(busy.named("PAUSED"), "PAUSED", "PAUSED")
    worker.await_states(busy.named("STOPPED"), "STOPPED")
    tasks: Any = worker.call("GET", f"/connectors/{busy.named('STOPPED')}/tasks", 200)
    assert tasks == []
