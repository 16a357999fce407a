"""What the leader does in a rebalance, and what it remembers from one to the next."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headgate.cluster.leader import Election, Leader
from headgate.cluster.protocol import Assignment, AssignmentProblem, MemberState, Protocol
from headgate.cluster.work import NOTHING, Work
from headgate.model import TaskId

DELAY = 300_000


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leader(clock: Clock) -> Leader:
    return Leader(DELAY, clock)


def election(
    held: Mapping[str, Work | None],
    generation: int = 1,
    last: int = -1,
    protocol: Protocol = Protocol.SESSIONED,
    offsets: Mapping[str, int] = {},
) -> Election:
    members = {
        member: MemberState(
            f"http://{member}/",
            offsets.get(member, 7),
            None if work is None else Assignment("w1", "http://w1/", 7, work),
        )
        for member, work in held.items()
    }
    return Election(protocol, generation, last, "w1", members)


A, B = Work.of(["a"]), Work.of(["b"])


def test_everybody_is_told_who_leads_and_on_which_offset_it_is_based(leader: Leader) -> None:
    told = leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    assert told == {
        "w1": Assignment("w1", "http://w1/", 7, assigned=A),
        "w2": Assignment("w1", "http://w1/", 7, assigned=B),
    }


def test_a_newer_config_than_anybody_reported_is_as_good(leader: Leader) -> None:
    assert leader.assign(election({"w1": None}), 9, A)["w1"] == Assignment("w1", "http://w1/", 9, A)


@pytest.mark.parametrize("protocol", Protocol)
def test_a_leader_that_is_behind_gives_nothing_to_anybody(leader: Leader, protocol: Protocol) -> None:
    asked = election({"w1": None, "w2": A}, protocol=protocol, offsets={"w2": 8})
    told = leader.assign(asked, 7, A | B)
    nothing = Assignment("w1", "http://w1/", 8, problem=AssignmentProblem.CONFIG_MISMATCH)
    assert told == {"w1": nothing, "w2": nothing}


def test_it_remembers_across_such_a_round(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    leader.assign(election({"w1": A}, 2, 1, offsets={"w1": 8}), 7, A | B)
    told = leader.assign(election({"w1": A}, 3, 2), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, delay_ms=DELAY)


def test_a_round_that_came_to_nothing_leaves_no_trace(leader: Leader, clock: Clock) -> None:
    leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    waiting = leader.assign(election({"w1": A}, 2, 1), 7, A | B)
    assert waiting["w1"].delay_ms == DELAY
    clock.now += 10
    leader.assign(election({"w1": A, "w3": None}, 3, 2), 7, A | B)  # somebody joins before all have heard of it
    clock.now += 10
    told = leader.assign(election({"w1": A, "w3": None, "w4": None}, 4, 2), 7, A | B)
    assert {member: (each.assigned, each.delay_ms) for member, each in told.items()} == {
        "w1": (NOTHING, DELAY - 20),
        "w3": (NOTHING, DELAY - 20),
        "w4": (NOTHING, DELAY - 20),
    }


def test_a_leader_that_another_led_in_between_has_forgotten(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    told = leader.assign(election({"w1": A}, 5, 4), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, B)


def test_who_took_its_leave_is_not_waited_for(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    leader.took_leave("w2")
    told = leader.assign(election({"w1": A}, 2, 1), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, B)


def test_a_leave_is_remembered_until_a_round_without_that_member_came_to_something(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}), 7, A | B)
    leader.took_leave("w2")
    leader.assign(election({"w1": A, "w2": B}, 2, 1), 7, A | B)  # still there
    leader.assign(election({"w1": A}, 3, 2), 7, A | B)  # comes to nothing
    told = leader.assign(election({"w1": A}, 4, 2), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, B)


def test_eagerly_everything_is_dealt_anew(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}, protocol=Protocol.EAGER), 7, A | B)
    told = leader.assign(election({"w1": None}, 2, 1, Protocol.EAGER), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, A | B)


def test_after_an_eager_round_nobody_is_waited_for(leader: Leader) -> None:
    leader.assign(election({"w1": None, "w2": None}, protocol=Protocol.EAGER), 7, A | B)
    assert [leader.owner(each) for each in ("a", "b")] == ["http://w1/", "http://w2/"]
    told = leader.assign(election({"w1": None}, 2, 1), 7, A | B)
    assert told["w1"] == Assignment("w1", "http://w1/", 7, A | B)


def test_it_knows_who_has_what(leader: Leader) -> None:
    task = TaskId("a", 0)
    leader.assign(election({"w1": None, "w2": None}), 7, A | B | Work.of([], [task]))
    assert [leader.owner(each) for each in ("a", "b", task)] == ["http://w1/", "http://w2/", "http://w1/"]
    assert leader.owner("c") is None
    leader.assign(election({"w1": A}, 2, 1), 7, A | B)
    assert [leader.owner(each) for each in ("a", "b", task)] == ["http://w1/", None, None]
