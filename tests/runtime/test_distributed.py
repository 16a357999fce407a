"""The herder of a worker in a group: three of them on one topic in memory, the first of which leads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from cluster_fakes import Group, Node
from runtime_fakes import Script, World, eventually
from starlette.testclient import TestClient

from headgate.model import RestartRequest, State, TargetState, TaskId
from headgate.rest.app import build_app
from headgate.rest.settings import RestSettings
from headgate.runtime.distributed.group import GroupSettings
from headgate.runtime.errors import (
    AlreadyExists,
    BadRequest,
    ConnectorNotFound,
    Elsewhere,
    InvalidConfig,
    Rebalancing,
    StatusNotFound,
)

Command = Callable[[Node], Coroutine[Any, Any, Any]]


def config(name: str = "orders", **more: str) -> dict[str, str | None]:
    return World.config(name, **more)


def other_than(group: Group, *nodes: Node) -> Node:
    return next(node for node in group.nodes if node not in nodes)


# --- who does what ----------------------------------------------------------------------------------------------------

LEADER_ONLY: dict[str, Command] = {
    "create": lambda node: node.herder.create("new", config("new"), None),
    "put_config": lambda node: node.herder.put_config("orders", config()),
    "patch_config": lambda node: node.herder.patch_config("orders", {"color": "red"}),
    "delete": lambda node: node.herder.delete("orders"),
    "stop": lambda node: node.herder.stop("orders"),
    "restart plan": lambda node: node.herder.restart(RestartRequest("orders", include_tasks=True)),
    "put_task_configs": lambda node: node.herder.put_task_configs("orders", []),
    "alter_offsets": lambda node: node.herder.alter_offsets("orders", []),
    "reset_offsets": lambda node: node.herder.reset_offsets("orders"),
    "fence": lambda node: node.herder.fence("orders"),
    "took_leave": lambda node: node.herder.took_leave("somebody"),
}


@pytest.mark.parametrize("command", LEADER_ONLY.values(), ids=LEADER_ONLY)
@pytest.mark.kip(875, "requests are forwarded to the leader")
def test_what_only_the_leader_may_do_is_elsewhere_for_others(group: Group, command: Command) -> None:
    group.connector()
    before = group.topic.keys
    for node in group.nodes[1:]:
        with pytest.raises(Elsewhere) as caught:
            node.do(lambda at=node: command(at))  # type: ignore[misc]
        assert caught.value.url == "http://a/"
    assert group.topic.keys == before


@pytest.mark.kip(52, "restart is sent to the worker that has the connector or task, in two hops at most")
def test_a_plain_restart_finds_its_way_to_the_owner(group: Group) -> None:
    """The first of two connectors is the leader's."""
    group.connector(name="first")
    owner = group.connector()
    leader = group.nodes[0]
    assert owner is not leader
    third = other_than(group, leader, owner)
    with pytest.raises(Elsewhere) as caught:
        third.restart()
    assert caught.value.url == leader.url
    with pytest.raises(Elsewhere) as caught:
        leader.restart()
    assert caught.value.url == owner.url
    assert owner.restart() is None


def test_a_task_restart_finds_its_way_to_the_owner(group: Group) -> None:
    group.connector(tasks=3)
    where = group.where()
    assert sorted(where.values()) == ["a", "b", "c"]
    for number, name in where.items():
        for node in group.nodes:
            if node.name == name:
                node.restart_task(number)
                continue
            with pytest.raises(Elsewhere) as caught:
                node.restart_task(number)
            assert caught.value.url == (f"http://{name}/" if node is group.nodes[0] else "http://a/")


def test_while_nobody_knows_the_leader_there_is_no_address(group: Group) -> None:
    follower = group.nodes[1]
    follower.place.leader_url = follower.url  # it led until now, and has no place any more
    with pytest.raises(Elsewhere) as caught:
        follower.create("new")
    assert caught.value.url == ""


