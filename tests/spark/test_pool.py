"""Who works on what, and how many there are: every decision of the pool, with plain values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model import TaskId
from headgate.spark.pool import DEATHS, GROW_S, HOPE_S, KILLED_S, SLOW_S, STARTS, WITNESS_S, Blob, Pool, Resident
from headgate.spark.settings import ResidentSettings

A, B, C, D = (TaskId(name, 0) for name in "abcd")
IDLE_S = 60.0
SHORT = 0.01
"""Seconds in which a quick chain is done with a blob."""


def blob(task: TaskId, since: float = 0.0) -> Blob:
    return Blob(task, b"", since=since)


def blobs(task: TaskId, count: int, since: float = 0.0) -> list[Blob]:
    return [Blob(task, b"", index, since) for index in range(count)]


def pool_of(there: int, least: int = 1, most: int = 8, quick: int = 4) -> Pool:
    """With so many residents that have called."""
    made = Pool(ResidentSettings(least=least, most=most, quick=quick, idle_s=IDLE_S))
    for _ in range(there):
        came(made)
    return made


def came(pool: Pool, now: float = 0.0) -> Resident:
    """One more that has begun and called."""
    resident, _ = pool.seat(pool.begin(now).number, now)
    assert resident is not None
    return resident


def known(pool: Pool, *tasks: TaskId, slow: Sequence[TaskId] = ()) -> None:
    """Lets somebody be done with a blob of each, which makes it quick or slow."""
    for task in (*tasks, *slow):
        resident = one(pool.add([blob(task)], 0.0))
        pool.done(resident, SLOW_S if task in slow else SHORT)
        resident.since = 0.0
        resident.knows.clear()


def one(given: Sequence[Resident]) -> Resident:
    assert len(given) == 1
    return given[0]


def works_on(pool: Pool) -> list[TaskId]:
    return sorted(each.blob.task for each in pool.residents.values() if each.blob is not None)


# --- who gets what ----------------------------------------------------------------------------------------------------


def test_who_is_idle_is_given_work_at_once() -> None:
    pool, work = pool_of(2), blob(A)
    resident = one(pool.add([work], 1.0))
    assert (resident.blob, resident.since) == (work, 1.0)
    assert not pool.waits


def test_without_a_resident_work_waits() -> None:
    pool = pool_of(0)
    assert pool.add([blob(A)], 0.0) == []
    assert pool.waits


def test_nothing_to_do() -> None:
    pool = pool_of(1)
    assert pool.add([], 0.0) == []
    assert not pool.waits


def test_many_blobs_go_to_as_many_residents_as_are_idle() -> None:
    pool = pool_of(3)
    work = blobs(A, 5)
    assert {each.blob for each in pool.add(work, 0.0)} == set(work[:3])
    assert pool.waits


def test_who_is_done_gets_the_next_in_the_order_in_which_they_came() -> None:
    pool, work = pool_of(1), blobs(A, 4)
    resident = one(pool.add(work, 0.0))
    order = []
    for at in range(1, 5):
        done, given = pool.done(resident, at * SHORT)
        order.append(done)
        assert given == ([resident] if at < 4 else [])
    assert order == work


def test_the_task_with_the_fewest_under_way_comes_first() -> None:
    """A large batch does not keep small ones waiting."""
    pool = pool_of(2)
    first, second = pool.add(blobs(A, 10), 0.0)
    small = blob(B)
    assert pool.add([small], SHORT) == []
    assert pool.done(first, 2 * SHORT)[1] == [first]
    assert first.blob is small, "task a still has one under way"
    assert pool.done(second, 3 * SHORT)[1] == [second]
    assert second.blob is not None
    assert second.blob.task == A


def test_of_tasks_with_as_many_under_way_the_one_that_came_first() -> None:
    pool = pool_of(1)
    resident = one(pool.add([blob(A)], 0.0))
    for task in (C, B):
        pool.add([blob(task)], 0.0)
    pool.done(resident, SHORT)
    assert works_on(pool) == [C]


def test_a_resident_that_knows_the_chain_is_preferred() -> None:
    pool = pool_of(3)
    knows, *others = pool.add([blob(A), blob(B), blob(C)], 0.0)
    for number, each in enumerate([knows, *others]):
        pool.done(each, SHORT * (1 + number))
    assert one(pool.add([blob(A)], 1.0)) is knows, "although it has been idle for longer"


def test_among_those_that_do_not_know_it_the_one_that_was_busy_last() -> None:
    """So the others become superfluous."""
    pool = pool_of(3)
    residents = pool.add([blob(A), blob(B), blob(C)], 0.0)
    for number, each in enumerate(residents):
        pool.done(each, SHORT * (1 + number))
    assert one(pool.add([blob(D)], 1.0)) is residents[-1]


def test_a_resident_that_died_knows_nothing_any_more() -> None:
    pool = pool_of(2)
    first = one(pool.add([blob(A)], 0.0))
    pool.done(first, SHORT)
    pool.die(first, SHORT)
    pool.seat(first.number, SHORT)
    assert first.knows == set()


def test_who_comes_gets_what_waits() -> None:
    pool, work = pool_of(0), blob(A)
    pool.add([work], 0.0)
    begun = pool.begin(0.0)
    assert pool.seat(begun.number, 1.0) == (begun, True)
    assert begun.blob is work


def test_who_comes_and_finds_nothing_is_idle() -> None:
    pool = pool_of(0)
    begun = pool.begin(0.0)
    assert not begun.idle
    assert pool.seat(begun.number, 1.0) == (begun, False)
    assert begun.idle


def test_a_number_that_nobody_has_is_not_seated() -> None:
    assert pool_of(1).seat(99, 0.0) == (None, False)


def test_a_copy_of_a_resident_that_is_there_is_not_seated() -> None:
    pool = pool_of(1)
    pool.add(blobs(A, 2), 0.0)
    assert pool.seat(1, 0.0) == (None, False)
    assert pool.residents[1].there


# --- quick and slow chains --------------------------------------------------------------------------------------------


def test_slow_chains_leave_one_resident_to_quick_ones() -> None:
    pool = pool_of(3, most=3)
    known(pool, B, slow=[A])
    assert len(pool.add(blobs(A, 5), 1.0)) == 2
    assert pool.waits
    assert one(pool.add([blob(B)], 1.0)).idle is False
    assert works_on(pool) == [A, A, B]


def test_slow_chains_that_took_all_before_it_was_known_give_one_back() -> None:
    """The first blob of a new chain may never end."""
    pool = pool_of(3, most=3)
    first, second, last = blob(A), blob(C), blob(D)
    for at, each in enumerate((first, second, last)):
        pool.add([each], at * SHORT)
    quick = blob(B)
    assert pool.add([quick], 3 * SHORT) == []
    assert pool.evict(SLOW_S) is None, "of the last one it is not known yet"
    assert pool.patience(SLOW_S) == pytest.approx(SHORT)
    evicted = pool.evict(SLOW_S + 2 * SHORT)
    assert evicted is not None
    assert (evicted.blob, evicted.condemned) == (None, True)
    assert pool.evict(SLOW_S + 2 * SHORT) is None, "one is enough"
    assert works_on(pool) == [A, C]
    assert pool.die(evicted, 1.0) is None
    assert pool.end(evicted), "its end was wanted"
    assert pool.wants_more(1.0)
    resident = came(pool, 1.0)
    assert resident.blob is quick
    assert pool.done(resident, 1.0 + SHORT) == (quick, []), "the slow one leaves it to others"
    pool.done(pool.residents[1], 2.0)
    assert works_on(pool) == [C, D]


def test_nobody_is_evicted_for_a_chain_that_is_slow_itself() -> None:
    pool = pool_of(2, most=2)
    pool.add(blobs(A, 3), 0.0)
    assert pool.evict(SLOW_S) is None


def test_the_only_resident_is_not_evicted() -> None:
    pool = pool_of(1, most=1)
    pool.add([blob(A)], 0.0)
    pool.add([blob(B)], 0.0)
    assert pool.evict(SLOW_S) is None


def test_quick_chains_may_have_all() -> None:
    pool = pool_of(3, most=3)
    known(pool, A)
    assert len(pool.add(blobs(A, 3), 1.0)) == 3


def test_the_only_resident_works_for_anybody() -> None:
    pool = pool_of(1, most=1)
    known(pool, slow=[A])
    assert len(pool.add([blob(A)], 1.0)) == 1


def test_one_slow_chain_holds_one_resident_and_quick_ones_the_others() -> None:
    pool = pool_of(4, most=4)
    known(pool, B, C, D, slow=[A])
    pool.add([blob(A)], 1.0)
    for task in (B, C, D):
        assert len(pool.add([blob(task)], 1.0)) == 1
    for resident in [each for each in pool.residents.values() if each.blob is not None and each.blob.task != A]:
        pool.done(resident, 1.0 + SHORT)
    assert works_on(pool) == [A]


def test_a_chain_is_slow_while_its_first_blob_does_not_end() -> None:
    pool = pool_of(1, quick=1)
    pool.add([blob(A)], 0.0)
    pool.add([blob(B, 0.1)], 0.1)
    assert not pool.wants_more(0.1 + GROW_S), "there are as many as there are cores"
    assert pool.patience(0.1) == pytest.approx(SLOW_S - 0.1), "it is looked at again when it is slow"
    assert pool.wants_more(SLOW_S)


def test_a_chain_that_is_quick_again_may_have_all_and_has_them_at_once() -> None:
    pool = pool_of(3, most=3)
    known(pool, slow=[A])
    first, second = pool.add(blobs(A, 5), 1.0)
    done, given = pool.done(first, 1.0 + SHORT)
    assert done is not None
    assert first in given
    assert len(given) == 2, "the one that was left to others works, too"
    assert second.blob is not None


def test_a_quick_chain_becomes_slow() -> None:
    pool = pool_of(2, most=2)
    known(pool, A, B)
    assert len(pool.add(blobs(A, 4), 1.0)) == 2
    for each in list(pool.residents.values()):
        pool.done(each, 1.0 + SLOW_S)
    assert works_on(pool) == [A]


def test_a_task_that_has_ended_is_forgotten() -> None:
    pool = pool_of(2, most=2)
    known(pool, A)
    resident = one(pool.add([blob(A)], 0.0))
    pool.done(resident, SHORT)
    assert A in resident.knows
    pool.forget(A)
    assert not any(A in each.knows for each in pool.residents.values())


def test_of_a_task_that_has_ended_it_is_not_known_that_it_was_slow() -> None:
    pool = pool_of(2, most=2)
    known(pool, slow=[A])
    pool.forget(A)
    assert len(pool.add(blobs(A, 2), 1.0)) == 2


# --- how many ---------------------------------------------------------------------------------------------------------


def test_as_many_are_begun_as_shall_stay() -> None:
    pool = pool_of(0, least=2)
    assert pool.patience(0.0) == 0.0
    for _ in range(2):
        assert pool.wants_more(0.0)
        pool.begin(0.0)
    assert not pool.wants_more(0.0)
    assert pool.patience(0.0) is None


def test_none_is_begun_before_there_is_work_when_none_shall_stay() -> None:
    pool = pool_of(0, least=0)
    assert not pool.wants_more(0.0)
    assert pool.patience(0.0) is None
    pool.add([blob(A)], 0.0)
    assert pool.patience(0.0) == pytest.approx(GROW_S)
    assert pool.wants_more(GROW_S)


def test_one_more_is_wanted_when_work_has_waited_for_a_while() -> None:
    pool = pool_of(1)
    pool.add(blobs(A, 2, since=1.0), 1.0)
    assert not pool.wants_more(1.0)
    assert pool.patience(1.0) == pytest.approx(GROW_S)
    assert not pool.wants_more(1.0 + GROW_S / 2)
    assert pool.wants_more(1.0 + GROW_S)


def test_nothing_waits_and_none_is_wanted() -> None:
    pool = pool_of(1)
    pool.add([blob(A)], 0.0)
    assert not pool.wants_more(10.0)


def test_they_come_one_at_a_time() -> None:
    pool = pool_of(1)
    pool.add(blobs(A, 9), 0.0)
    assert pool.wants_more(1.0)
    begun = pool.begin(1.0)
    assert not pool.wants_more(2.0), "one is on its way"
    pool.seat(begun.number, 2.0)
    assert pool.wants_more(2.0)


def test_quick_chains_get_as_many_as_there_are_cores() -> None:
    pool = pool_of(2, quick=2)
    known(pool, A)
    pool.add(blobs(A, 9), 0.0)
    assert not pool.wants_more(SLOW_S / 2)


def test_what_slow_chains_hold_comes_on_top() -> None:
    pool = pool_of(2, quick=2)
    known(pool, slow=[A])
    pool.add(blobs(A, 9), 0.0)
    assert pool.wants_more(GROW_S)
    came(pool, GROW_S)
    assert pool.wants_more(GROW_S), "slow chains hold three, two more are for quick ones"


def test_never_more_than_the_most() -> None:
    pool = pool_of(3, most=3)
    known(pool, slow=[A])
    pool.add(blobs(A, 9), 0.0)
    assert not pool.wants_more(100.0)


def test_one_can_be_had_before_it_is_known_how_many() -> None:
    """A cluster's slots are counted when the first resident is begun."""
    pool = pool_of(0, least=0, most=0, quick=0)
    pool.add([blob(A)], 0.0)
    assert pool.wants_more(GROW_S)
    assert came(pool, 1.0).blob is not None


