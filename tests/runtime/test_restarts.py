"""Restarts in a group (KIP-52, KIP-745): three workers on one topic in memory, the first of which leads."""

from __future__ import annotations

import pytest
from cluster_fakes import Group
from runtime_fakes import Script, eventually

from headgate.model import PassingEvent, RestartRequest, State, TaskId
from headgate.runtime.errors import (
    AlreadyRestarting,
    ConfigWriteFailed,
    ConnectorNotFound,
    StartFailed,
    StatusNotFound,
    TaskNotFound,
)


@pytest.mark.kip(745, "RESTARTING is written for all targets before the request")
def test_restarting_is_known_before_anybody_is_asked_to_restart(group: Group) -> None:
    group.connector()
    seen: list[list[State]] = []
    configs = group.nodes[0].configs
    told = configs._on_change
    assert told is not None

    def noted(event: PassingEvent | None) -> None:
        if isinstance(event, RestartRequest):
            seen.append([status[-1].state for status in group.statuses.history.values()])
        told(event)

    configs._on_change = noted
    answer = group.nodes[0].restart(include_tasks=True)
    assert answer is not None
    assert answer.connector.state is State.RESTARTING
    assert [each.status.state for each in answer.tasks] == [State.RESTARTING, State.RESTARTING]
    assert seen == [[State.RESTARTING] * 3]
    group.settle()
    for what in ("orders", TaskId("orders", 0), TaskId("orders", 1)):
        end = [State.RUNNING, State.RESTARTING, State.UNASSIGNED, State.RESTARTING, State.RUNNING]
        assert group.statuses.states(what)[-5:] == end


@pytest.mark.kip(745, "distributed: every worker restarts its own instances")
def test_every_worker_restarts_what_it_has(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    where = group.where()
    script.journal.clear()
    group.nodes[0].restart(include_tasks=True)
    group.settle()
    assert script.count("start orders") == script.count("stop orders") == 1
    for number in range(3):
        assert script.count(f"start task orders-{number}") == script.count(f"stop task orders-{number}") == 1
    assert group.where() == where


@pytest.mark.kip(745, "onlyFailed=true: only FAILED instances")
def test_only_what_failed_is_restarted(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    where = group.where()
    unlucky = next(node for node in group.nodes if node.name == where[1])
    unlucky.runner.task(1).listener.on_failed("it broke")
    unlucky.settle()
    script.journal.clear()
    answer = group.nodes[0].restart(include_tasks=True, only_failed=True)
    assert answer is not None
    assert [each.status.state for each in answer.tasks] == [State.RUNNING, State.RESTARTING, State.RUNNING]
    assert answer.tasks[1].status.trace is None
    assert answer.tasks[1].status.worker_id == where[1]
    group.settle()
    assert [call for call in script.journal if "task " in call] == ["stop task orders-1", "start task orders-1"]
    assert unlucky.task_states() == [State.RUNNING] * 3


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_plan_that_is_under_way_is_not_made_twice(group: Group, script: Script) -> None:
    owner = group.connector()
    script.on_stop = script.hang
    group.nodes[0].restart(include_tasks=True)
    eventually(script.hanging.is_set)
    with pytest.raises(AlreadyRestarting, match="Connector orders is already being restarted"):
        group.nodes[0].restart(include_tasks=True)
    script.released.set()
    group.settle()
    assert owner.state() is State.RUNNING
    group.nodes[0].restart(include_tasks=True)


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_connector_or_task_is_not_restarted_twice_at_once(group: Group, script: Script) -> None:
    owner = group.connector(tasks=1)
    script.on_stop = script.hang
    first = owner.submit(lambda: owner.herder.restart(RestartRequest("orders")))
    eventually(script.hanging.is_set)
    with pytest.raises(AlreadyRestarting, match="Connector orders is already being restarted"):
        owner.restart()
    script.released.set()
    first.result(5)
    (holder,) = (node for node in group.nodes if node.running())
    holder.runner.deaf = True
    slow = holder.submit(lambda: holder.herder.restart_task(TaskId("orders", 0)))
    holder.settle()
    with pytest.raises(AlreadyRestarting, match="Task orders-0 is already being restarted"):
        holder.restart_task(0)
    slow.result(5)


def test_what_does_not_start_again_says_so(group: Group, script: Script) -> None:
    owner = group.connector(tasks=1)

    def fail(plugin: object) -> None:
        raise RuntimeError("not today")

    script.on_start = fail
    with pytest.raises(StartFailed, match="Failed to start connector: orders"):
        owner.restart()
    assert owner.state() is State.FAILED
    (holder,) = (node for node in group.nodes if node.running())
    holder.runner.refusing = RuntimeError("not today either")
    with pytest.raises(StartFailed, match="Failed to start task: orders-0"):
        holder.restart_task(0)


def test_restarts_of_what_there_is_not(group: Group) -> None:
    group.connector()
    leader = group.nodes[0]
    with pytest.raises(TaskNotFound, match="Unknown task: orders-7"):
        leader.restart_task(7)
    for request in (RestartRequest("nobody"), RestartRequest("nobody", include_tasks=True)):
        with pytest.raises(ConnectorNotFound):
            leader.do(lambda asked=request: leader.herder.restart(asked))  # type: ignore[misc]
    group.statuses.remove("orders")
    with pytest.raises(StatusNotFound, match="Status for connector orders not found"):
        leader.restart(include_tasks=True)


@pytest.mark.kip(745, "500 when the request could not be durably recorded")
def test_a_restart_that_was_not_recorded_leaves_states_as_they_were(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    leader = group.nodes[0]
    before = leader.status()
    leader.stores.writer.broken = True
    for _ in range(2):
        with pytest.raises(ConfigWriteFailed):
            leader.restart(include_tasks=True)
        assert leader.status() == before
    leader.stores.writer.broken = False
    leader.restart(include_tasks=True)
    group.settle()
    assert leader.state() is State.RUNNING
