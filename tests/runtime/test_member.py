"""One worker as the group sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from cluster_fakes import Group, Node, joined, tasks, work
from runtime_fakes import Script, eventually

from headgate.cluster.leader import Election
from headgate.cluster.protocol import AssignmentProblem, MemberState, Protocol
from headgate.cluster.work import NOTHING
from headgate.model import State, TaskId
from headgate.runtime.distributed.group import GroupSettings


@pytest.fixture
def quick(script: Script) -> Iterator[Node]:
    """A worker that does not wait long before it tries again."""
    settings = GroupSettings(sync_timeout_ms=100, unsync_backoff_ms=20, max_delay_ms=100)
    group = Group(script, "a", settings=settings)
    group.settle()
    yield group.nodes[0]
    group.close()


def put(node: Node, name: str = "orders") -> int:
    """A connector in the topic; the offset behind it."""
    node.configs.put_connector(name, {key: str(value) for key, value in node.config(name).items()})
    node.idle()
    return node.configs.state().offset


# --- joining ----------------------------------------------------------------------------------------------------------


def test_a_worker_that_was_never_given_anything_says_so(script: Script) -> None:
    group = Group(script, "a")
    try:
        state = group.nodes[0].do(group.nodes[0].herder.member.state)
        assert state == MemberState("http://a/", 0)
    finally:
        group.close()


def test_it_joins_with_all_that_it_holds(node: Node) -> None:
    offset = put(node)
    node.take_up(joined("orders", offset=offset, generation=2))
    node.take_up(joined(*tasks(0), offset=offset, generation=3))
    node.idle()
    state = node.do(node.herder.member.state)
    assert state.held is not None
    assert state.held.assigned == work("orders", *tasks(0))
    assert state.held.revoked == NOTHING
    assert state.url == "http://a/"


def test_it_is_not_settled_while_it_joins(node: Node) -> None:
    assert node.herder.member.settled.is_set()
    node.do(node.herder.member.state)
    assert not node.herder.member.settled.is_set()
    node.take_up(joined(offset=0, generation=2))
    node.idle()
    assert node.herder.member.settled.is_set()


def test_others_can_see_its_place(node: Node) -> None:
    offset = put(node)
    seen = node.herder.member.figures().rebalances.completed
    node.do(node.herder.member.state)
    node.take_up(joined("orders", *tasks(0), offset=offset, generation=2))
    node.idle()
    found = node.herder.member.figures()
    assert (found.connectors, found.tasks) == (1, 1)
    assert found.rebalances.completed == seen + 1
    assert found.rebalances.last is not None
    assert found.rebalances.ms.maximum >= 0


# --- leading ----------------------------------------------------------------------------------------------------------


def election(node: Node, **members: int) -> Election:
    """By member: how far it has read."""
    states = {name: MemberState(f"http://{name}/", offset) for name, offset in members.items()}
    return Election(Protocol.SESSIONED, 5, 4, "a", states)


def test_the_leader_deals_out_what_is_configured(node: Node) -> None:
    offset = put(node)
    node.configs.put_tasks("orders", [{}, {}, {}])
    offset = node.configs.state().offset
    told = node.do(lambda: node.herder.member.lead(election(node, a=offset, b=offset)))
    given = told["a"].assigned | told["b"].assigned
    assert given == work("orders", *tasks(0, 1, 2))
    assert {each.offset for each in told.values()} == {offset}
    assert {each.problem for each in told.values()} == {AssignmentProblem.NONE}


def test_a_leader_that_is_behind_reads_first(node: Node) -> None:
    node.stores.log.held = True
    node.stores.writer.write([(b"connector-orders", b'{"properties":{}}')], 1)
    ahead = node.configs.state().offset + 1
    told = node.do(lambda: node.herder.member.lead(election(node, a=ahead - 1, b=ahead)))
    assert told["a"].assigned | told["b"].assigned == work("orders")


def test_a_leader_that_cannot_read_gives_nobody_anything(node: Node) -> None:
    ahead = put(node) + 1
    node.stores.log.broken = True
    told = node.do(lambda: node.herder.member.lead(election(node, a=ahead - 1, b=ahead)))
    assert {each.problem for each in told.values()} == {AssignmentProblem.CONFIG_MISMATCH}
    assert {each.assigned for each in told.values()} == {NOTHING}
    assert {each.offset for each in told.values()} == {ahead}


# --- taking up --------------------------------------------------------------------------------------------------------


def test_taking_up_the_same_twice_is_harmless(node: Node, script: Script) -> None:
    offset = put(node)
    place = joined("orders", offset=offset, generation=2)
    node.take_up(place)
    node.idle()
    node.take_up(place)
    node.idle()
    assert script.count("start orders") == 1
    assert node.herder.holdings.given == work("orders")


def test_cooperative_assignments_add_and_take_away(node: Node) -> None:
    offset = put(node)
    node.take_up(joined("orders", *tasks(0, 1), offset=offset, generation=2))
    node.take_up(joined(*tasks(2), revoked=tasks(0), offset=offset, generation=3))
    assert node.herder.holdings.given == work("orders", *tasks(1, 2))


def test_eager_assignments_are_all_there_is(node: Node) -> None:
    offset = put(node)
    node.take_up(joined("orders", *tasks(0, 1), offset=offset, generation=2, protocol=Protocol.EAGER))
    node.take_up(joined(*tasks(2), offset=offset, generation=3, protocol=Protocol.EAGER))
    assert node.herder.holdings.given == work(*tasks(2))


def test_who_had_to_give_something_up_joins_again(node: Node) -> None:
    """So that others get it."""
    offset = put(node)
    node.take_up(joined("orders", offset=offset, generation=2))
    node.idle()
    node.place.wanted = 0
    node.do(lambda: node.herder.member.give_up(work("orders")))
    node.take_up(joined(revoked=["orders"], offset=offset, generation=3))
    node.idle()
    assert node.place.wanted == 1
    assert node.state() is State.UNASSIGNED


def test_giving_up_writes_all_states_before_others_may_start(node: Node) -> None:
    offset = put(node)
    node.take_up(joined("orders", offset=offset, generation=2))
    node.idle()
    before = node.group.statuses.flushes
    node.do(lambda: node.herder.member.give_up(None))
    assert node.group.statuses.flushes == before + 1
    assert node.herder.holdings.given == NOTHING


def test_topics_of_connectors_that_are_gone_are_forgotten(node: Node) -> None:
    offset = put(node)
    put(node, "sales")
    for name in ("orders", "sales"):
        node.group.statuses.put_topic(name, "topic", 0)
    node.take_up(joined("orders", "sales", offset=offset, generation=2))
    node.idle()
    node.configs.remove_connector("orders")
    node.do(lambda: node.herder.member.give_up(work("orders", "sales")))
    assert node.group.statuses.topics("orders") == ()
    assert node.group.statuses.topics("sales") == ("topic",)


# --- who is behind ----------------------------------------------------------------------------------------------------


def test_who_is_behind_the_assignment_reads_first(node: Node, script: Script) -> None:
    node.stores.log.held = True
    config = b'{"properties":{"name":"orders","connector.class":"ScriptedSource","tasks.max":"2"}}'
    node.stores.writer.write([(b"connector-orders", config)], 1)
    node.take_up(joined("orders", offset=len(node.group.topic.records), generation=2))
    eventually(lambda: script.count("start orders") == 1)
    node.stores.log.held = False
    node.stores.log.deliver()


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_change_that_the_assignment_knows_of_needs_no_other_rebalance(node: Node, beyond: int) -> None:
    """`beyond`: records that came after it."""
    node.place.wanted = 0
    node.stores.log.held = True
    for name in ("orders", "sales")[: 1 + beyond]:
        record = (f"connector-{name}".encode(), b'{"properties":{"name":"x","connector.class":"ScriptedSource"}}')
        node.stores.writer.write([record], 1)
    node.take_up(joined("orders", offset=len(node.group.topic.records) - beyond, generation=2))
    node.idle()
    assert "orders" in node.herder.worker.begun
    assert node.place.wanted == beyond
    node.stores.log.held = False


def test_an_assignment_from_beyond_the_topic_starts_nothing(node: Node, script: Script) -> None:
    offset = put(node)
    node.place.wanted = 0
    node.take_up(joined("orders", offset=offset + 5, generation=2))
    eventually(lambda: node.place.wanted >= 1)
    assert script.journal == []
    assert not node.herder.member.settled.is_set() or node.place.wanted


def test_a_mismatch_is_met_by_reading_and_joining_again(node: Node, script: Script) -> None:
    offset = put(node)
    node.place.wanted = 0
    node.take_up(joined(offset=offset, generation=2, problem=AssignmentProblem.CONFIG_MISMATCH))
    eventually(lambda: node.place.wanted == 1)
    assert script.journal == []


def test_an_assignment_that_was_replaced_meanwhile_does_nothing(node: Node, script: Script) -> None:
    offset = put(node)
    first = joined("orders", offset=offset, generation=2)
    second = joined(revoked=["orders"], offset=offset, generation=3)
    wanted = node.place.wanted

    async def both() -> None:
        await node.herder.member.take_up(first)
        await node.herder.member.take_up(second)

    node.place.take(second)
    node.do(both)
    node.idle()
    assert script.journal == []
    assert node.place.wanted == wanted + 1, "only the second one was settled"


def test_who_has_lost_its_place_starts_nothing(node: Node, script: Script) -> None:
    offset = put(node)
    node.place.member_id = ""
    node.do(lambda: node.herder.member.take_up(joined("orders", offset=offset, generation=2)))
    node.settle()
    eventually(lambda: not node.herder._background)
    assert script.journal == []
    node.place.member_id = "a"


# --- who cannot read --------------------------------------------------------------------------------------------------


def test_who_cannot_read_leaves_until_it_can(quick: Node, script: Script) -> None:
    offset = put(quick)
    quick.take_up(joined("orders", offset=offset, generation=2))
    quick.idle()
    quick.stores.log.broken = True
    quick.place.calls.clear()
    quick.take_up(joined(*tasks(0), offset=offset + 50, generation=3))
    eventually(lambda: quick.place.calls)
    assert quick.place.calls[0] == "leave: the config topic cannot be read"
    assert quick.herder.worker.connectors["orders"], "perhaps nothing of it has changed"
    quick.place.wanted = 0
    quick.stores.log.broken = False
    eventually(lambda: quick.place.wanted == 1, "it joins again")


def test_who_can_never_read_gives_all_work_up(quick: Node) -> None:
    offset = put(quick)
    quick.take_up(joined("orders", offset=offset, generation=2))
    quick.idle()
    quick.stores.log.broken = True
    quick.place.calls.clear()
    quick.take_up(joined(offset=offset + 50, generation=3))
    eventually(lambda: quick.herder.holdings.given == NOTHING, "all work is given up")
    eventually(lambda: not quick.herder.worker.connectors)
    assert len(quick.place.calls) >= 4, "it has tried several times"
    assert quick.state() is State.UNASSIGNED
    quick.stores.log.broken = False
    eventually(lambda: quick.place.wanted)


def test_a_newer_assignment_ends_the_waiting_of_an_older_one(quick: Node, script: Script) -> None:
    offset = put(quick)
    quick.stores.log.broken = True
    quick.place.calls.clear()
    quick.take_up(joined("orders", offset=offset + 50, generation=2))
    eventually(lambda: quick.place.calls)
    quick.stores.log.broken = False
    quick.take_up(replace(joined("orders", offset=offset), generation=3))
    quick.idle()
    assert script.count("start orders") == 1
    assert quick.running() == []
    assert TaskId("orders", 0) not in quick.herder.holdings.given.tasks