def test_who_has_been_idle_for_long_goes_the_longest_idle_first() -> None:
    pool = pool_of(0, least=1)
    residents = [came(pool, at) for at in (3.0, 1.0, 2.0)]
    assert pool.superfluous(1.0 + IDLE_S - 0.1) == []
    assert pool.patience(10.0) == pytest.approx(1.0 + IDLE_S - 10.0)
    assert pool.superfluous(1.0 + IDLE_S) == [residents[1]]
    assert pool.superfluous(100.0) == [residents[2]]
    assert pool.superfluous(100.0) == [], "one stays"
    assert list(pool.residents.values()) == [residents[0]]
    assert pool.patience(100.0) is None


def test_all_go_when_none_shall_stay() -> None:
    pool = pool_of(2, least=0)
    assert len(pool.superfluous(IDLE_S)) == 2
    assert not pool.residents


def test_who_works_stays() -> None:
    pool = pool_of(2)
    busy = one(pool.add([blob(A)], 0.0))
    gone = one(pool.superfluous(1000.0))
    assert gone is not busy
    assert pool.superfluous(2000.0) == []


def test_it_is_looked_at_again_whether_who_works_now_has_become_idle() -> None:
    """Nobody is woken when a result comes."""
    pool = pool_of(2)
    pool.add([blob(A), blob(B)], 0.0)
    assert pool.patience(5.0) == pytest.approx(IDLE_S)


