"""Restarts in a group (KIP-52, KIP-745): three workers on one topic in memory, the first of which leads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cluster_fakes import Group, Node
from runtime_fakes import Script, World, eventually

from headgate.model import PassingEvent, RestartRequest, State, TaskId
from headgate.rest.exposition import exposition
from headgate.runtime.errors import (
    AlreadyRestarting,
    ConfigWriteFailed,
    ConnectorNotFound,
    StartFailed,
    StatusNotFound,
    TaskNotFound,
)


def apart(group: Group, tasks: int) -> tuple[Node, Node]:
    """The leader, and the owner of a connector, which is another."""
    group.connector(name="first")
    owner = group.connector(tasks=tasks)
    assert owner is not group.nodes[0]
    return group.nodes[0], owner


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


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
@pytest.mark.kip(52, "restart task: 409 if it is already being restarted")
@pytest.mark.parametrize("read", [True, False])
def test_a_plan_that_is_under_way_counts_for_the_plain_forms(group: Group, script: Script, read: bool) -> None:
    """Also if the owner has not read of it yet."""
    leader, owner = apart(group, tasks=3)
    (number,) = owner.running()
    script.on_start = script.hang
    owner.runner.silent = True
    owner.be_patient()
    owner.runner.deaf = True
    owner.stores.log.held = not read
    leader.restart(include_tasks=True)
    with pytest.raises(AlreadyRestarting, match="Connector orders is already being restarted"):
        owner.restart()
    with pytest.raises(AlreadyRestarting, match=f"Task orders-{number} is already being restarted"):
        owner.restart_task(number)
    eventually(lambda: script.count(f"stop task orders-{number}"))
    owner.stores.log.held = owner.runner.deaf = False
    owner.runner.task(number).end()
    script.released.set()
    group.settle()
    script.on_start = lambda plugin: None
    owner.restart()
    owner.restart_task(number)


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_plan_counts_for_what_it_restarts(group: Group, script: Script) -> None:
    owner = group.connector(tasks=1)
    (holder,) = (node for node in group.nodes if node.running())
    holder.runner.task(0).listener.on_failed("it broke")
    holder.be_patient()
    holder.runner.deaf = True
    holder.settle()
    group.nodes[0].restart(include_tasks=True, only_failed=True)
    eventually(lambda: script.count("stop task orders-0"))
    with pytest.raises(AlreadyRestarting, match="Task orders-0 is already being restarted"):
        holder.restart_task(0)
    owner.restart()  # which did not fail
    holder.runner.task(0).end()
    group.settle()


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_plain_restart_that_is_under_way_counts_for_a_plan(group: Group, script: Script) -> None:
    leader, owner = apart(group, tasks=1)
    script.on_start = script.hang
    slow = owner.submit(lambda: owner.herder.restart(RestartRequest("orders")))
    eventually(script.hanging.is_set)
    for only_failed in (False, True):
        with pytest.raises(AlreadyRestarting, match="Connector orders is already being restarted"):
            leader.restart(include_tasks=True, only_failed=only_failed)
    script.released.set()
    slow.result(5)
    leader.restart(include_tasks=True)
    group.settle()


@pytest.mark.kip(52, "restart task: 409 if it is already being restarted")
def test_a_task_restart_that_is_under_way_counts_for_a_plan_with_tasks(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    leader = group.nodes[0]
    holder = next(node for node in group.nodes if node is not leader)
    (number,) = holder.running()
    holder.be_patient()
    holder.runner.deaf = True
    slow = holder.submit(lambda: holder.herder.restart_task(TaskId("orders", number)))
    eventually(lambda: script.count(f"stop task orders-{number}"))
    with pytest.raises(AlreadyRestarting, match=f"Task orders-{number} is already being restarted"):
        leader.restart(include_tasks=True)
    assert leader.restart(only_failed=True) is not None, "it touches no task"
    holder.runner.task(number).end()
    slow.result(5)
    group.settle()


@pytest.mark.kip(52, "restart: 409 if it is already being restarted")
def test_a_plan_knows_of_a_plain_restart_that_its_leader_has_not_read_of_yet(group: Group) -> None:
    owner = group.connector()
    group.statuses.late["orders"] = replace(owner.status().connector, state=State.RESTARTING)
    with pytest.raises(AlreadyRestarting, match="Connector orders is already being restarted"):
        group.nodes[0].restart(include_tasks=True)


def test_a_plain_restart_is_in_the_topic_before_anything_ends(group: Group, script: Script) -> None:
    owner = group.connector()
    before, seen = group.statuses.flushes, list[int]()
    script.on_stop = lambda plugin: seen.append(group.statuses.flushes)
    owner.restart()
    assert seen == [before + 1]


def test_what_nobody_has_said_more_of_for_a_minute_is_being_restarted_no_more(group: Group) -> None:
    """Who was about to ask for it may have died."""
    owner = group.connector()
    group.statuses.put("orders", replace(owner.status().connector, state=State.RESTARTING))
    with pytest.raises(AlreadyRestarting):
        group.nodes[0].restart(include_tasks=True)
    group.statuses.ages["orders"] = 61.0
    group.nodes[0].restart(include_tasks=True)
    group.settle()
    assert owner.state() is State.RUNNING


@pytest.mark.kip(745, "a connector that fails between the request and the restart is restarted")
@pytest.mark.parametrize("only_failed", [False, True])
def test_what_fails_between_request_and_restart_is_restarted(group: Group, script: Script, only_failed: bool) -> None:
    leader, owner = apart(group, tasks=1)
    owner.stores.log.held = True
    answer = leader.restart(only_failed=only_failed, include_tasks=True)
    assert answer is not None
    assert (answer.connector.state is State.RESTARTING) is not only_failed
    owner.say(lambda: owner.context().raise_error(RuntimeError("no more")))
    owner.settle()
    assert owner.state() is State.FAILED
    script.journal.clear()
    owner.stores.log.held = False
    owner.stores.log.deliver()
    group.settle()
    assert (owner.state(), script.count("start orders")) == (State.RUNNING, 1)


@pytest.mark.kip(745, "status metric knows the value restarting")
def test_metrics_say_restarting_while_it_is(world: World, script: Script) -> None:
    world.create()
    script.on_start = script.hang
    slow = world.submit(lambda: world.herder.restart(RestartRequest("orders", include_tasks=True)))
    eventually(script.hanging.is_set)
    shown = _restarting(world)
    assert len(shown) == 3, "the connector and two tasks"
    assert {line.rsplit(" ", 1)[1] for line in shown} == {"1.0"}
    script.released.set()
    slow.result(5)
    world.settle()
    assert _restarting(world) == []


def _restarting(world: World) -> list[str]:
    page = exposition(world.herder, {}).decode()
    return [line for line in page.splitlines() if 'connector="orders"' in line and 'status="restarting"' in line]


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
