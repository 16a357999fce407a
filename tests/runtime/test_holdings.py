"""What one worker holds, told by the test instead of a group."""

from __future__ import annotations

import pytest
from cluster_fakes import Node, joined, tasks, work
from runtime_fakes import Script, eventually

from headgate.cluster.work import NOTHING
from headgate.model import RestartRequest, State, TargetState, TaskId
from headgate.runtime.lifecycle import Phase

ORDERS = TaskId("orders", 0)


def written(node: Node, count: int = 2, name: str = "orders") -> int:
    """A connector with tasks in the topic, which nobody holds; the offset behind it."""
    node.script.tasks = [{"part": str(number)} for number in range(count)]
    node.configs.put_connector(name, {key: str(value) for key, value in node.config(name).items()})
    added = {"task.class": "runtime_fakes.ScriptedSourceTask"}
    node.configs.put_tasks(name, [{"part": str(number), **added} for number in range(count)])
    node.idle()
    return node.configs.state().offset


def given(node: Node, *what: str | TaskId, generation: int = 1) -> None:
    """In addition to what it holds."""
    node.take_up(joined(*what, offset=node.configs.state().offset, generation=generation))
    node.idle()


def begin(node: Node, offset: int) -> None:
    """By an assignment that is based on this offset."""
    node.say(lambda: node.herder.holdings.begin(offset, node.herder.config_reconciler.carried_out.view))
    node.idle()


def starts(script: Script) -> list[str]:
    return sorted(call for call in script.journal if call.startswith("start"))


# --- beginning --------------------------------------------------------------------------------------------------------