def test_who_has_not_called_yet_stays() -> None:
    pool = pool_of(0, least=0)
    pool.begin(0.0)
    assert pool.superfluous(1000.0) == []


def test_the_end_of_one_that_was_superfluous_was_wanted() -> None:
    pool = pool_of(2)
    gone = one(pool.superfluous(IDLE_S))
    assert pool.die(gone, IDLE_S) is None
    assert pool.end(gone)


def test_the_end_of_another_was_not() -> None:
    pool = pool_of(1)
    resident = pool.residents[1]
    pool.die(resident, 0.0)
    assert not pool.end(resident)
    assert pool.wants_more(0.0), "a new one takes its place"


# --- deaths -----------------------------------------------------------------------------------------------------------


def test_who_dies_without_work_harms_nobody() -> None:
    pool = pool_of(2)
    resident = pool.residents[1]
    assert pool.die(resident, 0.0) is None
    assert not resident.there
    assert pool.judge(10.0) == []
    assert not pool.waits


def test_what_a_dead_resident_worked_on_is_judged_in_a_moment_and_given_to_another() -> None:
    pool, work = pool_of(3), blob(A)
    first = one(pool.add([work], 0.0))
    assert pool.die(first, 1.0) is work
    assert pool.patience(1.0) == pytest.approx(WITNESS_S)
    assert pool.judge(1.0 + WITNESS_S / 2) == []
    assert pool.share(1.0 + WITNESS_S / 2) == []
    assert pool.judge(1.0 + WITNESS_S) == []
    second = one(pool.share(1.0 + WITNESS_S))
    assert second is not first
    assert (second.blob, work.suspect, work.deaths) == (work, True, 1)


