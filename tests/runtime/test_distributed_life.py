"""A worker in a group from its start to its end, and what it does when Kafka or others are away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cluster_fakes import Group, Node
from runtime_fakes import Script, eventually

from headgate.cluster.protocol import Protocol
from headgate.model import RestartRequest, State, TargetState
from headgate.runtime.distributed.group import GroupSettings
from headgate.runtime.distributed.signatures import SIGNATURE
from headgate.runtime.errors import BadRequest, ConfigWriteFailed, HerderError, InvalidSignature, NotStopped
from headgate.runtime.lifecycle import Phase
from headgate.runtime.ports import PeerRequest


def test_a_worker_is_ready_once_it_has_its_place(script: Script) -> None:
    group = Group(script, "a")
    try:
        (node,) = group.nodes
        assert not node.herder.ready
        assert "joining the group of workers" in (node.herder.stage or "")
        group.rebalance()
        eventually(lambda: node.herder.ready)
        node.do(node.herder.noop)
    finally:
        group.close()


def test_a_worker_that_cannot_read_its_topics_says_why_and_never_joins(script: Script) -> None:
    group = Group(script)
    try:
        node = Node(group, "a", GroupSettings(), {})
        problem = RuntimeError("the topic is not compacted")
        node.stores.refusing.append(problem)
        node.start()
        assert node.problems == [problem]
        assert node.place.calls == []
        assert not node.herder.ready
        node.herder.shutdown(timeout=5)
    finally:
        group.close()


def test_health_waits_for_the_place(group: Group) -> None:
    node = group.nodes[1]
    node.do(node.herder.member.state)  # it joins again
    waiting = node.submit(node.herder.noop)
    node.settle()
    assert not waiting.done()
    assert "waiting for its place in the group of workers" in (node.herder.stage or "")
    group.rebalance()
    waiting.result(5)


# --- workers come and go ----------------------------------------------------------------------------------------------


def test_a_new_worker_takes_its_share_and_the_rest_runs_on(group: Group, script: Script) -> None:
    group.connector(tasks=8)
    before = group.where()
    script.journal.clear()
    group.add("d")
    group.settle()
    after = group.where()
    moved = {number for number in after if after[number] != before[number]}
    assert len(moved) == 2
    assert {after[number] for number in moved} == {"d"}
    assert sorted(script.journal) == sorted(
        [f"{verb} task orders-{number}" for verb in ("stop", "start") for number in moved]
    )


def test_a_worker_that_ends_says_goodbye_ends_its_work_and_leaves(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    owner = group.owner()
    leader = group.nodes[0]
    node = next(each for each in group.nodes if each is not leader)
    (number,) = node.running()
    script.journal.clear()
    group.leave(node)
    assert f"stop task orders-{number}" in script.journal
    assert node.place.calls == ["start", "stop"]
    assert group.statuses.states(node.runner.task(number).spec.id)[-1] is State.UNASSIGNED
    group.rebalance()
    group.settle()
    assert sorted(group.where()) == [0, 1, 2]
    assert owner is node or script.count("stop orders") == 0


def test_connectors_end_before_tasks(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    owner = group.owner()
    script.journal.clear()
    group.leave(owner)
    assert script.journal[0] == "stop orders"
    assert script.journal[1].startswith("stop task")


def test_who_leaves_need_not_be_waited_for(script: Script) -> None:
    """With the default of five minutes, in which lost work waits for its worker's return."""
    group = Group(script, "a", "b", "c", settings=GroupSettings(max_delay_ms=300_000))
    try:
        group.settle()
        group.connector(tasks=3)
        lost = group.nodes[2]
        group.leave(lost)
        group.rebalance()
        group.settle()
        assert sorted(group.where()) == [0, 1, 2]
    finally:
        group.close()


def test_who_is_lost_without_a_word_is_waited_for(script: Script) -> None:
    group = Group(script, "a", "b", "c", settings=GroupSettings(max_delay_ms=300_000))
    try:
        group.settle()
        group.connector(tasks=3)
        group.nodes.pop()  # it is there, but the group does not see it
        group.rebalance()
        group.settle()
        assert len(group.where()) == 2
    finally:
        group.close()


# --- Kafka is away ----------------------------------------------------------------------------------------------------


