"""How one worker carries out what the config topic says."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from cluster_fakes import Group, Node, joined, tasks
from runtime_fakes import Script, eventually

from headgate.model import RestartRequest, SessionKey, State, TargetState
from headgate.storage.topic_log import ReadTimeout


def put(node: Node, name: str = "orders") -> None:
    node.configs.put_connector(name, {key: str(value) for key, value in node.config(name).items()})


def held(node: Node) -> None:
    """A connector with two tasks, all of it here."""
    put(node)
    node.idle()
    node.take_up(joined("orders", offset=node.configs.state().offset, generation=2))
    node.idle()
    node.take_up(joined(*tasks(0, 1), offset=node.configs.state().offset, generation=3))
    node.idle()
    node.place.wanted = 0


# --- how far it has come ----------------------------------------------------------------------------------------------


def test_it_tells_how_far_it_has_carried_the_topic_out(node: Node) -> None:
    put(node)
    node.idle()
    assert node.herder.config_reconciler.carried_out.offset == node.configs.state().offset
    assert node.do(node.herder.member.state).offset == node.configs.state().offset


def test_a_set_of_tasks_is_carried_out_when_the_old_ones_have_ended(node: Node) -> None:
    held(node)
    before = node.herder.config_reconciler.carried_out.offset
    node.be_patient()
    node.runner.deaf = True
    node.configs.put_tasks("orders", [])
    eventually(lambda: node.runner.task(0).calls == ["stop"])
    node.settle()
    assert node.herder.config_reconciler.carried_out.offset == before
    assert node.place.wanted == 0, "nobody may start new tasks yet"
    for number in (0, 1):
        node.runner.task(number).end()
    node.idle()
    assert node.herder.config_reconciler.carried_out.offset == node.configs.state().offset
    assert node.place.wanted == 1


def test_who_joins_waits_for_what_is_being_carried_out(node: Node) -> None:
    held(node)
    node.be_patient()
    node.runner.deaf = True
    node.configs.put_tasks("orders", [])
    eventually(lambda: node.runner.task(0).calls == ["stop"])
    joining = node.submit(node.herder.member.state)
    node.settle()
    assert not joining.done()
    for number in (0, 1):
        node.runner.task(number).end()
    assert joining.result(5).offset == node.configs.state().offset


def test_what_was_there_at_the_start_is_no_news(script: Script) -> None:
    group = Group(script, "a")
    try:
        group.settle()
        first = group.nodes[0]
        put(first)
        first.configs.put_restart_request(RestartRequest("orders", include_tasks=True))
        first.configs.put_logger_level("headgate", "DEBUG")
        second = group.add("b")
        for node in (first, second):
            node.settle()
        assert second.herder.config_reconciler.carried_out.offset == first.configs.state().offset
        assert second.place.wanted == 0
        assert second.levels == []
        assert first.levels == [("headgate", "DEBUG")]
    finally:
        group.close()


def test_catching_up_reads_and_carries_out(node: Node) -> None:
    node.stores.log.held = True
    before = node.herder.config_reconciler.carried_out.offset
    writer = node.stores.writer
    writer.write([(b"connector-orders", b'{"properties":{"name":"orders"}}')], 1)
    node.settle()
    assert node.herder.config_reconciler.carried_out.offset == before
    node.do(lambda: node.herder.config_reconciler.catch_up(1))
    assert node.herder.config_reconciler.carried_out.offset == before + 1
    assert node.herder.config_reconciler.carried_out.view.get("orders") is not None
    node.stores.log.broken = True
    with pytest.raises(ReadTimeout):
        node.do(lambda: node.herder.config_reconciler.catch_up(1))
    node.stores.log.broken = False


# --- what needs a rebalance -------------------------------------------------------------------------------------------


def test_new_work_and_gone_work_need_a_rebalance(node: Node) -> None:
    node.place.wanted = 0
    writes: list[Callable[[], None]] = [
        lambda: put(node),
        lambda: node.configs.put_tasks("orders", [{"part": "0"}]),
        lambda: node.configs.put_tasks("orders", [{"part": "0"}]),
        lambda: node.configs.remove_connector("orders"),
    ]
    for write in writes:
        write()
        node.idle()
        assert node.place.wanted >= 1
        node.place.wanted = 0


def test_the_rest_does_not(node: Node) -> None:
    held(node)
    node.configs.put_target_state("orders", TargetState.PAUSED)
    node.configs.put_session_key(SessionKey(b"x" * 32, "HmacSHA256", 1))
    node.configs.put_logger_level("headgate", "DEBUG")
    node.configs.put_task_count("orders", 2)
    node.configs.put_restart_request(RestartRequest("orders", include_tasks=True))
    node.idle()
    assert node.place.wanted == 0


def test_a_new_config_alone_does_not(node: Node, script: Script) -> None:
    """Until its owner has made other tasks of it."""
    put(node)
    node.idle()
    node.place.wanted = 0
    put(node)
    node.idle()
    assert node.place.wanted == 0


# --- states that are wanted -------------------------------------------------------------------------------------------


def test_states_that_come_while_others_are_carried_out_are_not_lost(node: Node) -> None:
    held(node)
    node.be_patient()
    node.runner.deaf = True
    node.configs.put_tasks("orders", [{"part": "0", "task.class": "runtime_fakes.ScriptedSourceTask"}])
    eventually(lambda: node.runner.task(0).calls == ["stop"])
    node.configs.put_target_state("orders", TargetState.PAUSED)
    node.settle()
    for number in (0, 1):
        node.runner.task(number).end()
    node.idle()
    assert node.state() is State.PAUSED


def test_pause_and_resume_at_once_ask_for_task_configs_again(node: Node, script: Script) -> None:
    """As Apache's workers do after every resume, although nothing seems to have changed."""
    held(node)
    script.journal.clear()
    node.stores.log.held = True
    with node.group.topic.lock:
        node.stores.writer.write([(b"target-state-orders", b'{"state":"PAUSED","state.v2":"PAUSED"}')], 1)
        node.stores.writer.write([(b"target-state-orders", b'{"state":"STARTED","state.v2":"STARTED"}')], 1)
    node.stores.log.held = False
    hold = node.submit(_pause_loop)
    node.stores.log.deliver()
    hold.result(5)
    node.idle()
    assert script.journal == ["task_configs 2"]
    assert node.state() is State.RUNNING