def test_it_comes_before_what_came_later() -> None:
    pool, work = pool_of(2), blob(A)
    first = one(pool.add([work], 0.0))
    pool.add([blob(B), blob(C)], 0.0)
    pool.die(first, 0.0)
    pool.judge(WITNESS_S)
    pool.seat(first.number, WITNESS_S)
    assert first.blob is work


def test_others_work_on_while_one_is_judged() -> None:
    pool = pool_of(2)
    first = one(pool.add([blob(A)], 0.0))
    pool.die(first, 0.0)
    assert len(pool.add([blob(B)], SHORT)) == 1


def test_the_culprit_has_ended_three_residents_while_others_lived() -> None:
    pool, work = pool_of(3), blob(A)
    now = 0.0
    pool.add([work], now)
    for death in range(1, DEATHS + 1):
        holder = one([each for each in pool.residents.values() if each.blob is work])
        pool.die(holder, now)
        now += WITNESS_S
        culprits = pool.judge(now)
        assert work.deaths == death
        assert culprits == ([work] if death == DEATHS else [])
        pool.seat(holder.number, now)
        pool.share(now)
    assert not pool.waits
    assert works_on(pool) == []


def test_when_all_die_at_once_nobody_is_blamed() -> None:
    """Their machine went, or Spark's JVM."""
    pool = pool_of(3)
    known(pool, A)
    work = blobs(A, 3)
    now = 0.0
    residents = pool.add(work, now)
    for _ in range(DEATHS + 2):
        for each in list(pool.residents.values()):
            pool.die(each, now)
        now += WITNESS_S
        assert pool.judge(now) == []
        for each in residents:
            pool.seat(each.number, now)
        pool.share(now)
    assert [each.deaths for each in work] == [0, 0, 0]


def test_while_somebody_kills_residents_that_have_no_work_no_blob_is_blamed() -> None:
    pool, work, now = pool_of(3), blob(A), 0.0
    pool.add([work], now)
    for _ in range(2 * DEATHS):
        bystander = next(each for each in pool.residents.values() if each.idle)
        pool.die(bystander, now)
        now += SLOW_S / 2
        holder = one([each for each in pool.residents.values() if each.blob is work])
        pool.die(holder, now)
        now += WITNESS_S
        assert pool.judge(now) == []
        for each in (bystander, holder):
            pool.seat(each.number, now)
        pool.share(now)
    assert (work.suspect, work.deaths) == (True, 0)
    holder = one([each for each in pool.residents.values() if each.blob is work])
    pool.die(holder, now + KILLED_S)
    pool.judge(now + KILLED_S + WITNESS_S)
    assert work.deaths == 1, "that is long ago now"