@pytest.mark.kip(745, "409 when the worker assigned the connector cannot be found")
def test_what_nobody_has_cannot_be_restarted(script: Script) -> None:
    """The work of a worker that is lost waits for its return."""
    group = Group(script, "a", "b", settings=GroupSettings(max_delay_ms=300_000))
    try:
        group.settle()
        group.connector(name="first")
        owner = group.connector()
        leader = group.nodes[0]
        assert owner is not leader
        lost = next(number for number, name in group.where().items() if name == owner.name)
        group.nodes.remove(owner)
        group.rebalance()
        group.settle()
        client = TestClient(build_app(leader.herder, RestSettings()))
        for path in ("/connectors/orders/restart", f"/connectors/orders/tasks/{lost}/restart"):
            answer = client.post(path)
            assert answer.status_code == 409
            assert "no known leader URL" in answer.json()["message"]
    finally:
        group.close()


CERTAIN: list[Command] = [
    lambda node: node.herder.restart(RestartRequest("orders")),
    lambda node: node.herder.restart(RestartRequest("orders", include_tasks=True)),
    lambda node: node.herder.restart_task(TaskId("orders", 0)),
    lambda node: node.herder.alter_offsets("orders", []),
    lambda node: node.herder.reset_offsets("orders"),
]


@pytest.mark.kip(745, "409 while a rebalance is needed or underway")
@pytest.mark.kip(52, "task restart is refused while the cluster rebalances")
@pytest.mark.parametrize("command", CERTAIN)
def test_what_needs_certainty_waits_for_the_rebalance(group: Group, command: Command) -> None:
    group.connector()
    leader = group.nodes[0]
    leader.place.rebalancing = True
    waiting = leader.submit(lambda: command(leader))
    leader.settle()
    assert not waiting.done()
    leader.place.rebalancing = False
    assert not isinstance(waiting.exception(5), Rebalancing)


