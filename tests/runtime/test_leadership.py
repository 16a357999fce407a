"""What the leader of a group does besides giving out work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from cluster_fakes import Group, Node
from runtime_fakes import Script, eventually

from headgate.cluster.protocol import Protocol
from headgate.model import SessionKey, State, Status, TaskId
from headgate.runtime.distributed.signatures import Signatures

RUNNING = Status(State.RUNNING, "a")


@pytest.fixture
def make(script: Script) -> Iterator[Callable[..., Node]]:
    """A worker alone that is about to lead."""
    groups: list[Group] = []

    def made(signatures: Signatures | None = None) -> Node:
        group = Group(script)
        groups.append(group)
        group.signatures = signatures or group.signatures
        return group.add("a")

    yield made
    for group in groups:
        group.close()


def leads(node: Node, protocol: Protocol = Protocol.SESSIONED) -> None:
    node.group.rebalance(protocol)
    node.idle()


def keys(node: Node) -> list[object]:
    return node.group.topic.values("session-key")


# --- session keys -----------------------------------------------------------------------------------------------------


def test_a_new_leader_makes_a_key_if_there_is_none(make: Callable[..., Node]) -> None:
    node = make()
    leads(node)
    leads(node)
    assert len(keys(node)) == 1
    key = node.configs.state().session_key
    assert key is not None
    assert len(key.key) == 32


@pytest.mark.parametrize("protocol", [Protocol.COMPATIBLE, Protocol.EAGER])
def test_groups_that_sign_nothing_need_none(make: Callable[..., Node], protocol: Protocol) -> None:
    node = make()
    leads(node, protocol)
    assert keys(node) == []


def test_who_does_not_lead_makes_none(script: Script) -> None:
    group = Group(script, "a", "b")
    try:
        group.settle()
        assert len(group.topic.values("session-key")) == 1
    finally:
        group.close()


@pytest.mark.parametrize(
    "old",
    [
        SessionKey(b"x" * 32, "HmacSHA256", 1000),
        SessionKey(b"x" * 16, "HmacSHA256", time.time_ns() // 1_000_000),
        SessionKey(b"x" * 32, "HmacSHA1", time.time_ns() // 1_000_000),
    ],
    ids=["expired", "too short", "of another kind"],
)
def test_a_key_that_will_not_do_is_replaced(make: Callable[..., Node], old: SessionKey) -> None:
    node = make()
    node.configs.put_session_key(old)
    leads(node)
    assert len(keys(node)) == 2
    assert node.configs.state().session_key != old


def test_a_key_that_will_do_is_kept(make: Callable[..., Node]) -> None:
    node = make()
    old = SessionKey(b"x" * 32, "HmacSHA256", time.time_ns() // 1_000_000)
    node.configs.put_session_key(old)
    leads(node)
    assert node.configs.state().session_key == old


def test_a_key_is_replaced_when_its_time_is_over(make: Callable[..., Node]) -> None:
    node = make(replace(Signatures(), key_ttl_ms=200))
    leads(node)
    eventually(lambda: len(keys(node)) >= 3, "two more keys")


def test_a_rebalance_when_a_key_expires_makes_one_key_not_two(make: Callable[..., Node]) -> None:
    node = make()
    node.configs.put_session_key(SessionKey(b"x" * 32, "HmacSHA256", 1000))
    leads(node)
    node.configs.put_session_key(SessionKey(b"x" * 32, "HmacSHA256", 1000))
    before = len(keys(node))
    for _ in range(3):
        node.say(node.herder.leadership._rotate)
    node.idle()
    assert len(keys(node)) == before + 1


def test_who_leads_no_more_makes_no_more_keys(make: Callable[..., Node]) -> None:
    node = make()
    leads(node)
    node.configs.put_session_key(SessionKey(b"x" * 32, "HmacSHA256", 1000))
    node.place.is_leader = False
    before = len(keys(node))
    node.say(node.herder.leadership._rotate)
    node.idle()
    assert len(keys(node)) == before


def test_a_key_that_could_not_be_written_is_tried_again(make: Callable[..., Node]) -> None:
    node = make()
    node.stores.writer.broken = True
    node.group.rebalance()
    eventually(lambda: node.stores.claims.count("resign") >= 1, "it has failed once")
    assert keys(node) == []
    node.stores.writer.broken = False
    node.idle()
    assert len(keys(node)) == 1


# --- writing ----------------------------------------------------------------------------------------------------------


def test_writing_is_claimed_once_for_every_reign(make: Callable[..., Node]) -> None:
    node = make()
    for _ in range(3):
        leads(node)
    assert node.stores.claims == ["claim"]
    node.do(lambda: node.herder.leadership.after_rebalance(False))
    node.do(lambda: node.herder.leadership.after_rebalance(False))
    assert node.stores.claims == ["claim", "resign"]
    leads(node)
    assert node.stores.claims == ["claim", "resign", "claim"]


def test_a_claim_that_fails_is_tried_again(make: Callable[..., Node]) -> None:
    node = make()
    node.stores.refusing.append(RuntimeError("Kafka is away"))
    leads(node)
    assert node.stores.claims == ["claim"]


def test_who_leads_no_more_claims_no_more(make: Callable[..., Node]) -> None:
    node = make()
    node.stores.refusing += [RuntimeError("Kafka is away")] * 3
    node.group.rebalance()
    node.place.is_leader = False
    node.idle()
    assert node.stores.claims == []


# --- tidying ----------------------------------------------------------------------------------------------------------


def test_states_of_what_is_gone_are_removed(make: Callable[..., Node]) -> None:
    """E.g. of connectors that were deleted while the worker that had them was down."""
    node = make()
    node.configs.put_connector("orders", {"name": "orders", "connector.class": "Nothing"})
    node.configs.put_tasks("orders", [{}])
    statuses = node.stores.statuses
    for name in ("orders", "gone"):
        statuses.put(name, RUNNING)
        for number in range(3):
            statuses.put(TaskId(name, number), RUNNING)
    leads(node)
    assert list(statuses.connectors()) == ["orders"]
    assert list(statuses.tasks("orders")) == [0]
    assert statuses.tasks("gone") == {}


def test_tasks_that_were_left_alone_are_tidied_up_too(make: Callable[..., Node]) -> None:
    """Their connector has no state any more, or never had one."""
    node = make()
    node.stores.statuses.put(TaskId("gone", 0), RUNNING)
    leads(node)
    assert node.stores.statuses.tasks("gone") == {}


def test_states_of_what_may_still_be_ending_stay_for_one_more_round(script: Script) -> None:
    """A stopped connector shows tasks as long as they run."""
    group = Group(script, "a", "b", "c")
    try:
        group.settle()
        group.connector(tasks=3)
        group.nodes[0].stop()
        for node in group.nodes:
            node.idle()
        group.rebalance()
        for node in group.nodes:
            node.idle()
        assert group.nodes[0].task_states() == [State.UNASSIGNED] * 3
        group.settle()
        assert group.nodes[0].task_states() == []
        group.nodes[0].delete()
        group.rebalance()
        for node in group.nodes:
            node.idle()
        assert list(group.statuses.connectors()) == ["orders"]
        group.settle()
        assert list(group.statuses.connectors()) == []
    finally:
        group.close()