def test_who_dies_together_with_another_is_not_to_blame_although_somebody_came_just_before() -> None:
    """Whoever kills all of them does not know yet of the one that has just been born."""
    pool, work = pool_of(2), blobs(A, 2)
    known(pool, A)
    first, second = pool.add(work, 0.0)
    came(pool, 0.1)
    pool.die(first, 0.1)
    pool.die(second, 0.11)
    assert pool.judge(0.11 + WITNESS_S) == []
    assert [(each.suspect, each.deaths) for each in work] == [(True, 0), (True, 0)]


def test_who_died_too_is_no_witness_although_spark_has_brought_it_back() -> None:
    pool, work = pool_of(2), blob(A)
    first = one(pool.add([work], 0.0))
    second = one([each for each in pool.residents.values() if each is not first])
    pool.die(first, 0.0)
    pool.die(second, 0.01)
    for each in (first, second):
        assert pool.seat(each.number, WITNESS_S / 2)[0] is each
    pool.judge(WITNESS_S)
    assert (work.suspect, work.deaths) == (True, 0)


def test_who_came_after_the_death_is_no_witness() -> None:
    pool, work = pool_of(1), blob(A)
    first = one(pool.add([work], 0.0))
    pool.die(first, 0.0)
    came(pool, 0.1)
    pool.judge(WITNESS_S)
    assert work.deaths == 0


def test_where_there_can_be_only_one_it_has_no_witnesses() -> None:
    pool, work = pool_of(1, most=1), blob(A)
    resident = one(pool.add([work], 0.0))
    now = 0.0
    for _ in range(DEATHS - 1):
        pool.die(resident, now)
        now += WITNESS_S
        assert pool.judge(now) == []
        assert pool.seat(1, now) == (resident, True)
    pool.die(resident, now)
    assert pool.judge(now + WITNESS_S) == [work]


def suspect(pool: Pool, task: TaskId = A) -> Blob:
    """One that ended a resident, which Spark has brought back. Everybody is idle."""
    made = blob(task)
    pool.add([made], 0.0)
    made.suspect = True
    for each in pool.residents.values():
        if each.blob is not None:
            pool.die(each, 0.0)
    return made


def test_a_suspect_waits_until_somebody_can_outlive_it() -> None:
    pool = pool_of(1, quick=1)
    work = suspect(pool)
    pool.judge(WITNESS_S)
    assert pool.seat(1, WITNESS_S) == (pool.residents[1], False)
    assert pool.wants_more(WITNESS_S), "although there are as many as cores"
    second = came(pool, 1.0)
    assert second.blob is work


def test_others_do_not_wait_for_a_suspect() -> None:
    pool = pool_of(1, quick=1)
    suspect(pool)
    pool.judge(WITNESS_S)
    pool.seat(1, WITNESS_S)
    other = blob(B)
    assert one(pool.add([other], 1.0)).blob is other


def test_suspects_run_one_by_one() -> None:
    """A batch in four parts, each of which ends its process: together they would look like bad luck for ever."""
    pool = pool_of(4, most=4)
    known(pool, A)
    work = blobs(A, 4)
    for each in pool.add(work, 0.0):
        pool.die(each, 0.0)
    culprits: list[Blob] = []
    now = 0.0
    for _ in range(100):
        now += WITNESS_S
        culprits += pool.judge(now)
        for number in pool.residents:
            pool.seat(number, now)
        pool.share(now)
        busy = [each for each in pool.residents.values() if each.blob is not None]
        assert len(busy) <= 1
        for each in busy:
            pool.die(each, now)
    assert sorted(culprits, key=work.index) == work
    assert not pool.waits


def test_a_suspect_that_takes_long_does_not_keep_others_waiting() -> None:
    pool = pool_of(3, most=3)
    known(pool, B, slow=[A])
    first, second = blob(A), blob(B)
    for each in pool.add([first, second], 0.0):
        pool.die(each, 0.0)
    pool.judge(WITNESS_S)
    for number in pool.residents:
        pool.seat(number, WITNESS_S)
    assert works_on(pool) == [A]
    assert pool.patience(WITNESS_S) == pytest.approx(SLOW_S)
    assert pool.share(WITNESS_S + SLOW_S / 2) == []
    assert one(pool.share(WITNESS_S + SLOW_S)).blob is second


def test_a_suspect_that_succeeds_is_done_and_its_chain_as_good_as_any() -> None:
    pool = pool_of(2)
    work = suspect(pool)
    pool.judge(WITNESS_S)
    pool.seat(1, WITNESS_S)
    pool.share(WITNESS_S)
    holder = one([each for each in pool.residents.values() if each.blob is work])
    assert pool.done(holder, WITNESS_S + SHORT) == (work, [])
    pool.seat(2, 1.0)
    assert len(pool.add(blobs(A, 2), 1.0)) == 2