def test_states_of_connectors_that_are_gone_are_forgotten(node: Node, script: Script) -> None:
    held(node)
    node.stores.log.held = True
    node.stores.writer.write([(b"target-state-orders", b'{"state":"PAUSED","state.v2":"PAUSED"}')], 1)
    node.stores.writer.write([(b"connector-orders", None)], 1)
    node.stores.log.held = False
    node.stores.log.deliver()
    node.idle()
    assert node.place.wanted == 1


# --- what concerns no connector ---------------------------------------------------------------------------------------


def test_log_levels_are_set_at_once(node: Node) -> None:
    node.configs.put_logger_level("headgate.rest", "trace")
    node.settle()
    assert node.levels == [("headgate.rest", "trace")]


def test_many_records_are_carried_out_together(node: Node) -> None:
    node.place.wanted = 0
    node.stores.log.held = True
    for number in range(20):
        node.stores.writer.write([(f"connector-c{number}".encode(), b'{"properties":{}}')], 1)
    node.stores.log.held = False
    hold = node.submit(_pause_loop)
    node.stores.log.deliver()
    hold.result(5)
    node.idle()
    assert len(node.herder.config_reconciler.carried_out.view.connectors) == 20
    assert node.place.wanted == 1


async def _pause_loop() -> None:
    """Keeps the herder's thread busy, so that news queue up."""
    time.sleep(0.05)
