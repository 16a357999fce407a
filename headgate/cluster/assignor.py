"""Who does what: the leader's decision, as a pure function of what members say and what it remembers.

Incremental and cooperative, as in Kafka Connect: nobody gives up what they may keep. Work whose owner has vanished
waits for `scheduled.rebalance.max.delay.ms`, in case the owner comes back; that of one who took its leave does not.

| Work | is | and |
|---|---|---|
| gone | known, but no longer configured | given up by its owner |
| doubled | held by more than one | given up by all, so that the next round finds it fresh |
| lost | known, but nobody holds it | waits if its owner vanished, else is given to whoever has least |
| fresh | configured, but not known | given to whoever has least |

Known is what was given to anybody the last time, what waits, and what anybody holds.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from headgate.cluster.work import NOTHING, Work, union
from headgate.model import TaskId

T = TypeVar("T", str, TaskId)

_BACKOFF_BASE: Final = 40
"""A second revocation for balance in a row waits for 40 ms, a third for 1.6 s, a fourth for 64 s: up to the delay."""
_NOBODY: Final[Mapping[str, Work]] = {}


@dataclass(frozen=True, slots=True)
class Memory:
    """What the leader knows from the last time."""

    generation: int = -1
    given: Mapping[str, Work] = field(default_factory=lambda: _NOBODY)
    """By member: what each holds once it did what it was told."""
    waiting: Work = NOTHING
    """Lost, and its owner may yet come back."""
    deadline_ms: int | None = None
    """When waiting ends."""
    revoked_before: bool = False
    """For balance."""
    revocations: int = 0
    """How many of them in a row had to be postponed."""
    pause_until_ms: int | None = None
    """No revocations for balance before."""


@dataclass(frozen=True, slots=True)
class Round:
    """One rebalance as the leader sees it."""

    generation: int
    last_generation: int
    """The last one that was completed, as far as this worker knows."""
    held: Mapping[str, Work]
    """By member; at least the leader is there."""
    configured: Work
    now_ms: int
    max_delay_ms: int
    leaving: frozenset[str] = frozenset()
    """Members of the last time that took their leave."""


@dataclass(frozen=True, slots=True)
class Share:
    """What changes for one member."""

    assigned: Work = NOTHING
    revoked: Work = NOTHING


@dataclass(frozen=True, slots=True)
class Decision:
    shares: Mapping[str, Share]
    delay_ms: int
    """After so long there shall be another round; 0 when nothing waits for one."""
    memory: Memory


def assign_eagerly(members: Iterable[str], configured: Work) -> dict[str, Work]:
    """Everything anew, dealt like cards: connectors by name, then tasks."""
    order, cards = sorted(members), list(configured)
    return {member: Work.just(*cards[place :: len(order)]) for place, member in enumerate(order)}


def assign(round_: Round, memory: Memory) -> Decision:
    """Incrementally: each member is told only what changes for it."""
    if memory.generation != round_.last_generation:  # another led in between
        memory = Memory()
    held = union(round_.held.values())
    known = held | memory.waiting | union(memory.given.values())
    gone = known - round_.configured
    lost = known - held - gone
    plan = _Draft(round_.held)
    unwanted = gone | _doubled(round_.held)
    plan.revoke({member: work & unwanted for member, work in round_.held.items()})
    memory = _wait(round_, memory, lost)
    memory = _balance(round_, memory, plan)
    plan.give((round_.configured - known) | (lost - memory.waiting))
    end = memory.deadline_ms if memory.waiting else memory.pause_until_ms
    return Decision(
        {member: plan.share(member) for member in round_.held},
        0 if end is None else end - round_.now_ms,
        replace(memory, generation=round_.generation, given=plan.wanted()),
    )


def _doubled(held: Mapping[str, Work]) -> Work:
    holders = Counter(each for work in held.values() for each in work)
    return Work.just(*(each for each, count in holders.items() if count > 1))


def _wait(round_: Round, memory: Memory, lost: Work) -> Memory:
    """With what waits from now on. What was given to members that are here does not: it got lost on its way to them."""
    missing = memory.given.keys() - round_.held.keys() - round_.leaving
    orphaned = lost & union(memory.given[member] for member in missing)
    over = memory.deadline_ms is None or round_.now_ms >= memory.deadline_ms
    waiting = orphaned if over else orphaned | (memory.waiting & lost)
    if not waiting or not round_.max_delay_ms:
        return replace(memory, waiting=NOTHING, deadline_ms=None)
    deadline = round_.now_ms + round_.max_delay_ms if over else memory.deadline_ms
    return replace(memory, waiting=waiting, deadline_ms=deadline)


def _balance(round_: Round, memory: Memory, plan: _Draft) -> Memory:
    """Revokes what members hold beyond their fair part; not while work waits, for it may come back with its owner. When
    that was done the last time too there is a pause first: perhaps others are about to join."""
    if memory.waiting:
        return replace(memory, revoked_before=False, pause_until_ms=None)
    excess = plan.excess(round_.configured)
    if not excess:
        return replace(memory, revoked_before=False, revocations=0, pause_until_ms=None)
    if memory.pause_until_ms is not None and round_.now_ms < memory.pause_until_ms:
        return memory
    if memory.revoked_before and memory.pause_until_ms is None:
        count = memory.revocations + 1
        if pause := min(_BACKOFF_BASE**count, round_.max_delay_ms):
            return replace(memory, revocations=count, pause_until_ms=round_.now_ms + pause)
    plan.revoke(excess)
    return replace(memory, revoked_before=True, pause_until_ms=None)


class _Draft:
    """What each member will hold, while it is being thought out."""

    def __init__(self, held: Mapping[str, Work]) -> None:
        self._held = held
        self._connectors = {member: set(work.connectors) for member, work in held.items()}
        self._tasks = {member: set(work.tasks) for member, work in held.items()}

    def revoke(self, works: Mapping[str, Work]) -> None:
        for member, work in works.items():
            self._connectors[member] -= work.connectors
            self._tasks[member] -= work.tasks

    def give(self, work: Work) -> None:
        """To whoever has least, connectors and tasks counted apart. Who came with empty hands goes first: perhaps it
        is the owner of what was lost, under a new name."""
        empty = {member for member, held in self._held.items() if not held}
        _deal(sorted(work.connectors), self._connectors, empty)
        _deal(sorted(work.tasks), self._tasks, empty)

    def excess(self, configured: Work) -> dict[str, Work]:
        """What each has beyond its fair part of all that is configured."""
        connectors = _beyond(self._connectors, len(configured.connectors))
        tasks = _beyond(self._tasks, len(configured.tasks))
        found = {member: Work.of(connectors.get(member, ()), tasks.get(member, ())) for member in self._held}
        return {member: work for member, work in found.items() if work}

    def wanted(self) -> dict[str, Work]:
        return {member: Work.of(self._connectors[member], self._tasks[member]) for member in self._held}

    def share(self, member: str) -> Share:
        held, wanted = self._held[member], Work.of(self._connectors[member], self._tasks[member])
        return Share(assigned=wanted - held, revoked=held - wanted)


def _deal(work: Iterable[T], hands: Mapping[str, set[T]], first: Collection[str]) -> None:
    heap = [(len(hand), member not in first, member) for member, hand in hands.items()]
    heapq.heapify(heap)
    for each in work:
        size, later, member = heap[0]
        hands[member].add(each)
        heapq.heapreplace(heap, (size + 1, later, member))


def _beyond(hands: Mapping[str, Collection[T]], total: int) -> dict[str, list[T]]:
    """Everybody may keep the same number; and as many as it takes to have all of it done, one more."""
    least, extra = divmod(total, len(hands))
    excess: dict[str, list[T]] = {}
    for member in sorted(hands):
        limit = least
        if len(hands[member]) > least and extra > 0:
            extra, limit = extra - 1, least + 1
        if over := sorted(hands[member])[limit:]:
            excess[member] = over
    return excess
