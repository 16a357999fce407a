"""The state of a sink task: every step, partitions that come and go, offsets. Plain values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from headgate.api import ConnectError
from headgate.model import PartitionStart, TopicPartition
from headgate.tasks.sink.state import STEPS, Flight, Happening, IllegalStep, SinkState, SinkStep

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
FLIGHT = Flight({P0: 8}, 3)

NONE = SinkState({P0: 5, P1: 0}, {P0: 2, P1: 0}, {P0: 1, P1: 0})
WORKING = NONE.submitted(FLIGHT)
PUTTING = WORKING.taken()
WAITING = PUTTING.waits()
STATES = {SinkStep.NONE: NONE, SinkStep.WORKING: WORKING, SinkStep.PUTTING: PUTTING, SinkStep.WAITING: WAITING}


HAPPENINGS: dict[Happening, Callable[[SinkState], SinkState]] = {
    Happening.SUBMIT: lambda state: state.submitted(FLIGHT),
    Happening.TAKE: SinkState.taken,
    Happening.RETRY: SinkState.waits,
    Happening.AGAIN: SinkState.again,
    Happening.PUT: lambda state: replace(state, flights=(FLIGHT,)).put(),
    Happening.PUT_AND_MORE: lambda state: replace(state, flights=(FLIGHT, FLIGHT)).put(),
    Happening.DROP: SinkState.dropped,
}

ALLOWED = {
    SinkStep.NONE: {Happening.SUBMIT: SinkStep.WORKING},
    SinkStep.WORKING: {Happening.SUBMIT: SinkStep.WORKING, Happening.TAKE: SinkStep.PUTTING},
    SinkStep.PUTTING: {
        Happening.RETRY: SinkStep.WAITING,
        Happening.PUT: SinkStep.NONE,
        Happening.PUT_AND_MORE: SinkStep.WORKING,
    },
    SinkStep.WAITING: {Happening.AGAIN: SinkStep.PUTTING},
}
"""The table once more; and from everywhere, what is under way can be dropped."""


@pytest.mark.parametrize(
    ("step", "happening"), list(itertools.product(SinkStep, Happening)), ids=lambda each: each.value.replace(" ", "_")
)
def test_every_step_and_what_can_happen_then(step: SinkStep, happening: Happening) -> None:
    before = STATES[step]
    assert before.step is step
    expected = SinkStep.NONE if happening is Happening.DROP else ALLOWED[step].get(happening)
    if expected is None:
        with pytest.raises(IllegalStep, match=f"^{happening.value} while {step.value}$"):
            HAPPENINGS[happening](before)
        assert (step, happening) not in STEPS
    else:
        assert HAPPENINGS[happening](before).step is expected
        assert STEPS[step, happening] is expected


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_that_was_put_moves_the_positions_and_the_next_one_is_in_front() -> None:
    second = Flight({P0: 9, P1: 4}, 2)
    state = WORKING.submitted(second).taken().put()
    assert state.positions == {P0: 8, P1: 0}
    assert (state.flights, state.step) == ((second,), SinkStep.WORKING)
    state = state.taken().put()
    assert state.positions == {P0: 9, P1: 4}
    assert (state.flights, state.step) == ((), SinkStep.NONE)


def test_what_was_put_of_partitions_that_went_meanwhile_is_not_remembered() -> None:
    assert PUTTING.without([P0]).put().positions == {P1: 0}


@pytest.mark.parametrize(
    ("state", "half"),
    [(NONE, False), (WORKING, False), (PUTTING, True), (WAITING, True)],
    ids=["none", "working", "putting", "waiting"],
)
def test_what_is_dropped_comes_again_and_was_half_put_if_the_task_had_it(state: SinkState, half: bool) -> None:
    dropped = state.dropped()
    assert (dropped.flights, dropped.step, dropped.half_put) == ((), SinkStep.NONE, half)
    assert dropped.positions == NONE.positions
    assert dropped.dropped().half_put is half  # until the task has begun anew


def test_a_turn_forgets_that_partitions_went() -> None:
    assert NONE.without([P1]).rebalanced
    assert not NONE.without([P1]).turned().rebalanced
    assert WORKING.turned() == WORKING


# --- partitions that come and go --------------------------------------------------------------------------------------


def start(offset: int, known: bool = True) -> PartitionStart:
    """Of a topic that has offsets 3 to 8."""
    return PartitionStart(offset, known, 3, 9)


def test_partitions_that_come_begin_where_the_group_is() -> None:
    state = SinkState({P0: 5}, {P0: 2}, {P0: 1}).assigned_with({P1: start(4), P2: start(9, known=False)}, {})
    assert state.positions == {P0: 5, P1: 4, P2: 9}
    assert state.safe == {P0: 2, P1: 4, P2: 9}
    assert state.committed == {P0: 1, P1: 4, P2: 9}
    assert state.assigned == {P0, P1, P2}


def test_an_end_of_the_topic_need_not_be_committed_but_an_offset_of_the_task_is() -> None:
    """Also where both are the same: so users see it, and a reset concerns this partition too."""
    starts = {P0: start(3, known=False), P1: start(5), P2: start(3, known=False)}
    state = SinkState().assigned_with(starts, {P0: 3, P1: 6})
    assert state.positions == state.safe == {P0: 3, P1: 6, P2: 3}
    assert state.uncommitted(state.positions) == {P0: 3, P1: 6}


@pytest.mark.parametrize(("wanted", "begins", "gone"), [(0, 3, True), (3, 3, False), (7, 7, False), (9, 9, False)])
def test_an_offset_of_the_task_is_taken_as_far_as_the_topic_has_it(
    wanted: int, begins: int, gone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    state = SinkState().assigned_with({P0: start(5)}, {P0: wanted})
    assert state.positions == {P0: begins}
    assert caplog.messages == (["Offsets 0 to 2 of t-0 are gone before the task saw them"] if gone else [])


def test_an_offset_behind_the_end_is_an_error() -> None:
    with pytest.raises(ConnectError, match=r"offset 10 of t-0, but the topic ends at 9: .* alter or reset its offsets"):
        SinkState().assigned_with({P0: start(5)}, {P0: 10})


def test_wishes_for_other_partitions_are_not_of_those_that_come() -> None:
    assert NONE.assigned_with({P2: start(4)}, {P0: 9, P2: 6}).positions == {P0: 5, P1: 0, P2: 6}


def test_partitions_that_go_leave_nothing_behind() -> None:
    state = WORKING.without([P0, P2])
    assert (state.positions, state.safe, state.committed) == ({P1: 0}, {P1: 0}, {P1: 0})
    assert state.rebalanced
    assert state.flights == (FLIGHT,)  # the loop drops it


def test_a_task_that_begins_anew_goes_back_to_what_it_let_pass_or_to_where_it_says() -> None:
    half = PUTTING.dropped()
    assert half.begun_anew({}).positions == {P0: 2, P1: 0}
    state = half.begun_anew({P0: 4, P2: 7})
    assert state.positions == state.safe == {P0: 4, P1: 0}
    assert state.committed == NONE.committed
    assert not state.half_put


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_there_is_no_way_back_behind_where_the_task_says_that_it_is() -> None:
    state = NONE.rewound({P0: 3, P2: 9})
    assert (state.positions, state.safe) == ({P0: 3, P1: 0}, {P0: 3, P1: 0})


def test_what_the_task_lets_pass_is_safe_and_what_is_committed_need_not_be_again() -> None:
    state = NONE.allowed({P0: 5, P2: 9})
    assert (state.safe, state.positions) == ({P0: 5, P1: 0}, NONE.positions)
    assert state.uncommitted({P0: 5, P1: 0}) == {P0: 5}
    state = state.has_committed({P0: 5})
    assert state.uncommitted({P0: 5, P1: 0}) == {}
    assert state.uncommitted({P0: 4}) == {P0: 4}  # back is a change too