@pytest.mark.kip(745, "409 while a rebalance is needed or underway")
@pytest.mark.kip(52, "task restart is refused while the cluster rebalances")
@pytest.mark.parametrize("command", CERTAIN)
def test_but_not_for_ever(group: Group, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.runtime.distributed.herder._PENDING_S", 0.1)
    group.connector()
    leader = group.nodes[0]
    leader.place.rebalancing = True
    with pytest.raises(Rebalancing):
        leader.do(lambda: command(leader))


@pytest.mark.kip(875, "offsets can be changed right after the stop")
def test_offsets_wait_for_the_tasks_that_a_stop_ends_here(group: Group) -> None:
    """They end before anybody asks for the rebalance."""
    group.connector(tasks=3)
    leader = group.nodes[0]
    (number,) = leader.running()
    leader.runner.deaf = True
    leader.do(lambda: leader.herder.stop("orders"))
    leader.do(lambda: leader.herder.reset_offsets("orders"))
    assert leader.runner.task(number).calls == ["stop", "cancel"]


@pytest.mark.kip(875, "offsets can be changed right after the stop")
def test_offsets_wait_for_what_others_have_to_give_up(group: Group, script: Script) -> None:
    """They join again when it has ended: until then the leader knows of no rebalance."""
    group.connector(tasks=3)
    leader, other, _ = group.nodes
    leader.do(lambda: leader.herder.stop("orders"))
    for node in group.nodes:
        node.idle()
    group.rebalance()
    for node in group.nodes:
        node.idle()
    assert other.place.wanted, "it has given up its task"
    changed = threading.Event()

    def noted(config: object, offsets: object) -> bool:
        changed.set()
        return False

    script.on_alter = noted
    waiting = leader.submit(lambda: leader.herder.reset_offsets("orders"))
    assert not changed.wait(0.2)
    group.settle()
    waiting.result(5)
    assert changed.is_set()


def test_what_is_only_written_does_not_wait_for_the_rebalance(group: Group) -> None:
    group.connector()
    leader = group.nodes[0]
    leader.place.rebalancing = True
    leader.create("new")
    leader.put()
    leader.do(lambda: leader.herder.pause("orders"))
    leader.do(lambda: leader.herder.stop("orders"))
    leader.delete()


# --- configs ----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(980, "the target state is written to the config topic before the connector's config")
def test_create_writes_the_state_first(group: Group) -> None:
    group.nodes[0].create("new", TargetState.STOPPED)
    assert group.topic.keys[-2:] == ["target-state-new", "connector-new"]
    group.nodes[0].create("plain")
    assert "target-state-plain" not in group.topic.keys


def test_what_exists_cannot_be_created(group: Group) -> None:
    group.connector()
    with pytest.raises(AlreadyExists):
        group.nodes[0].create()


def test_bad_configs_are_refused_by_every_worker(group: Group) -> None:
    """The config is looked at first: nobody passes a bad one on."""
    for node in group.nodes:
        with pytest.raises(InvalidConfig):
            node.create("new", size="many")
        with pytest.raises(InvalidConfig):
            node.put("new", size="many")


@pytest.mark.kip(980, "Can create a connector in the PAUSED state in distributed mode")
@pytest.mark.kip(980, "Can create a connector in the STOPPED state in distributed mode")
@pytest.mark.parametrize("state", [TargetState.PAUSED, TargetState.STOPPED])
def test_created_in_a_state_it_is_not_started_and_has_no_tasks(
    group: Group, script: Script, state: TargetState
) -> None:
    group.nodes[0].create("orders", state)
    group.settle()
    assert group.nodes[1].state() is State[state.name]
    assert script.journal == []
    group.nodes[2].resume()
    group.settle()
    assert script.count("start orders") == 1
    assert group.nodes[1].task_states() == [State.RUNNING, State.RUNNING]


@pytest.mark.kip(980, "created with initial_state STOPPED, then paused: no tasks until it is resumed")
@pytest.mark.parametrize("initial", [TargetState.PAUSED, TargetState.STOPPED])
def test_what_was_never_resumed_has_no_tasks_however_often_it_is_stopped(
    group: Group, script: Script, initial: TargetState
) -> None:
    leader, other, third = group.nodes
    leader.create("orders", initial)
    group.settle()
    for _ in range(2):
        leader.stop()
        group.settle()
        written = group.topic.keys
        leader.stop()
        assert group.topic.keys == written, "it is stopped, and has no tasks"
        other.pause()
        group.settle()
        assert (third.state(), third.task_states(), script.journal) == (State.PAUSED, [], [])
    other.resume()
    group.settle()
    assert third.task_states() == [State.RUNNING, State.RUNNING]


@pytest.mark.kip(875, "Can pause a stopped connector")
def test_a_stop_before_the_first_tasks_does_not_count_as_never_resumed(group: Group, script: Script) -> None:
    leader = group.nodes[0]
    leader.create()
    leader.stop()
    leader.pause()
    group.settle()
    assert leader.task_states() == [State.PAUSED, State.PAUSED]


def resumed_unseen(group: Group) -> Node:
    """The leader, which has not read yet that what it has stopped was resumed."""
    group.connector()
    leader, other, _ = group.nodes
    leader.stop()
    group.settle()
    leader.stores.log.held = True
    other.do(lambda: other.herder.resume("orders"))
    return leader


@pytest.mark.kip(875, "Can stop a connector that another worker has just been told to resume")
def test_a_stop_knows_of_a_resume_that_has_not_come_here_yet(group: Group) -> None:
    leader = resumed_unseen(group)
    leader.do(lambda: leader.herder.stop("orders"))
    leader.stores.log.held = False
    leader.stores.log.deliver()
    group.settle()
    assert (leader.state(), leader.task_states()) == (State.STOPPED, [])


@pytest.mark.kip(980, "a connector created STOPPED is never UNASSIGNED")
def test_what_was_created_stopped_is_stopped_and_nothing_else(group: Group) -> None:
    leader = group.nodes[0]
    leader.create("orders", TargetState.STOPPED)
    group.settle()
    owner = group.owner()
    leader.put("orders", color="red")
    group.settle()
    assert owner.restart() is None
    group.connector(name="other")
    if owner is leader:
        group.nodes.append(group.nodes.pop(0))
    group.leave(owner)
    group.rebalance()
    group.settle()
    assert group.owner() is not owner
    assert group.statuses.states("orders") == [State.STOPPED]
    assert group.nodes[0].status().connector.worker_id == group.owner().name


def test_a_new_config_reaches_connector_and_tasks(group: Group, script: Script) -> None:
    owner = group.connector()
    script.tasks = [{"part": 7}]
    new, info = group.nodes[0].put(color="red")
    assert not new
    assert info.config["color"] == "red"
    assert len(info.tasks) == 2, "those that it had"
    group.settle()
    assert owner.script.plugins[-1].settings["color"] == "red"
    assert list(group.where()) == [0]
    assert [node.task_states() for node in group.nodes] == [[State.RUNNING]] * 3


def test_patching_needs_a_connector(group: Group) -> None:
    with pytest.raises(ConnectorNotFound):
        group.nodes[0].patch({"color": "red"})
    group.connector()
    assert group.nodes[0].patch({"color": "red", "tasks.max": None}).config == {
        "name": "orders",
        "connector.class": "ScriptedSource",
        "color": "red",
    }


def test_deleted_is_gone_everywhere(group: Group, script: Script) -> None:
    group.connector()
    group.statuses.put_topic("orders", "topic", 0)
    group.nodes[0].delete()
    assert group.topic.keys[-2:] == ["connector-orders", "target-state-orders"]
    assert group.topic.values("connector-orders")[-1] is None
    group.settle()
    assert group.where() == {}
    assert script.count("stop orders") == 1
    assert group.statuses.topics("orders") == ()
    for node in group.nodes:
        assert node.herder.connector_names() == []
        with pytest.raises(StatusNotFound):
            node.status()
        with pytest.raises(ConnectorNotFound):
            node.do(lambda at=node: at.herder.pause("orders"))  # type: ignore[misc]


@pytest.mark.parametrize("seen", ["one by one", "at once", "with its tasks"])
def test_what_is_made_anew_before_a_rebalance_is_another_one(group: Group, script: Script, seen: str) -> None:
    owner = group.connector(tasks=3)
    for node in group.nodes:
        node.stores.log.held = seen == "at once"
    group.nodes[0].delete()
    if seen != "at once":
        for node in group.nodes:
            node.idle()
            node.stores.log.held = seen == "with its tasks"
    script.tasks = [{"part": 7}]
    group.nodes[0].create(color="red")
    if seen == "with its tasks":
        configs = [{"part": "7", "task.class": "runtime_fakes.ScriptedSourceTask"}]
        group.nodes[0].do(lambda: group.nodes[0].herder.put_task_configs("orders", configs))
    for node in group.nodes:
        node.stores.log.held = False
        node.stores.log.deliver()
    group.settle()
    assert owner.script.plugins[-1].settings["color"] == "red"
    assert list(group.where()) == [0]
    (holder,) = (node for node in group.nodes if node.running())
    assert holder.runner.task(0).spec.config["part"] == "7"
    assert group.nodes[1].task_states() == [State.RUNNING]


# --- task configs -----------------------------------------------------------------------------------------------------


def test_an_owner_hands_its_task_configs_to_the_leader(group: Group) -> None:
    group.connector(name="first")
    owner = group.connector()
    assert owner is not group.nodes[0]
    assert group.topic.keys[-3:] == ["task-orders-0", "task-orders-1", "commit-orders"]


def test_task_configs_are_handed_over_once_the_leader_answers(group: Group, script: Script) -> None:
    group.connector(name="first")
    group.away.add("http://a/")
    script.tasks = [{"part": 0}]
    group.nodes[0].create()
    group.rebalance()
    owner = next(node for node in group.nodes if "orders" in node.herder.holdings.given.connectors)
    assert owner is not group.nodes[0]
    eventually(lambda: script.count("task_configs 2") > 1, "it was asked for them")
    assert "commit-orders" not in group.topic.keys
    group.away.clear()
    group.settle()
    assert group.topic.values("commit-orders") == [{"tasks": 1}]
    assert list(group.where()) == [0]


@pytest.mark.kip(875, "a stopped connector cannot be given tasks")
def test_nobody_can_give_tasks_to_a_stopped_connector(group: Group) -> None:
    group.connector()
    leader = group.nodes[0]
    leader.stop()
    with pytest.raises(BadRequest, match="Cannot submit non-empty set of task configs for stopped connector orders"):
        leader.do(lambda: leader.herder.put_task_configs("orders", [{"part": "0"}]))
    leader.do(lambda: leader.herder.put_task_configs("orders", []))
    with pytest.raises(ConnectorNotFound):
        leader.do(lambda: leader.herder.put_task_configs("nobody", []))


@pytest.mark.kip(875, "Can resume a stopped connector")
def test_tasks_of_a_connector_whose_resume_the_leader_has_not_read_yet_are_taken(group: Group) -> None:
    leader = resumed_unseen(group)
    leader.do(lambda: leader.herder.put_task_configs("orders", [{"part": "0"}]))
    assert {"tasks": 1} in group.topic.values("commit-orders"), "and then what its owner makes of the resume"
    leader.stores.log.held = False
    group.settle()


# --- wanted states ----------------------------------------------------------------------------------------------------


@pytest.mark.kip(52, "pause, resume: any worker")
def test_any_worker_pauses_and_resumes(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    for node in group.nodes:
        for command, state in ((node.pause, State.PAUSED), (node.resume, State.RUNNING)):
            command()
            group.settle()
            assert node.state() is state
            assert node.task_states() == [state] * 3
    assert script.count("start orders") == 4
    assert sum(call.startswith("start task") for call in script.journal) == 3, "tasks went on as they were"


@pytest.mark.kip(875, "an empty set of task configs is written before the state STOPPED")
def test_stop_writes_no_tasks_then_the_state(group: Group) -> None:
    group.connector()
    group.nodes[0].stop()
    assert group.topic.keys[-2:] == ["commit-orders", "target-state-orders"]
    assert group.topic.values("commit-orders")[-1] == {"tasks": 0}
    assert group.topic.values("target-state-orders")[-1] == {"state": "PAUSED", "state.v2": "STOPPED"}
    group.settle()
    assert group.nodes[2].state() is State.STOPPED
    assert group.nodes[2].task_states() == []
    assert group.where() == {}


@pytest.mark.kip(875, "Can pause a stopped connector")
def test_stopped_then_paused_it_has_tasks_which_are_paused(group: Group, script: Script) -> None:
    group.connector()
    group.nodes[0].stop()
    group.settle()
    group.nodes[1].pause()
    group.settle()
    assert group.nodes[2].state() is State.PAUSED
    assert group.nodes[2].task_states() == [State.PAUSED, State.PAUSED]
    assert script.count("start orders") == script.count("stop orders") == 2


@pytest.mark.kip(875, "Can resume a stopped connector")
@pytest.mark.kip(875, "Can pause a stopped connector")
@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("before", ["RUNNING", "PAUSED", "FAILED"])
def test_a_stop_that_is_overtaken_still_counts(group: Group, script: Script, verb: str, before: str) -> None:
    """The owner sees both at once."""
    owner = group.connector()
    if before == "PAUSED":
        owner.pause()
        group.settle()
    if before == "FAILED":
        owner.say(lambda: owner.context().raise_error(RuntimeError("no more")))
        group.settle()
    assert owner.state() is State[before]
    owner.stores.log.held = True
    group.nodes[0].do(lambda: group.nodes[0].herder.stop("orders"))
    group.nodes[0].do(lambda: getattr(group.nodes[0].herder, verb)("orders"))
    owner.stores.log.held = False
    owner.stores.log.deliver()
    group.settle()
    wanted = State.PAUSED if verb == "pause" else State.RUNNING
    assert owner.state() is wanted
    assert owner.task_states() == [wanted, wanted]
    assert group.topic.values("commit-orders") == [{"tasks": 2}, {"tasks": 0}, {"tasks": 2}]