def test_the_next_suspect_comes_when_one_is_done() -> None:
    pool = pool_of(2)
    known(pool, A)
    work = blobs(A, 2)
    for each in pool.add(work, 0.0):
        pool.die(each, 0.0)
    pool.judge(WITNESS_S)
    for number in (1, 2):
        pool.seat(number, WITNESS_S)
    holder = one([each for each in pool.residents.values() if each.blob is not None])
    done, given = pool.done(holder, WITNESS_S + SHORT)
    assert (done, [each.blob for each in given]) == (work[0], [work[1]])


# --- what is not wanted any more --------------------------------------------------------------------------------------


def test_cancelling_drops_what_waits_and_condemns_who_works_on_it() -> None:
    pool = pool_of(1)
    work, other = blobs(A, 3), blob(B)
    resident = one(pool.add(work, 0.0))
    pool.add([other], 0.0)
    dropped, condemned = pool.cancel(A)
    assert sorted(dropped, key=work.index) == work
    assert condemned == [resident]
    came(pool, 1.0)
    assert works_on(pool) == [A, B], "what others wait for is left"


def test_cancelling_drops_what_is_being_judged() -> None:
    pool, work = pool_of(2), blob(A)
    pool.die(one(pool.add([work], 0.0)), 0.0)
    assert pool.cancel(A) == ([work], [])
    assert pool.judge(WITNESS_S) == []
    assert not pool.waits


def test_dropping_leaves_those_alone_who_work() -> None:
    pool = pool_of(1)
    work, other = blobs(A, 3), blob(B)
    resident = one(pool.add(work, 0.0))
    pool.add([other], 0.0)
    assert pool.drop(A) == work[1:]
    assert not resident.condemned
    done, given = pool.done(resident, 0.1)
    assert (done, [each.blob for each in given]) == (work[0], [other])


def test_cancelling_what_is_not_there() -> None:
    assert pool_of(1).cancel(A) == ([], [])


def test_who_is_condemned_gets_no_work_any_more() -> None:
    """Its job is about to end, and what it were given with it."""
    pool = pool_of(1)
    resident = one(pool.add([blob(A)], 0.0))
    pool.cancel(A)
    pool.add([blob(B)], 0.0)
    done, given = pool.done(resident, SHORT)
    assert done is not None
    assert given == []
    assert not resident.idle
    assert pool.add([blob(C)], 1.0) == []
    assert pool.superfluous(1000.0) == []


def test_who_was_condemned_is_not_let_in_again() -> None:
    pool = pool_of(1)
    resident = one(pool.add([blob(A)], 0.0))
    pool.cancel(A)
    pool.die(resident, 1.0)
    assert pool.seat(resident.number, 1.0) == (None, False)


def test_what_a_condemned_resident_worked_on_is_not_given_to_another() -> None:
    pool = pool_of(2)
    resident = one(pool.add([blob(A)], 0.0))
    pool.cancel(A)
    assert pool.die(resident, 1.0) is None
    assert pool.judge(10.0) == []
    assert not pool.waits
    assert pool.end(resident), "its end was wanted"


def test_nothing_waits_after_clearing() -> None:
    pool = pool_of(2)
    work = [blob(A), blob(B), blob(C)]
    first, _ = pool.add(work, 0.0)
    pool.die(first, 0.0)
    pool.clear()
    assert not pool.waits
    assert pool.judge(10.0) == []


def test_a_job_that_ends_before_its_line_loses_nothing() -> None:
    pool, work = pool_of(2), blob(A)
    resident = one(pool.add([work], 0.0))
    assert not pool.end(resident)
    assert pool.die(resident, 0.0) is work
    pool.judge(WITNESS_S)
    came(pool, WITNESS_S)
    assert any(each.blob is work for each in pool.residents.values())


def test_who_answers_after_its_job_has_ended_gets_no_more() -> None:
    pool = pool_of(1)
    resident = one(pool.add(blobs(A, 2), 0.0))
    pool.end(resident)
    assert pool.done(resident, SHORT)[1] == []
    assert pool.waits


# --- starts that come to nothing --------------------------------------------------------------------------------------


def test_a_start_that_came_to_nothing_is_tried_again_later_and_later() -> None:
    pool = pool_of(0)
    delays = [pool.fail(0.0, hopeless=False)[0] for _ in range(7)]
    assert delays == [1, 2, 4, 8, 16, 30, 30]
    assert not pool.wants_more(29.9)
    assert pool.patience(0.0) == 30.0
    assert pool.wants_more(30.0)


def test_it_may_come_to_nothing_for_weeks() -> None:
    pool = pool_of(0)
    for _ in range(5000):
        delay, _ = pool.fail(0.0, hopeless=False)
    assert delay == 30.0


def test_work_waits_for_three_starts_and_is_given_up_then() -> None:
    pool, work = pool_of(0), blobs(A, 2)
    pool.add(work, 0.0)
    for _ in range(STARTS - 1):
        assert pool.fail(0.0, hopeless=False)[1] == []
    assert pool.fail(0.0, hopeless=False)[1] == work
    assert not pool.waits


