"""Workers form a group, on a real broker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from group_node import Configs, Node, describe, members, settled

from headgate.cluster.coordinator import Coordinator
from headgate.cluster.protocol import Protocol, decode_assignment, decode_member
from headgate.cluster.work import union
from headgate.dev.broker import Broker

pytestmark = pytest.mark.broker

Start = Callable[..., Node]
Eventually = Callable[..., None]


@pytest.fixture
def configs() -> Configs:
    return Configs()


@pytest.fixture
def start(broker: Broker, unique: Callable[[str], str], configs: Configs) -> Iterator[Start]:
    """Starts nodes of one group."""
    group = unique("connect-cluster")
    with ExitStack() as nodes:

        def one(name: str, **settings: object) -> Node:
            clients = {"bootstrap.servers": broker.bootstrap}
            return nodes.enter_context(Node(name, group, clients, configs, **settings))  # type: ignore[arg-type]

        yield one


def only_leader(*nodes: Node) -> Node:
    (leader,) = (node for node in nodes if node.membership.is_leader)
    return leader


def test_one_worker_does_everything(start: Start, configs: Configs, eventually: Eventually) -> None:
    configs.create("orders", tasks=2)
    node = start("w1")
    eventually(lambda: settled([node]))
    place = node.membership
    assert place.member_id.startswith("connect-w1-")
    assert (place.is_leader, place.leader_url, place.generation) == (True, "http://w1/", 1)
    assert (place.protocol, place.rebalancing) == (Protocol.SESSIONED, False)
    assert node.held == configs.configured


def test_two_and_three_workers_share_the_work(start: Start, configs: Configs, eventually: Eventually) -> None:
    configs.create("orders", tasks=3)
    configs.create("payments", tasks=3)
    first = start("w1")
    eventually(lambda: settled([first]))
    second = start("w2")
    eventually(lambda: settled([first, second]) and second.held)
    assert only_leader(first, second) is first
    assert [len(node.held.tasks) for node in (first, second)] == [3, 3]
    third = start("w3")
    eventually(lambda: settled([first, second, third]) and third.held)
    assert [len(node.held.tasks) for node in (first, second, third)] == [2, 2, 2]
    for node in (first, second, third):
        assert node.membership.leader_url == "http://w1/"
        assert None not in node.given_up, "nobody had to give up everything"


def test_a_rebalance_on_request(start: Start, configs: Configs, eventually: Eventually) -> None:
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    before = nodes[0].membership.generation
    configs.create("orders", tasks=1)
    nodes[1].membership.request_rejoin()
    assert nodes[1].membership.rebalancing
    eventually(lambda: settled(nodes))
    assert {node.membership.generation for node in nodes} == {before + 1}
    last = only_leader(*nodes).elections[-1]
    assert (last.generation, last.last_generation, last.offset) == (before + 1, before, 2)
    assert {state.url for state in last.members.values()} == {"http://w1/", "http://w2/"}


def test_a_request_during_a_rebalance_is_not_forgotten(start: Start, configs: Configs, eventually: Eventually) -> None:
    node = start("w1")
    eventually(lambda: settled([node]))

    def change_the_plan() -> None:
        node.before_lead = lambda: None
        node.membership.request_rejoin()

    node.before_lead = change_the_plan
    node.membership.request_rejoin()
    eventually(lambda: node.membership.generation == 3)
    eventually(lambda: settled([node]))


def test_who_leaves_is_not_waited_for_if_it_says_so(
    start: Start, broker: Broker, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    leader = only_leader(*nodes)
    (other,) = (node for node in nodes if node is not leader)
    leader.leader.took_leave(other.membership.member_id)
    other.stop()
    assert members(broker.bootstrap, other.group) == [leader.membership.member_id]
    eventually(lambda: settled([leader]), 10)
    assert other.membership.member_id == ""


def test_who_leaves_without_a_word_is_waited_for(start: Start, configs: Configs, eventually: Eventually) -> None:
    configs.create("orders", tasks=3)
    nodes = [start("w1", max_delay_ms=1500), start("w2", max_delay_ms=1500)]
    eventually(lambda: settled(nodes))
    leader = only_leader(*nodes)
    (other,) = (node for node in nodes if node is not leader)
    generation = leader.membership.generation
    began = time.monotonic()
    other.stop()
    eventually(lambda: leader.all_joined[-1].generation == generation + 1)
    assert leader.all_joined[-1].assignment.delay_ms == 1500
    assert leader.held != configs.configured
    eventually(lambda: settled([leader]))
    assert leader.membership.generation == generation + 2
    assert time.monotonic() - began >= 1.5


def test_who_vanishes_is_missed_after_the_session_timeout(
    start: Start, configs: Configs, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs.create("orders", tasks=3)
    nodes = [start("w1", max_delay_ms=0), start("w2", max_delay_ms=0)]
    eventually(lambda: settled(nodes))
    leader = only_leader(*nodes)
    with monkeypatch.context() as patch:
        patch.setattr(Coordinator, "leave", lambda *_: None)
        leader.stop()
    (other,) = (node for node in nodes if node is not leader)
    began = time.monotonic()
    eventually(lambda: settled([other]))
    assert time.monotonic() - began > 4
    assert other.membership.is_leader


def test_a_place_can_be_given_away_and_taken_again(
    start: Start, broker: Broker, configs: Configs, eventually: Eventually
) -> None:
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    place = nodes[1].membership
    before = place.member_id
    place.leave("cannot read configs").result(10)
    assert (place.member_id, place.is_leader, place.rebalancing) == ("", False, True)
    assert before not in members(broker.bootstrap, nodes[0].group)
    eventually(lambda: settled([nodes[0]]))
    time.sleep(1)
    assert before not in members(broker.bootstrap, nodes[0].group), "it stays away"
    place.request_rejoin()
    eventually(lambda: settled(nodes))
    assert place.member_id != before


def test_who_waits_for_others_to_join_can_leave(
    start: Start, broker: Broker, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    first = start("w1")
    eventually(lambda: settled([first]))
    first.may_give_up.clear()
    second = start("w2")
    eventually(lambda: len(first.all_joined) == 1 and first.held and first.membership.generation == 1)
    eventually(lambda: first.elections[-1].generation == 2)
    second.membership.request_rejoin()  # and has to wait for the first, which is still giving up
    eventually(lambda: second.membership.rebalancing)
    time.sleep(0.5)
    began = time.monotonic()
    second.stop()
    assert time.monotonic() - began < 5
    assert len(members(broker.bootstrap, first.group)) == 1
    first.loop.post(first.may_give_up.set)
    eventually(lambda: settled([first]))


# --- protocols --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        (["sessioned", "sessioned"], Protocol.SESSIONED),
        (["sessioned", "compatible"], Protocol.COMPATIBLE),
        (["compatible", "sessioned"], Protocol.COMPATIBLE),
        (["sessioned", "eager"], Protocol.EAGER),
        (["eager", "compatible"], Protocol.EAGER),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_the_group_speaks_what_all_understand(
    start: Start, configs: Configs, eventually: Eventually, offers: list[str], chosen: Protocol
) -> None:
    configs.create("orders", tasks=3)
    nodes = [start(f"w{number}", connect_protocol=offer) for number, offer in enumerate(offers)]
    eventually(lambda: settled(nodes) and all(node.membership.protocol is chosen for node in nodes))
    assert sorted(len(node.held.tasks) for node in nodes) == [1, 2]


def test_eagerly_everything_is_given_up_before_each_rebalance(
    start: Start, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    nodes = [start("w1", connect_protocol="eager"), start("w2", connect_protocol="eager")]
    eventually(lambda: settled(nodes))
    before = [len(node.given_up) for node in nodes]
    only_leader(*nodes).membership.request_rejoin()
    eventually(lambda: [len(node.given_up) for node in nodes] == [count + 1 for count in before])
    eventually(lambda: settled(nodes))
    assert set(nodes[0].given_up + nodes[1].given_up) == {None}


def test_a_member_that_has_nothing_new_to_say_is_told_again_what_it_was_told(
    start: Start, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    leader = only_leader(*nodes)
    (other,) = (node for node in nodes if node is not leader)
    leader.membership.request_rejoin()  # such that the last rebalance changed nothing
    eventually(lambda: settled(nodes))
    generation, count = other.membership.generation, len(other.all_joined)
    other.membership.request_rejoin()
    eventually(lambda: len(other.all_joined) == count + 1)
    assert other.membership.generation == generation
    assert other.all_joined[-1] == other.all_joined[-2]
    assert settled(nodes)


def test_what_a_cooperative_group_holds_is_given_up_when_an_eager_one_joins(
    start: Start, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    first = start("w1")
    eventually(lambda: settled([first]))
    second = start("w2", connect_protocol="eager")
    eventually(lambda: settled([first, second]) and second.held)
    assert first.given_up == [None]
    second.stop()
    eventually(lambda: first.membership.protocol is Protocol.SESSIONED and settled([first]))


def test_what_others_see_of_the_group(start: Start, broker: Broker, configs: Configs, eventually: Eventually) -> None:
    configs.create("orders", tasks=1)
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    group = describe(broker.bootstrap, nodes[0].group)
    assert (group.protocol_type, group.protocol_data, group.group_state) == ("connect", "sessioned", "Stable")
    assert {member.member_id for member in group.members} == {node.membership.member_id for node in nodes}
    assert {member.client_id for member in group.members} == {"connect-w1", "connect-w2"}
    for member in group.members:
        metadata, assignment = bytes(member.member_metadata), bytes(member.member_assignment)
        assert (metadata[:2], assignment[:2]) == (b"\x00\x02", b"\x00\x02")
        assert decode_member(metadata).url in ("http://w1/", "http://w2/")
        assert decode_assignment(assignment).leader_url == nodes[0].membership.leader_url
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with pytest.raises(KafkaException, match=r"not a consumer group \(connect\)"):
        admin.describe_consumer_groups([nodes[0].group])[nodes[0].group].result()


# --- the herder -------------------------------------------------------------------------------------------------------


def test_a_herder_that_does_not_answer_loses_its_place_until_it_does(
    start: Start, broker: Broker, configs: Configs, eventually: Eventually
) -> None:
    configs.create("orders", tasks=3)
    quick = {"rebalance_timeout_ms": 2000}
    nodes = [start(f"w{number}", max_delay_ms=500, timeouts=quick) for number in (1, 2)]
    eventually(lambda: settled(nodes))
    stuck, other = nodes
    before = stuck.membership.member_id
    began = time.monotonic()
    stuck.loop.post(lambda: time.sleep(7))
    eventually(lambda: stuck.membership.member_id == "")
    assert time.monotonic() - began > 1.5
    eventually(lambda: settled([other]), 6)
    assert before not in members(broker.bootstrap, stuck.group)
    eventually(lambda: settled(nodes))
    assert Counter(stuck.held.tasks)
    assert stuck.membership.member_id not in ("", before)


def test_a_herder_that_fails_is_asked_again(start: Start, configs: Configs, eventually: Eventually) -> None:
    configs.create("orders")
    node = start("w1")
    eventually(lambda: settled([node]))
    failures: list[str] = []

    def fail(what: str) -> Callable[[], None]:
        def once() -> None:
            if failures.count(what) < 1:
                failures.append(what)
                raise RuntimeError(what)

        return once

    node.before_state, node.before_lead = fail("state"), fail("lead")
    node.membership.request_rejoin()
    eventually(lambda: failures == ["state", "lead"] and settled([node]))
    assert node.held == configs.configured


def test_a_slow_answer_costs_nobody_its_place(start: Start, configs: Configs, eventually: Eventually) -> None:
    """While a worker gives up what was revoked it keeps its place, for longer than the session timeout."""
    configs.create("orders", tasks=3)
    first = start("w1")
    eventually(lambda: settled([first]))
    before = first.membership.member_id
    first.may_give_up.clear()
    second = start("w2")
    eventually(lambda: first.elections[-1].generation == 2)
    time.sleep(7)
    first.loop.post(first.may_give_up.set)
    eventually(lambda: settled([first, second]) and second.held)
    assert first.membership.member_id == before
    assert union(node.held for node in (first, second)) == configs.configured


def test_a_herder_that_is_busy_costs_nobody_its_place(start: Start, configs: Configs, eventually: Eventually) -> None:
    """For longer than the session timeout, in which somebody joins."""
    configs.create("orders", tasks=3)
    first = start("w1")
    eventually(lambda: settled([first]))
    before = first.membership.member_id
    first.loop.post(lambda: time.sleep(8))
    second = start("w2")
    eventually(lambda: settled([first, second]) and second.held)
    assert first.membership.member_id == before


def test_stop_does_not_wait_for_the_herder(start: Start, configs: Configs, eventually: Eventually) -> None:
    node = start("w1")
    eventually(lambda: settled([node]))
    node.before_state = lambda: time.sleep(3)
    node.membership.request_rejoin()
    time.sleep(0.3)
    began = time.monotonic()
    node.membership.stop()
    assert time.monotonic() - began < 2
    assert node.membership.member_id == ""
    node.membership.stop()  # harmless
