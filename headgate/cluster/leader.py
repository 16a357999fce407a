"""What the leader of the group does in a rebalance, and what it remembers from one to the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headgate.cluster.assignor import Decision, Memory, Round, Share, assign, assign_eagerly
from headgate.cluster.protocol import Assignment, AssignmentProblem, MemberState, Protocol
from headgate.cluster.work import NOTHING, Work
from headgate.model import TaskId


@dataclass(frozen=True, slots=True)
class Election:
    """A rebalance for whose assignment this worker was chosen."""

    protocol: Protocol
    generation: int
    last_generation: int
    """The last one that this worker completed; -1 when there is none."""
    leader: str
    """The member id of this worker."""
    members: Mapping[str, MemberState]
    """By member id, itself included."""

    @property
    def offset(self) -> int:
        """The largest config offset that anybody has read to: an assignment must not be based on less."""
        return max(member.offset for member in self.members.values())


@dataclass(eq=False)
class Leader:
    """Lives as long as the worker, whether it leads or not. Not for several threads at once."""

    _max_delay_ms: int
    _clock_ms: Callable[[], int] = lambda: int(time.monotonic() * 1000)
    _leaving: frozenset[str] = frozenset()
    _memories: Mapping[int, Memory] = field(default_factory=dict)
    """By generation: a round that came to nothing, because somebody joined meanwhile, leaves no trace."""
    _urls: Mapping[str, str] = field(default_factory=dict)
    _owners: dict[str | TaskId, str] = field(default_factory=dict)
    takes_away: bool = False
    """By the last assignment somebody has to give something up, and to join again then."""

    def took_leave(self, member: str) -> None:
        """What this member has will not wait for its return once it is missing."""
        self._leaving |= {member}

    def assign(self, election: Election, offset: int, configured: Work) -> dict[str, Assignment]:
        """For every member. `configured` is all that there is at config offset `offset`; when that is less than
        `election.offset` nobody is given anything, and all have to catch up and join again."""
        memory = self._memories.get(election.last_generation, Memory())
        held = {member: state.held.assigned if state.held else NOTHING for member, state in election.members.items()}
        self._leaving &= memory.given.keys() | held.keys()
        problem = AssignmentProblem.NONE
        if offset < election.offset:
            decision = Decision(dict.fromkeys(held, Share()), 0, replace(memory, generation=election.generation))
            problem = AssignmentProblem.CONFIG_MISMATCH
        elif election.protocol.cooperative:
            now, delay = self._clock_ms(), self._max_delay_ms
            decision = assign(
                Round(
                    election.generation, election.last_generation, held, configured, now, delay, leaving=self._leaving
                ),
                memory,
            )
        else:
            dealt = assign_eagerly(held, configured)
            shares = {member: Share(work) for member, work in dealt.items()}
            decision = Decision(shares, 0, Memory(election.generation, dealt))
        self.takes_away = any(share.revoked for share in decision.shares.values())
        self._remember_owners(election, decision.memory)
        # Of an eager round there is nothing to remember: nobody keeps anything.
        after = decision.memory if election.protocol.cooperative else Memory(election.generation)
        self._memories = {election.last_generation: memory, election.generation: after}
        url = election.members[election.leader].url
        return {
            member: Assignment(
                election.leader,
                url,
                max(offset, election.offset),
                share.assigned,
                share.revoked,
                decision.delay_ms,
                problem,
            )
            for member, share in decision.shares.items()
        }

    def owner(self, work: str | TaskId) -> str | None:
        """The URL of the worker that has this connector or task since the last assignment; None when nobody has."""
        return self._urls.get(self._owners.get(work, ""))

    def _remember_owners(self, election: Election, memory: Memory) -> None:
        self._urls = {member: state.url for member, state in election.members.items()}
        self._owners = {}
        for member, work in memory.given.items():
            self._owners |= dict.fromkeys(work.connectors, member) | dict.fromkeys(work.tasks, member)