def test_work_waits_longer_where_somebody_has_called_not_long_ago() -> None:
    """Python workers that are killed again and again may be killed before they call."""
    pool, work = pool_of(1), blob(A)
    pool.die(pool.residents[1], 0.0)
    pool.end(pool.residents[1])
    pool.add([work], 0.0)
    for _ in range(2 * STARTS):
        assert pool.fail(HOPE_S - 1, hopeless=False)[1] == []
    assert pool.fail(HOPE_S, hopeless=False)[1] == [work]


def test_without_hope_it_is_given_up_at_once() -> None:
    pool, work = pool_of(0), blob(A)
    pool.add([work], 0.0)
    assert pool.fail(0.0, hopeless=True)[1] == [work]


def test_while_somebody_lives_nobody_gives_up() -> None:
    pool = pool_of(1)
    pool.add(blobs(A, 5), 0.0)
    for _ in range(10):
        assert pool.fail(0.0, hopeless=True)[1] == []
    assert pool.waits


def test_the_pool_does_not_grow_while_starts_fail() -> None:
    pool = pool_of(1)
    pool.add(blobs(A, 5), 0.0)
    pool.fail(1.0, hopeless=False)
    assert not pool.wants_more(1.5)
    assert pool.patience(1.5) == pytest.approx(0.5)
    assert pool.wants_more(2.0)


def test_nobody_looks_all_the_time_while_starts_fail() -> None:
    """What becomes slow meanwhile is seen once."""
    pool = pool_of(1, quick=1)
    pool.add(blobs(A, 5), 0.0)
    for _ in range(6):
        pool.fail(0.0, hopeless=False)
    assert not pool.wants_more(10.0)
    assert pool.patience(10.0) == pytest.approx(20.0)


def test_who_calls_ends_the_row_of_failures() -> None:
    pool = pool_of(0)
    for _ in range(STARTS - 1):
        pool.fail(0.0, hopeless=False)
    resident = came(pool, 1.0)
    pool.die(resident, 1.0)
    pool.end(resident)
    pool.add([blob(A)], 1.0)
    assert pool.fail(1.0, hopeless=False) == (1.0, [])


# --- nothing is lost, nobody starves ----------------------------------------------------------------------------------

EVENTS = st.sampled_from(
    ["add", "call", "done", "die", "end", "judge", "look", "cancel", "grow", "shrink", "fail", "evict"]
)
PAUSES = st.sampled_from([0.0, 0.01, GROW_S, WITNESS_S, SLOW_S, 10.0, IDLE_S])


class Story:
    """A pool to which things happen as they do in a worker, and where every blob is meanwhile."""

    def __init__(self, limits: ResidentSettings) -> None:
        self.pool = Pool(limits)
        self.now = 0.0
        self.unfinished: set[Blob] = set()
        self.finished: set[Blob] = set()
        self.ended: list[Resident] = []
        """Whose jobs have ended, while their lines have not yet."""

    def finish(self, gone: Sequence[Blob]) -> None:
        for each in gone:
            assert each in self.unfinished, "it was finished twice"
            self.unfinished.discard(each)
            self.finished.add(each)

    def happens(self, event: str, choice: int) -> None:
        pool, now = self.pool, self.now
        residents = [*pool.residents.values(), *self.ended]
        chosen = residents[choice % len(residents)] if residents else None
        task = (A, B, C)[choice % 3]
        if event == "add":
            made = blobs(task, 1 + choice % 4, since=now)
            self.unfinished |= set(made)
            pool.add(made, now)
        elif event == "grow":
            if pool.wants_more(now):
                pool.begin(now)
        elif event == "call" and chosen is not None:
            was = chosen.there
            seated, _ = pool.seat(chosen.number, now)
            assert seated is None or not was
        elif event == "done" and chosen is not None and chosen.there and chosen.blob is not None:
            wanted = not chosen.condemned
            done, _ = pool.done(chosen, now)
            assert done is not None
            if wanted:
                self.finish([done])
        elif event == "die" and chosen is not None and chosen.there:
            pool.die(chosen, now)
            self.ended = [each for each in self.ended if each is not chosen]
        elif event == "end" and chosen is not None and chosen.number in pool.residents:
            pool.end(chosen)
            if chosen.there:
                self.ended.append(chosen)
        elif event == "judge":
            self.finish(pool.judge(now))
            pool.share(now)
        elif event == "look":
            self.look()
        elif event == "cancel":
            self.finish(pool.cancel(task)[0] if not self.cancels_twice(task) else [])
        elif event == "evict":
            pool.evict(now)
        elif event == "shrink":
            for each in pool.superfluous(now):
                assert each.blob is None
        elif event == "fail":
            self.finish(pool.fail(now, hopeless=choice % 2 == 0)[1])

    def cancels_twice(self, task: TaskId) -> bool:
        """A task is cancelled once: what its condemned residents hold was given back then."""
        return any(each.condemned and each.blob and each.blob.task == task for each in self.pool.residents.values())

    def places(self) -> list[Blob]:
        pool = self.pool
        working = [each for each in (*pool.residents.values(), *self.ended) if each.blob is not None]
        held = [each.blob for each in working if each.blob is not None and not each.condemned]
        return [*pool._waiting, *(each for _, each, _ in pool._judgements), *held]

    def check(self) -> None:
        pool = self.pool
        places = self.places()
        assert len(places) == len(set(places)), "a blob is in two places"
        assert set(places) == self.unfinished, "a blob is nowhere, or somewhere although it is finished"
        assert all(each.deaths < DEATHS for each in places)
        assert len(pool.residents) <= max(pool.settings.most, pool.settings.least)
        suspects = [each for each in pool.residents.values() if each.blob and each.blob.suspect]
        assert len([each for each in suspects if self.now < each.since + SLOW_S]) <= 1
        if any(each.idle for each in pool.residents.values()):
            waits = [each for each in pool._waiting if not each.suspect and each.task not in pool._slow]
            assert not waits, "somebody is idle while quick work waits"

    def look(self) -> None:
        """As the keeper of the pool does. When it has done all there is to do, it need not look again at once."""
        pool, now = self.pool, self.now
        self.finish(pool.judge(now))
        pool.share(now)
        pool.evict(now)
        pool.superfluous(now)
        while pool.wants_more(now):
            pool.begin(now)
        due = pool.patience(now)
        assert due is None or due > 0.0


