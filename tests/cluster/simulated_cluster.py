"""A whole cluster in memory: workers that obey their leader, vanish, come back, or do not hear what they are told."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping

from headgate.cluster.leader import Election, Leader
from headgate.cluster.protocol import Assignment, AssignmentProblem, MemberState, Protocol
from headgate.cluster.work import NOTHING, Work, union
from headgate.model import TaskId

OFFSET = 1
MAX_DELAY_MS = 300_000


class Worker:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self.held = NOTHING
        self.last_generation = -1
        self.leader = Leader(cluster.max_delay_ms, lambda: cluster.now_ms)


class SimulatedCluster:
    """Members are named m1, m2, ... in the order in which they came; who is here longest leads."""

    def __init__(self, max_delay_ms: int = MAX_DELAY_MS) -> None:
        self.max_delay_ms = max_delay_ms
        self.now_ms = 1_000_000
        self.generation = 0
        self.workers: dict[str, Worker] = {}
        self.tasks: dict[str, int] = {}
        self.told: Mapping[str, Assignment] = {}
        self.delay_ms = 0
        self._numbers = itertools.count(1)

    # --- what happens -------------------------------------------------------------------------------------------------

    def join(self, worker: Worker | None = None) -> str:
        """A new worker, or one that was here before: always under a new name."""
        name = f"m{next(self._numbers)}"
        self.workers[name] = worker or Worker(self)
        return name

    def vanish(self, member: str) -> Worker:
        return self.workers.pop(member)

    def leave(self, member: str) -> Worker:
        """After it told the leader."""
        self.workers[self.leader].leader.took_leave(member)
        return self.workers.pop(member)

    def round(self, deaf: Collection[str] = ()) -> Mapping[str, Assignment]:
        """One rebalance; `deaf` members join, but do not get their answer."""
        self.generation += 1
        held = {member: worker.held for member, worker in self.workers.items()}
        leader = self.workers[self.leader]
        election = Election(
            Protocol.SESSIONED, self.generation, leader.last_generation, self.leader, self._states(held)
        )
        self.told = leader.leader.assign(election, OFFSET, self.configured)
        self.delay_ms = self.told[self.leader].delay_ms
        self._check(held)
        self._check_owners(held, leader.leader)
        for member, told in self.told.items():
            if member not in deaf:
                worker = self.workers[member]
                worker.held = (worker.held - told.revoked) | told.assigned
                worker.last_generation = self.generation
        return self.told

    def _states(self, held: Mapping[str, Work]) -> dict[str, MemberState]:
        return {
            member: MemberState(f"http://{member}/", OFFSET, Assignment("", "", OFFSET, work) if work else None)
            for member, work in held.items()
        }

    def settle(self, most: int = 12) -> int:
        """Until nothing is left to do; how many rounds that took."""
        for count in range(1, most + 1):
            self.round()
            if not any(told.revoked for told in self.told.values()):
                if not self.delay_ms:
                    self._check_settled()
                    return count
                self.now_ms += self.delay_ms
        raise AssertionError(f"not settled after {most} rounds: {self.told}")

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def leader(self) -> str:
        return next(iter(self.workers))

    @property
    def configured(self) -> Work:
        return Work.of(self.tasks, (TaskId(name, task) for name, count in self.tasks.items() for task in range(count)))

    def held(self, member: str) -> Work:
        return self.workers[member].held

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _check(self, held: Mapping[str, Work]) -> None:
        """After every round."""
        configured, everything, twice = self.configured, union(held.values()), doubled(held)
        assert 0 <= self.delay_ms <= self.max_delay_ms
        given = Work()
        for member, told in self.told.items():
            assert told.problem is AssignmentProblem.NONE
            assert told.delay_ms == self.delay_ms
            assert told.assigned - configured == NOTHING, "only what is configured is given"
            assert told.assigned & everything == NOTHING, "what somebody still holds is given to nobody"
            assert told.assigned & given == NOTHING, "nothing is given twice"
            assert told.revoked - held[member] == NOTHING, "only what is held is revoked"
            given |= told.assigned
            left = (held[member] & configured) - told.revoked
            _check_movement(left, told.revoked & configured - twice, configured, len(held))

    def _check_owners(self, held: Mapping[str, Work], leader: Leader) -> None:
        for member, told in self.told.items():
            work = (held[member] - told.revoked) | told.assigned
            owned: list[str | TaskId] = [*work.connectors, *work.tasks]
            for each in owned:
                assert leader.owner(each) == f"http://{member}/"
            for each in told.revoked.connectors:
                assert leader.owner(each) is None

    def _check_settled(self) -> None:
        held = {member: worker.held for member, worker in self.workers.items()}
        assert doubled(held) == NOTHING, "nothing is done by two"
        assert union(held.values()) == self.configured, "all is done, and nothing else"
        for sizes in (
            [len(work.connectors) for work in held.values()],
            [len(work.tasks) for work in held.values()],
        ):
            assert max(sizes) - min(sizes) <= 1, f"balanced: {sizes}"


def _check_movement(left: Work, moved: Work, configured: Work, members: int) -> None:
    """What is configured and held by one only is moved for balance, and no more of it than balance demands."""
    if moved.connectors:
        assert len(left.connectors) >= len(configured.connectors) // members
    if moved.tasks:
        assert len(left.tasks) >= len(configured.tasks) // members


def doubled(held: Mapping[str, Work]) -> Work:
    connectors = Counter(each for work in held.values() for each in work.connectors)
    tasks = Counter(each for work in held.values() for each in work.tasks)
    return Work.of((each for each in connectors if connectors[each] > 1), (each for each in tasks if tasks[each] > 1))
