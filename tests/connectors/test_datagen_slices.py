"""Which records are whose, however many tasks there are; and how fast they come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import ConnectError
from headgate.connectors.datagen.pace import Pace
from headgate.connectors.datagen.slices import (
    BLOCK,
    MOST_RECORDS,
    SLICES,
    Run,
    Slices,
    check_change,
    slices_of,
    start_of,
)

# --- slices -----------------------------------------------------------------------------------------------------------


def numbers(runs: list[Run]) -> list[int]:
    return [number for run in runs for number in range(run.first, run.end)]


def test_one_task_makes_all_records_in_their_order() -> None:
    slices = Slices(dict.fromkeys(slices_of(0, 1), 0))
    assert numbers([run for count in (1, 99, 7, 5000, 0, 300) for run in slices.take(count)]) == list(range(5407))


@pytest.mark.parametrize("tasks", [1, 2, 3, 7, SLICES])
def test_tasks_together_make_each_record_once(tasks: int) -> None:
    found = []
    for task in range(tasks):
        slices = Slices(dict.fromkeys(slices_of(task, tasks), 0), 10_050)
        made = numbers(slices.take(20_000))
        assert made == sorted(made)
        assert slices.take(1) == []
        found += made
    assert sorted(found) == list(range(10_050))


@given(st.lists(st.tuples(st.integers(1, SLICES), st.lists(st.integers(1, 700), min_size=1, max_size=8)), max_size=6))
def test_another_number_of_tasks_goes_on_where_the_others_were(lives: list[tuple[int, list[int]]]) -> None:
    """Each life has so many tasks, and what they are given in turn; then one makes the rest."""
    offsets = dict.fromkeys(range(SLICES), 0)
    found: list[int] = []
    for tasks, counts in [*lives, (1, [10_000])]:
        living = [Slices({each: offsets[each] for each in slices_of(task, tasks)}, 9_000) for task in range(tasks)]
        for turn, count in enumerate(counts):
            runs = living[turn % tasks].take(count)
            offsets |= {run.slice: run.end for run in runs}
            found += numbers(runs)
    assert sorted(found) == list(range(9_000))


def test_any_number_may_be_where_a_slice_goes_on() -> None:
    assert Slices({0: 7}).take(1) == [Run(0, 7, 8)]
    assert Slices({0: BLOCK}).take(1) == [Run(0, SLICES * BLOCK, SLICES * BLOCK + 1)]
    assert Slices({3: 0}).take(1000)[0] == Run(3, 3 * BLOCK, 4 * BLOCK)
    assert Slices({3: 4 * BLOCK}).take(1)[0].first == (SLICES + 3) * BLOCK
    assert Slices({0: MOST_RECORDS}).take(1) == []


@pytest.mark.parametrize("stored", [{}, {"records": "7"}, {"records": -1}, {"records": True}, {"records": 1.0}])
def test_a_stored_offset_that_is_none_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ConnectError, match="The stored offset of slice 4 is none"):
        start_of(4, stored)
    with pytest.raises(ConnectError, match="An offset is"):
        check_change({"datagen": 4}, stored)


@pytest.mark.parametrize(
    "partition", [None, {}, {"datagen": SLICES}, {"datagen": -1}, {"datagen": "0"}, {"datagen": 0, "more": 1}]
)
def test_a_partition_that_is_none_cannot_be_changed(partition: dict[str, object] | None) -> None:
    with pytest.raises(ConnectError, match="A partition is"):
        check_change(partition, {"records": 1})
    check_change({"datagen": 0}, {"records": 1})


# --- pace -------------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def run(pace: Pace, clock: Clock, seconds: float, most: int = 10_000) -> list[tuple[float, int]]:
    """When it gave how many."""
    began, given = clock.now, []
    while clock.now - began < seconds:
        clock.now += max(pace.wait(), 1e-4)  # making some takes a moment, too
        count = pace.take(most)
        if count:
            given.append((clock.now - began, count))
    return given


@pytest.mark.parametrize("rate", [0.3, 1, 7.5, 50, 1000, 123_456])
def test_records_come_at_the_rate_and_evenly(rate: float) -> None:
    clock = Clock()
    given = run(Pace(rate, clock), clock, 100)
    assert sum(count for _, count in given) == pytest.approx(rate * 100, rel=0.01, abs=2)
    assert max(count for _, count in given) <= max(1, rate * 0.03)
    assert min(later[0] - earlier[0] for earlier, later in pairwise(given)) > 0.015
    if rate < 50:
        assert {count for _, count in given} == {1}


def test_the_first_record_does_not_wait() -> None:
    assert Pace(0.001, Clock()).take(10) == 1


def test_what_was_missed_in_a_pause_is_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(1000, clock)
    run(pace, clock, 1)
    clock.now += 3600
    assert sum(count for _, count in run(pace, clock, 1)) < 1000 + 550


def test_a_moment_that_was_missed_is_made_up_for() -> None:
    clock = Clock()
    pace = Pace(1000, clock)
    run(pace, clock, 1)
    clock.now += 0.3
    assert sum(count for _, count in run(pace, clock, 1)) == pytest.approx(1300, abs=30)


def test_no_more_are_taken_than_asked_for_and_the_rest_is_not_lost() -> None:
    clock = Clock()
    pace = Pace(1000, clock)
    clock.now += 0.25
    assert [pace.take(150) for _ in range(3)] == [150, 101, 0]


@pytest.mark.parametrize("rate", [0, 1e300])
def test_as_fast_as_possible_never_waits(rate: float) -> None:
    clock = Clock()
    pace = Pace(rate, clock)
    clock.now += 0.1
    for _ in range(5):
        clock.now += 1e-3
        assert pace.wait() == 0
        assert pace.take(100) == 100