def test_what_is_given_is_started(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", ORDERS)
    assert starts(script) == ["start orders", "start task orders-0"]
    assert node.status().connector.worker_id == "a"
    assert node.status().connector.generation == 1


def test_what_is_given_twice_is_started_once(node: Node, script: Script) -> None:
    written(node)
    for generation in (1, 2, 3):
        given(node, "orders", *tasks(0, 1), generation=generation)
    assert starts(script) == ["start orders", "start task orders-0", "start task orders-1"]


def test_what_failed_is_not_started_by_being_given_again(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    node.runner.task(0).listener.on_failed("it broke")
    node.context().raise_error(RuntimeError("it broke, too"))
    node.idle()
    script.journal.clear()
    given(node, "orders", *tasks(0, 1), generation=2)
    assert script.journal == []
    assert node.state() is State.FAILED
    assert node.task_states() == [State.FAILED, State.RUNNING]


def test_what_failed_elsewhere_is_started_here(node: Node, script: Script) -> None:
    """It comes with a rebalance, and begins anew."""
    written(node)
    given(node, "orders", *tasks(0, 1))
    node.runner.task(0).listener.on_failed("it broke")
    node.do(lambda: node.herder.holdings.give_up(work(ORDERS)))
    given(node, ORDERS, generation=2)
    assert node.task_states() == [State.RUNNING, State.RUNNING]


def test_what_there_is_not_is_not_started(node: Node, script: Script) -> None:
    written(node, count=1)
    given(node, "nobody", TaskId("nobody", 0), *tasks(0, 5))
    assert starts(script) == ["start task orders-0"]
    assert node.herder.holdings.given == work("nobody", TaskId("nobody", 0), *tasks(0, 5))


def test_what_comes_into_being_later_is_started_by_the_next_assignment(node: Node, script: Script) -> None:
    given(node, "orders")
    assert script.journal == []
    written(node)
    begin(node, node.configs.state().offset)
    assert script.count("start orders") == 1


def test_a_connector_that_hangs_does_not_hold_up_others(node: Node, script: Script) -> None:
    script.on_start = lambda plugin: script.hang() if plugin.settings["name"] == "orders" else None
    written(node)
    written(node, name="sales")
    node.take_up(joined("orders", "sales", TaskId("sales", 0), offset=node.configs.state().offset))
    eventually(lambda: script.count("start task sales-0") and node.state("sales") is State.RUNNING)
    assert node.state() is State.UNASSIGNED


# --- the barrier ------------------------------------------------------------------------------------------------------


def test_tasks_of_a_new_set_wait_for_an_assignment_that_knows_of_it(node: Node, script: Script) -> None:
    before = written(node)
    given(node, *tasks(0, 1))
    script.journal.clear()
    after = written(node)  # the same again: another set
    assert after > before
    assert sorted(script.journal) == ["stop task orders-0", "stop task orders-1"]
    begin(node, before)
    assert starts(script) == []
    begin(node, after)
    assert starts(script) == ["start task orders-0", "start task orders-1"]


def test_tasks_that_are_new_here_wait_for_it_too(node: Node, script: Script) -> None:
    before = written(node, count=1)
    given(node)
    written(node)
    node.herder.holdings.given = work(*tasks(0, 1))
    begin(node, before)
    assert starts(script) == []


def test_other_connectors_need_not_wait(node: Node, script: Script) -> None:
    before = written(node, name="sales")
    written(node)
    node.herder.holdings.given = work(TaskId("sales", 0), ORDERS)
    begin(node, before)
    assert starts(script) == ["start task sales-0"]


def test_a_set_that_is_known_but_not_carried_out_yet_is_not_started(node: Node, script: Script) -> None:
    """The tasks of the set before may still be ending."""
    written(node, count=1)
    carried_out = node.herder.config_reconciler.carried_out.view
    after = written(node)
    node.herder.holdings.given = work(*tasks(0, 1))
    node.say(lambda: node.herder.holdings.begin(after, carried_out))
    node.idle()
    assert starts(script) == []
    begin(node, after)
    assert starts(script) == ["start task orders-0", "start task orders-1"]


# --- ending -----------------------------------------------------------------------------------------------------------


def test_what_is_given_up_ends_and_the_rest_runs_on(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    script.journal.clear()
    node.do(lambda: node.herder.holdings.give_up(work("orders", ORDERS)))
    assert sorted(script.journal) == ["stop orders", "stop task orders-0"]
    assert node.state() is State.UNASSIGNED
    assert node.task_states() == [State.UNASSIGNED, State.RUNNING]
    assert node.herder.holdings.given == work(TaskId("orders", 1))


def test_everything_is_given_up(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    node.do(lambda: node.herder.holdings.give_up(None))
    assert node.herder.holdings.given == NOTHING
    assert node.running() == []
    node.do(lambda: node.herder.holdings.give_up(None))


def test_what_was_never_begun_is_given_up_without_a_word(node: Node) -> None:
    given(node, "nobody", ORDERS)
    node.do(lambda: node.herder.holdings.give_up(work("nobody", ORDERS)))
    assert node.herder.holdings.given == NOTHING
    assert node.stores.statuses.history == {}


def test_plugin_code_that_hangs_is_given_up_on(node: Node, script: Script) -> None:
    written(node)
    script.on_start = script.hang
    node.take_up(joined("orders", offset=node.configs.state().offset))
    eventually(script.hanging.is_set)
    node.do(lambda: node.herder.holdings.give_up(None))
    assert node.state() is State.UNASSIGNED
    assert "orders" not in node.herder.worker.connectors


def test_tasks_that_do_not_end_are_given_up_on(node: Node) -> None:
    written(node)
    given(node, ORDERS)
    node.runner.deaf = True
    node.do(lambda: node.herder.holdings.give_up(None))
    assert node.runner.task(0).calls == ["stop", "cancel"]


def test_what_is_given_and_taken_at_once_does_not_run(node: Node, script: Script) -> None:
    """The start waits for its turn; when it comes, the task is somebody else's."""
    written(node)

    async def given_and_taken() -> None:
        node.herder.holdings.given = work("orders", ORDERS)
        node.herder.holdings.begin(node.configs.state().offset, node.configs.view())
        await node.herder.holdings.give_up(None)

    node.do(given_and_taken)
    node.idle()
    assert node.running() == []
    assert "orders" not in node.herder.worker.connectors


# --- a new config, another state --------------------------------------------------------------------------------------


def test_a_new_config_makes_a_new_instance_and_leaves_the_tasks(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    script.journal.clear()
    node.configs.put_connector("orders", {**node.configs.view().require("orders").config, "color": "red"})
    node.idle()
    assert script.journal[:2] == ["stop orders", "start orders"]
    assert script.plugins[-1].settings["color"] == "red"


def test_what_is_given_up_while_it_is_replaced_does_not_come_back(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders")
    script.on_stop = script.hang
    node.configs.put_connector("orders", {**node.configs.view().require("orders").config, "color": "red"})
    eventually(script.hanging.is_set)
    node.do(lambda: node.herder.holdings.give_up(None))
    assert "orders" not in node.herder.worker.connectors
    node.idle()
    assert "orders" not in node.herder.worker.connectors
    assert node.state() is State.UNASSIGNED


def test_a_state_for_tasks_whose_connector_is_elsewhere(node: Node) -> None:
    written(node)
    node.stores.statuses.put("orders", node.status_of_elsewhere())
    given(node, *tasks(0, 1))
    node.configs.put_target_state("orders", TargetState.PAUSED)
    node.idle()
    assert node.task_states() == [State.PAUSED, State.PAUSED]
    node.configs.put_target_state("orders", TargetState.STARTED)
    node.idle()
    assert node.task_states() == [State.RUNNING, State.RUNNING]
    assert node.script.journal == ["start task orders-0", "start task orders-1"]


@pytest.mark.kip(980, "No tasks are spawned for a connector created in the PAUSED or STOPPED state")
def test_what_was_created_paused_is_not_started(node: Node, script: Script) -> None:
    node.configs.put_connector("orders", {key: str(v) for key, v in node.config().items()}, TargetState.PAUSED)
    given(node, "orders")
    assert node.state() is State.PAUSED
    assert script.journal == []


@pytest.mark.kip(875, "Can pause a stopped connector")
def test_what_was_stopped_and_paused_while_nobody_had_it_makes_its_tasks(node: Node, script: Script) -> None:
    written(node)
    node.configs.put_tasks("orders", [])
    node.configs.put_target_state("orders", TargetState.STOPPED)
    node.configs.put_target_state("orders", TargetState.PAUSED)
    node.idle()
    given(node, "orders")
    assert script.journal == ["start orders", "task_configs 2", "stop orders"]
    assert node.state() is State.PAUSED
    assert len(node.configs.view().require("orders").tasks) == 2


@pytest.mark.kip(875, "Can pause a stopped connector")
def test_its_tasks_are_published_once_somebody_takes_them(node: Node, script: Script) -> None:
    written(node)
    node.configs.put_tasks("orders", [])
    node.configs.put_target_state("orders", TargetState.PAUSED)
    node.idle()
    node.stores.writer.broken = True
    node.take_up(joined("orders", offset=node.configs.state().offset))
    eventually(lambda: script.count("task_configs 2") >= 2, "it was asked again")
    assert node.herder.worker.connectors["orders"].phase is Phase.STARTED
    node.stores.writer.broken = False
    node.idle()
    assert node.state() is State.PAUSED
    assert len(node.configs.view().require("orders").tasks) == 2


def test_one_that_cannot_make_its_tasks_then_is_failed(node: Node, script: Script) -> None:
    written(node)
    node.configs.put_tasks("orders", [])
    node.configs.put_target_state("orders", TargetState.PAUSED)
    script.tasks = RuntimeError("no idea")
    given(node, "orders")
    assert node.state() is State.FAILED


# --- restarts ---------------------------------------------------------------------------------------------------------


@pytest.mark.kip(745, "of several waiting requests the one with the highest impact is carried out")
def test_waiting_requests_keep_the_one_with_the_highest_impact(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    script.journal.clear()

    def all_at_once() -> None:
        for include_tasks, only_failed in ((False, True), (True, False), (True, True), (False, True)):
            node.herder.holdings.request_restart(RestartRequest("orders", include_tasks, only_failed))

    node.say(all_at_once)
    node.idle()
    assert starts(script) == ["start orders", "start task orders-0", "start task orders-1"]


@pytest.mark.kip(745, "distributed: every worker restarts its own instances")
def test_what_the_leader_has_chosen_is_chosen_again(node: Node, script: Script) -> None:
    """By now its status says RESTARTING, no longer FAILED."""
    written(node)
    given(node, "orders", *tasks(0, 1))
    node.runner.task(0).listener.on_failed("it broke")
    node.idle()
    script.journal.clear()
    node.restart(include_tasks=True, only_failed=True)
    node.idle()
    assert starts(script) == ["start task orders-0"]
    assert node.stores.statuses.states(ORDERS)[-4:] == [
        State.RESTARTING,
        State.UNASSIGNED,
        State.RESTARTING,
        State.RUNNING,
    ]


@pytest.mark.kip(745, "distributed: every worker restarts its own instances")
def test_a_connector_that_hangs_does_not_keep_its_tasks_from_being_restarted(node: Node, script: Script) -> None:
    written(node)
    given(node, "orders", *tasks(0, 1))
    script.journal.clear()
    script.on_start = script.hang
    node.say(lambda: node.herder.holdings.request_restart(RestartRequest("orders", include_tasks=True)))
    eventually(lambda: starts(script) == ["start orders", "start task orders-0", "start task orders-1"])
    eventually(lambda: node.task_states() == [State.RUNNING, State.RUNNING])
    assert node.state() is State.RESTARTING


def test_of_what_it_does_not_hold_nothing_is_restarted(node: Node, script: Script) -> None:
    written(node)
    given(node, ORDERS)
    node.stores.statuses.put("orders", node.status_of_elsewhere())
    script.journal.clear()
    node.say(lambda: node.herder.holdings.request_restart(RestartRequest("orders", include_tasks=True)))
    node.idle()
    assert starts(script) == ["start task orders-0"]


def test_a_request_for_what_is_gone_is_dropped(node: Node, script: Script) -> None:
    node.say(lambda: node.herder.holdings.request_restart(RestartRequest("nobody", include_tasks=True)))
    written(node)
    node.say(lambda: node.herder.holdings.request_restart(RestartRequest("orders", include_tasks=True)))
    node.idle()
    assert script.journal == []