def test_writes_that_fail_say_what_was_not_written(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    leader = group.nodes[0]
    herder = leader.herder
    leader.stores.writer.broken = True
    for command, message in (
        (lambda: herder.create("new", leader.config("new"), None), "Error writing connector configuration to Kafka"),
        (lambda: herder.delete("orders"), "Error removing connector configuration from Kafka"),
        (lambda: herder.put_task_configs("orders", [{}]), "Error writing task configurations to Kafka"),
        (lambda: herder.pause("orders"), "Error writing target state to Kafka"),
        (lambda: herder.set_level_everywhere("x", "INFO"), "Error writing logger level to Kafka"),
        (lambda: herder.restart(RestartRequest("orders", True)), "Error writing restart request for orders to Kafka"),
    ):
        with pytest.raises(ConfigWriteFailed, match=message):
            leader.do(command)
    leader.stores.writer.broken = False
    leader.pause()
    group.settle()
    assert leader.state() is State.PAUSED


def test_offsets_are_not_touched_by_who_cannot_read_the_config_topic(group: Group, script: Script) -> None:
    group.connector(tasks=3)
    leader = group.nodes[0]
    leader.stop()
    group.settle()
    leader.stores.log.broken = True
    with pytest.raises(HerderError, match="could not be read to its end"):
        leader.do(lambda: leader.herder.reset_offsets("orders"))
    leader.stores.log.broken = False
    leader.do(lambda: leader.herder.reset_offsets("orders"))


def test_offsets_are_changed_by_the_newest_state(group: Group, script: Script) -> None:
    """The leader has not yet seen what another worker has just been told."""
    group.connector(tasks=3)
    leader, other = group.nodes[:2]
    leader.stop()
    group.settle()
    leader.stores.log.held = True
    other.do(lambda: other.herder.resume("orders"))
    assert leader.target() is TargetState.STOPPED
    with pytest.raises(NotStopped):
        leader.do(lambda: leader.herder.reset_offsets("orders"))
    leader.stores.log.held = False


# --- among workers ----------------------------------------------------------------------------------------------------


def test_log_levels_are_set_everywhere(group: Group) -> None:
    assert group.nodes[2].do(lambda: group.nodes[2].herder.set_level_everywhere("headgate.rest", "debug"))
    for node in group.nodes:
        eventually(lambda at=node: at.levels == [("headgate.rest", "debug")])  # type: ignore[misc]


def test_topics_of_connectors_are_shared(group: Group, script: Script) -> None:
    group.connector(tasks=1)
    (holder,) = (node for node in group.nodes if node.running())
    holder.runner.task(0).listener.on_topic("sales")
    holder.settle()
    assert [node.herder.active_topics("orders") for node in group.nodes] == [["sales"]] * 3
    other = next(node for node in group.nodes if node is not holder)
    other.do(lambda: other.herder.reset_topics("orders"))
    assert [node.herder.active_topics("orders") for node in group.nodes] == [[]] * 3
    late = holder.runner.task(0).listener
    late.on_topic("sales")
    holder.settle()
    assert [node.herder.active_topics("orders") for node in group.nodes] == [["sales"]] * 3
    group.nodes[0].delete()
    group.statuses.remove_topics("orders")
    late.on_topic("sales")
    holder.settle()
    assert group.statuses.topics("orders") == (), "of what was deleted nothing is told"


def test_without_tracking_nobody_hears_of_topics(script: Script) -> None:
    group = Group(script, "a", topic_tracking_enable="false")
    try:
        group.settle()
        owner = group.connector(tasks=1)
        posted: list[object] = []
        owner.herder.worker.post = posted.append
        owner.runner.task(0).listener.on_topic("sales")
        assert posted == []
    finally:
        group.close()


def test_requests_of_workers_are_signed(group: Group) -> None:
    node = group.nodes[1]
    asked = PeerRequest("POST", "/connectors/a/tasks", b"[]")
    with pytest.raises(BadRequest, match="Internal request missing required signature"):
        node.herder.proofs.check(asked, {})
    key = node.stores.configs.state().session_key
    assert key is not None
    headers = {name.lower(): value for name, value in group.signatures.sign(key, asked, 0).items()}
    node.herder.proofs.check(asked, headers)
    with pytest.raises(InvalidSignature):
        node.herder.proofs.check(asked._replace(body=b"[1]"), headers)
    with pytest.raises(BadRequest):
        node.herder.proofs.check(asked, {**headers, SIGNATURE.lower(): "!"})


def test_a_strict_worker_carries_out_a_request_once(group: Group) -> None:
    node, asked = group.nodes[1], PeerRequest("PUT", "/connectors/a/fence")
    client = node.herder._leader_client
    client._signatures = replace(group.signatures, strict=True)
    signed = client._signer()
    assert signed is not None
    headers = {name.lower(): value for name, value in signed(asked).items()}
    node.herder.proofs.check(asked, headers)
    with pytest.raises(InvalidSignature, match="not carried out twice"):
        node.herder.proofs.check(asked, headers)
    node.place.protocol = Protocol.COMPATIBLE  # whatever the others speak
    with pytest.raises(BadRequest, match="missing required signature"):
        node.herder.proofs.check(asked, {})


def test_groups_without_keys_sign_nothing(group: Group) -> None:
    node = group.nodes[1]
    node.place.protocol = Protocol.COMPATIBLE
    node.herder.proofs.check(PeerRequest("POST", "/connectors/a/tasks", b"[]"), {})


def test_a_connector_that_hangs_does_not_keep_the_group_waiting(group: Group, script: Script) -> None:
    script.on_start = script.hang
    group.nodes[0].create()
    group.rebalance()
    eventually(script.hanging.is_set)
    (owner,) = (node for node in group.nodes if "orders" in node.herder.worker.connectors)
    assert owner.herder.worker.connectors["orders"].phase is Phase.INIT
    group.nodes[0].delete()
    group.rebalance()
    group.settle()
    assert "orders" not in owner.herder.worker.connectors
