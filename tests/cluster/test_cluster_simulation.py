"""Whatever happens to a cluster, it settles: all is done, by one each, evenly, and nothing moved without need."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from simulated_cluster import MAX_DELAY_MS, SimulatedCluster, Worker

from headgate.cluster.work import NOTHING

pick = st.integers(0, 99)
FEW_ROUNDS = 8


class Cluster(RuleBasedStateMachine):
    """Every round is checked by the simulator itself."""

    @initialize(max_delay_ms=st.sampled_from([0, 50, MAX_DELAY_MS]), members=st.integers(1, 4))
    def begin(self, max_delay_ms: int, members: int) -> None:
        self.cluster = SimulatedCluster(max_delay_ms)
        self.away: list[Worker] = []
        self.names = 0
        for _ in range(members):
            self.cluster.join()

    def member(self, number: int) -> str:
        members = list(self.cluster.workers)
        return members[number % len(members)]

    # --- members ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.cluster.workers) < 6)
    @rule()
    def one_joins(self) -> None:
        self.cluster.join()

    @precondition(lambda self: len(self.cluster.workers) > 1)
    @rule(number=pick)
    def one_leaves(self, number: int) -> None:
        self.cluster.leave(self.member(number))

    @precondition(lambda self: len(self.cluster.workers) > 1)
    @rule(number=pick, dead=st.booleans())
    def one_vanishes(self, number: int, dead: bool) -> None:
        worker = self.cluster.vanish(self.member(number))
        if not dead:  # only cut off: it goes on with what it has
            self.away.append(worker)

    @precondition(lambda self: self.away)
    @rule()
    def one_comes_back(self) -> None:
        self.cluster.join(self.away.pop(0))

    @precondition(lambda self: len(self.cluster.workers) < 6)
    @rule(number=pick)
    def one_is_restarted(self, number: int) -> None:
        self.cluster.vanish(self.member(number))
        self.cluster.join()

    # --- work ---------------------------------------------------------------------------------------------------------

    @rule(tasks=st.integers(0, 7))
    def a_connector_is_created(self, tasks: int) -> None:
        self.names += 1
        self.cluster.tasks[f"c{self.names}"] = tasks

    @precondition(lambda self: self.cluster.tasks)
    @rule(number=pick, tasks=st.integers(0, 7))
    def a_connector_has_other_tasks(self, number: int, tasks: int) -> None:
        names = sorted(self.cluster.tasks)
        self.cluster.tasks[names[number % len(names)]] = tasks

    @precondition(lambda self: self.cluster.tasks)
    @rule(number=pick)
    def a_connector_is_deleted(self, number: int) -> None:
        names = sorted(self.cluster.tasks)
        del self.cluster.tasks[names[number % len(names)]]

    # --- rounds -------------------------------------------------------------------------------------------------------

    @rule()
    def a_round(self) -> None:
        self.cluster.round()

    @rule(numbers=st.lists(pick, min_size=1, max_size=3))
    def a_round_that_some_do_not_hear_of(self, numbers: list[int]) -> None:
        self.cluster.round(deaf={self.member(number) for number in numbers})

    @rule()
    def a_round_that_comes_to_nothing(self) -> None:
        self.cluster.round(deaf=set(self.cluster.workers))

    @rule(ms=st.sampled_from([1, 60, 100_000, MAX_DELAY_MS]))
    def time_passes(self, ms: int) -> None:
        self.cluster.now_ms += ms

    @rule()
    def all_settles(self) -> None:
        assert self.cluster.settle() <= FEW_ROUNDS
        for told in self.cluster.round().values():  # and stays so
            assert (told.assigned, told.revoked, told.delay_ms) == (NOTHING, NOTHING, 0)

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.settle()


Cluster.TestCase.settings = settings(
    max_examples=3 * settings().max_examples // 2,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCluster = Cluster.TestCase


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None)
def test_growing_and_shrinking_takes_few_rounds(tasks: list[int], few: int, more: int) -> None:
    cluster = SimulatedCluster()
    cluster.tasks = {f"c{number}": count for number, count in enumerate(tasks)}
    for _ in range(few):
        cluster.join()
    assert cluster.settle() == 1
    before = {member: cluster.held(member) for member in cluster.workers}
    for _ in range(more):
        cluster.join()
    assert cluster.settle() <= 2
    for member, work in before.items():
        assert cluster.held(member) - work == NOTHING, "who was there before gets nothing new"
    before = {member: cluster.held(member) for member in before}
    for member in list(cluster.workers)[few:]:
        cluster.leave(member)
    assert cluster.settle() == 1
    for member, work in before.items():
        assert work - cluster.held(member) == NOTHING, "and gives nothing up when the others leave"


@pytest.mark.parametrize("members", [3, 50])
def test_many_tasks_are_assigned_in_no_time(members: int) -> None:
    cluster = SimulatedCluster()
    cluster.tasks = {f"c{number}": 10 for number in range(1000)}
    for _ in range(members):
        cluster.join()
    assert cluster.settle() == 1
    cluster.join()
    assert cluster.settle() == 2
