"""What a member does when things go wrong between Kafka and the herder, with a coordinator that does as it is told."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
from group_node import Configs, Node
from kafka.errors import GroupAuthorizationFailedError, NodeNotReadyError

from headgate.cluster import membership as module
from headgate.cluster.coordinator import GroupConfig, Lead, Offer, Synced, described
from headgate.cluster.heartbeat import Heartbeat
from headgate.cluster.membership import Membership
from headgate.cluster.protocol import (
    Assignment,
    MemberState,
    Protocol,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_member,
)
from headgate.cluster.work import Work
from headgate.kafka.settings.errors import ClientConfigError

Eventually = Callable[..., None]
ME = "connect-w1-1"

pytestmark = pytest.mark.process


class Scripted:
    """In place of the coordinator."""

    made: ClassVar[list[Scripted]] = []

    def __init__(self, config: GroupConfig, clients: Mapping[str, str], offer: Offer, lead: Lead) -> None:
        self.offer, self.lead = offer, lead
        self.script: deque[Synced | Exception] = deque()
        self.member_id = ""
        self.rejoins = True
        self.joining = False
        self.unknown = False
        self.trouble = ""
        self.cut_off = False
        self.requests = 0
        self.polls = 0
        self.adopted: list[str] = []
        self.left: list[str] = []
        self.ended = False
        self.made.append(self)

    def join(self, wait_ms: int) -> Synced | None:
        if not self.script:
            time.sleep(0.01)
            return None
        self.offer()
        step = self.script.popleft()
        if isinstance(step, Exception):
            raise step
        self.member_id, self.rejoins = step.member_id, False
        return step

    def poll(self, wait_ms: int) -> None:
        self.polls += 1
        time.sleep(0.01)

    def request_rejoin(self) -> None:
        self.requests += 1
        self.rejoins = True

    def coordinator_unknown(self) -> bool:
        return self.unknown

    def adopt(self, member_id: str) -> None:
        self.adopted.append(member_id)
        self.member_id = member_id

    def leave(self, reason: str, wait_ms: int) -> None:
        self.left.append(reason)
        self.member_id, self.rejoins = "", True

    def wake(self) -> None:
        pass

    def end(self) -> None:
        self.ended = True


def synced(generation: int, member_id: str = ME, protocol: Protocol = Protocol.SESSIONED, **told: Any) -> Synced:
    assignment = Assignment(ME, "http://w1/", 1, **told)
    return Synced(generation, member_id, protocol, encode_assignment(protocol, assignment))


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(module, "Coordinator", Scripted)
    monkeypatch.setattr(module, "_PAUSE_S", 0.05)
    Scripted.made.clear()
    with ExitStack() as running:
        made = Node("w1", "g", {}, Configs(), timeouts={"rebalance_timeout_ms": 1000})
        made.membership._pause_s = 0.05
        running.enter_context(made)
        yield made


@pytest.fixture
def coordinator(node: Node) -> Scripted:
    return Scripted.made[0]


A, B = Work.of(["a"]), Work.of(["b"])


def test_the_assignment_is_taken_up(node: Node, coordinator: Scripted, eventually: Eventually) -> None:
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)
    assert (node.membership.member_id, node.membership.generation, node.membership.is_leader) == (ME, 1, True)
    assert coordinator.requests == 0


def test_an_assignment_that_is_not_understood_is_asked_for_again(
    node: Node, coordinator: Scripted, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.script += [Synced(1, ME, Protocol.SESSIONED, b""), synced(1, assigned=A)]
    eventually(lambda: node.held == A)
    assert "MalformedMessage" in caplog.text


def test_an_assignment_is_worth_nothing_when_the_place_was_lost_meanwhile(
    node: Node, coordinator: Scripted, eventually: Eventually
) -> None:
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)
    node.may_give_up.clear()
    coordinator.script.append(synced(2, assigned=B, revoked=A))
    node.membership.request_rejoin()
    eventually(lambda: not coordinator.script)
    coordinator.member_id, coordinator.rejoins = "", True  # as a heartbeat is told
    eventually(lambda: node.membership.member_id == "")
    node.loop.post(node.may_give_up.set)
    eventually(lambda: node.given_up == [A])
    coordinator.script.append(synced(7, "connect-w1-2", assigned=A))
    eventually(lambda: node.held == A)
    assert [joined.generation for joined in node.all_joined] == [1, 7]


def test_who_is_told_to_wait_joins_again_in_time(node: Node, coordinator: Scripted, eventually: Eventually) -> None:
    coordinator.script.append(synced(1, delay_ms=300))
    eventually(lambda: node.membership.generation == 1)
    time.sleep(0.1)
    assert coordinator.requests == 0
    eventually(lambda: coordinator.requests == 1, 1)
    coordinator.script.append(synced(2, assigned=A))
    eventually(lambda: node.held == A)
    time.sleep(0.4)
    assert coordinator.requests == 1


def test_what_is_told_again_is_taken_up_again_but_not_in_haste(
    node: Node, coordinator: Scripted, eventually: Eventually
) -> None:
    began = time.monotonic()
    coordinator.script.append(synced(1, assigned=A))
    for count in range(1, 4):
        eventually(lambda count=count: len(node.all_joined) == count)
        coordinator.script.append(synced(1, assigned=A))
        node.membership.request_rejoin()
    assert node.held == A
    assert time.monotonic() - began > 0.2


def test_who_is_refused_tries_again_with_another_client_as_the_same_member(
    node: Node, coordinator: Scripted, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.script.append(synced(1))
    eventually(lambda: node.membership.member_id == ME)
    coordinator.script.append(GroupAuthorizationFailedError("g"))
    node.membership.request_rejoin()
    eventually(lambda: len(Scripted.made) == 2)
    assert (coordinator.ended, Scripted.made[1].adopted) == (True, [ME])
    assert "no place in the group, trying again: [Error 30] GroupAuthorizationFailedError" in caplog.text
    Scripted.made[1].script.append(synced(2, assigned=A))
    eventually(lambda: node.held == A)


def test_what_passes_by_itself_needs_no_other_client(node: Node, coordinator: Scripted, eventually: Eventually) -> None:
    coordinator.script += [NodeNotReadyError("1"), synced(1, assigned=A)]
    eventually(lambda: node.held == A)
    assert len(Scripted.made) == 1


def test_without_a_coordinator_all_is_given_up_once(
    node: Node, coordinator: Scripted, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)
    coordinator.unknown, coordinator.trouble = True, "connection refused"
    time.sleep(0.1)
    assert node.held == A, "not before a heartbeat is due"
    eventually(lambda: node.given_up == [None])
    eventually(lambda: coordinator.rejoins)
    assert "its coordinator cannot be reached: connection refused" in caplog.text
    time.sleep(0.5)
    assert node.given_up == [None]
    coordinator.unknown = False
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)


def test_a_coordinator_that_is_away_for_long_is_looked_for_from_the_beginning(
    node: Node, coordinator: Scripted, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.script.append(synced(1))
    eventually(lambda: node.membership.member_id == ME)
    monkeypatch.setattr(module, "_RENEW_S", 0.5)
    coordinator.unknown = True
    eventually(lambda: len(Scripted.made) == 2)
    assert (coordinator.ended, Scripted.made[1].adopted) == (True, [ME])


def test_a_member_that_is_not_understood_gets_no_work(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.configs.create("orders")
    lead = Scripted.made[0].lead
    mine = encode_member(Protocol.SESSIONED, MemberState("http://w1/", 2))
    told = lead(Protocol.SESSIONED, 5, ME, {ME: mine, "stranger": b"?"})
    assert decode_assignment(told[ME]).assigned == node.configs.configured
    assert decode_assignment(told["stranger"]) == Assignment(ME, "http://w1/", 2)
    assert "member stranger is not understood" in caplog.text


def test_each_protocol_is_offered_in_its_own_words(node: Node) -> None:
    offers = Scripted.made[0].offer()
    assert [protocol.value for protocol, _ in offers] == ["sessioned", "compatible", "default"]
    assert [data[:2] for _, data in offers] == [b"\x00\x02", b"\x00\x01", b"\x00\x00"]
    assert {decode_member(data).url for _, data in offers} == {"http://w1/"}


def test_a_herder_that_is_about_to_end_keeps_its_place(
    node: Node, coordinator: Scripted, eventually: Eventually
) -> None:
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)
    node.loop.ending = True
    polls = coordinator.polls
    time.sleep(1.5)
    assert coordinator.polls > polls + 5
    assert coordinator.left == []
    node.loop.ending = False


def test_a_herder_that_hangs_leaves_and_comes_back(node: Node, coordinator: Scripted, eventually: Eventually) -> None:
    coordinator.script.append(synced(1, assigned=A))
    eventually(lambda: node.held == A)
    node.loop.post(lambda: time.sleep(2))
    eventually(lambda: coordinator.left == ["the herder does not answer"])
    coordinator.script.append(synced(2, "connect-w1-2"))
    time.sleep(0.3)
    assert coordinator.script, "it does not join while the herder hangs"
    eventually(lambda: node.membership.member_id == "connect-w1-2")
    assert node.held == A


def test_who_left_is_asked_nothing_until_it_shall_join(
    node: Node, coordinator: Scripted, eventually: Eventually
) -> None:
    coordinator.script.append(synced(1))
    eventually(lambda: node.membership.member_id == ME)
    node.membership.leave("for a while").result(5)
    assert coordinator.left == ["for a while"]
    coordinator.script.append(synced(2, "connect-w1-2"))
    time.sleep(0.3)
    assert coordinator.script
    node.membership.request_rejoin()
    eventually(lambda: node.membership.generation == 2)


def test_settings_that_cannot_be_used_are_refused_at_once() -> None:
    clients = {"bootstrap.servers": "b:9092", "security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(ClientConfigError, match="GSSAPI"):
        Membership(GroupConfig("g"), clients, None, None)  # type: ignore[arg-type]


def test_a_membership_that_was_never_started_can_be_stopped() -> None:
    Membership(GroupConfig("g"), {"bootstrap.servers": "b:9092"}, None, None).stop()  # type: ignore[arg-type]


def test_heartbeats_must_be_shorter_than_the_session() -> None:
    with pytest.raises(ValueError, match="heartbeat"):
        GroupConfig("g", session_timeout_ms=3000, heartbeat_interval_ms=3000)


def test_errors_are_described_with_their_class() -> None:
    assert described(ValueError("no")) == "ValueError: no"
    assert described(NodeNotReadyError("1")) == "NodeNotReadyError: 1"


# --- heartbeats of the herder -----------------------------------------------------------------------------------------


class Patient:
    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[Future[None]] = []
        self.heartbeat = Heartbeat(self.beat, 10.0, lambda: self.now)

    def beat(self) -> Future[None]:
        self.asked.append(Future())
        return self.asked[-1]

    def after(self, seconds: float) -> tuple[bool, bool]:
        """Whether it changed, and whether it is lost."""
        self.now += seconds
        return self.heartbeat.check(), self.heartbeat.lost


def test_a_heartbeat_is_lost_after_a_while_and_comes_back_with_the_answer() -> None:
    patient = Patient()
    assert [patient.after(seconds) for seconds in (0, 10, 0.1, 1)] == [
        (False, False),
        (False, False),
        (True, True),
        (False, True),
    ]
    assert len(patient.asked) == 1
    patient.asked[0].set_result(None)
    assert patient.after(0) == (True, False)
    assert len(patient.asked) == 2


def test_a_heartbeat_is_checked_now_and_then() -> None:
    patient = Patient()
    for _ in range(100):
        patient.after(0.1)
        if not patient.asked[-1].done():
            patient.asked[-1].set_result(None)
    assert 9 <= len(patient.asked) <= 11