@settings(max_examples=4 * settings().max_examples)
@given(
    st.builds(
        lambda least, most, quick: ResidentSettings(min(least, most), most, min(quick, most), IDLE_S),
        st.integers(0, 2),
        st.integers(1, 5),
        st.integers(1, 3),
    ),
    st.lists(st.tuples(EVENTS, st.integers(0, 11), PAUSES), max_size=60),
)
def test_whatever_happens_no_blob_is_lost_or_doubled_and_quick_work_does_not_wait_for_nothing(
    limits: ResidentSettings, events: list[tuple[str, int, float]]
) -> None:
    story = Story(limits)
    for event, choice, pause in events:
        story.now += pause
        story.happens(event, choice)
        story.check()


@settings(max_examples=2 * settings().max_examples)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(EVENTS, st.integers(0, 11), PAUSES), max_size=40),
)
def test_when_nothing_bad_happens_any_more_all_work_is_done(most: int, events: list[tuple[str, int, float]]) -> None:
    """As the keeper of the pool does it: look when there is something to do. It never has to look without end."""
    story = Story(ResidentSettings(min(1, most), most, min(2, most), IDLE_S))
    for event, choice, pause in events:
        story.now += pause
        story.happens(event, choice)
    pool = story.pool
    for each in [*pool.residents.values(), *story.ended]:
        if each.condemned:  # Spark ends its job
            pool.die(each, story.now)
            pool.end(each)
    for each in list(story.ended):
        pool.die(each, story.now)
    story.ended.clear()
    looks = 0
    while story.unfinished:
        looks += 1
        assert looks < 1000, "nobody works on what is left"
        due = pool.patience(story.now)
        busy = [each for each in pool.residents.values() if each.blob is not None]
        away = [each for each in pool.residents.values() if not each.there]
        assert due is not None or busy or away, "it waits for nothing"
        story.now += due if due is not None and not busy and not away else 0.001
        story.finish(pool.judge(story.now))
        pool.share(story.now)
        pool.superfluous(story.now)
        if pool.wants_more(story.now):
            pool.begin(story.now)
        for each in away:
            pool.seat(each.number, story.now)
        for each in busy:
            if each.blob is not None:
                story.finish([each.blob])
                pool.done(each, story.now)


# --- what is told of it -----------------------------------------------------------------------------------------------


def test_a_blob_whose_resident_died_is_told_of_to_its_task_alone() -> None:
    pool = pool_of(2)
    first, _ = pool.add([blob(A), blob(B)], 0.0)
    assert (pool.trouble(A), pool.trouble(B)) == (None, None)
    pool.die(first, 0.0)
    pool.judge(WITNESS_S)
    told = pool.trouble(A)
    assert told is not None
    assert f"{DEATHS - 1} more and the task fails" in told
    assert pool.trouble(B) is None


def test_who_waits_for_residents_that_do_not_come_is_told() -> None:
    pool = pool_of(0)
    pool.add([blob(A)], 0.0)
    assert pool.trouble(A) is None
    pool.begin(0.0)
    pool.fail(0.0, hopeless=False)
    assert pool.trouble(A) == "no Python worker of Spark comes up; 1 tries failed"
    came(pool)
    assert pool.trouble(A) is None
