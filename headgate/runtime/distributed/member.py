"""This worker as the group sees it: what it joins with, what it decides as leader, what it makes of an assignment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.leader import Election, Leader
from headgate.cluster.protocol import Assignment, AssignmentProblem, Joined, MemberState
from headgate.cluster.work import NOTHING, Work, union
from headgate.metrics import GroupFigures, RebalanceMetrics
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.config_reconciler import ConfigReconciler
from headgate.runtime.distributed.group import GroupMembership, GroupSettings, SharedConfigs, SharedStatuses
from headgate.runtime.distributed.holdings import GroupHoldings
from headgate.runtime.loop import HerderLoop

log = logging.getLogger(__name__)

_TRIES: Final = 5
"""So often the config topic may be unreadable before all work is given up."""
_FLUSH_S: Final = 5.0
_FINISH_S: Final = 5.0
"""Everybody waits for who joins: no longer than tasks are given to end."""


@dataclass(eq=False)
class GroupMember:
    """Fits `cluster.membership.Member`; on the herder's thread."""

    _loop: HerderLoop
    _url: str
    _configs: SharedConfigs
    _statuses: SharedStatuses
    _holdings: GroupHoldings
    _reconciler: ConfigReconciler
    _leader: Leader
    _membership: Callable[[], GroupMembership]
    _after: Callable[[bool, Work], Coroutine[Any, Any, None]]
    """Told of every rebalance that is done, whether this worker leads, and, if so, what members held when they
    joined."""
    _settings: GroupSettings
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """It holds what an assignment gave it, and that one is the newest."""
    _rebalances: RebalanceMetrics = field(default_factory=RebalanceMetrics)
    _joined: Joined | None = None
    _held: Work = NOTHING

    async def state(self) -> MemberState:
        self.settled.clear()
        self._rebalances.begin()
        await self._reconciler.finish(_FINISH_S)  # others start new tasks when they know that the old ones have ended
        offset = self._reconciler.carried_out.offset
        if self._joined is None:
            return MemberState(self._url, offset)
        last = self._joined.assignment
        return MemberState(
            self._url, offset, Assignment(last.leader, last.leader_url, last.offset, self._holdings.given)
        )

    def figures(self) -> GroupFigures:
        """From any thread."""
        place, given = self._membership(), self._holdings.given
        counts, protocol = (len(given.connectors), len(given.tasks)), place.protocol.name.lower()
        return GroupFigures(*counts, place.rebalancing, place.generation, place.leader_url, protocol, self._rebalances)

    @property
    def pending(self) -> bool:
        """Whether there is a rebalance to come, or to be carried out here: it was asked for, or will be, once what the
        config topic says is carried out, or once somebody has given up what this leader takes away."""
        place = self._membership()
        unsettled = place.rebalancing or not self.settled.is_set() or self._reconciler.behind
        return unsettled or (place.is_leader and self._leader.takes_away)

    def rebalance(self, offset: int) -> None:
        """Asks for one, unless the last one knew the config topic up to `offset` already."""
        last = None if self._joined is None else self._joined.assignment
        if last is None or last.problem is not AssignmentProblem.NONE or last.offset < offset:
            self._membership().request_rejoin()

    async def lead(self, election: Election) -> Mapping[str, Assignment]:
        state = self._configs.state()
        if state.offset < election.offset:
            try:
                state = await in_thread(
                    lambda: self._configs.refresh(self._settings.sync_timeout_ms / 1000), "catch-up"
                )
            except Exception as error:
                log.warning("The config topic could not be read to its end, nobody is given work: %s", error)
        connectors = state.view.connectors
        tasks = (task for connector in connectors.values() for task in connector.task_ids)
        self._held = union(each.held.assigned for each in election.members.values() if each.held is not None)
        return self._leader.assign(election, state.offset, Work.of(connectors, tasks))

    async def give_up(self, work: Work | None) -> None:
        self.settled.clear()
        log.info("Giving up %s", "all work" if work is None else _told(work))
        ended = self._holdings.given if work is None else work
        await self._holdings.give_up(work)
        view = self._configs.view()
        for name in ended.connectors:
            if view.get(name) is None:
                self._statuses.remove_topics(name)
        if not await in_thread(lambda: self._statuses.flush(_FLUSH_S), "flush-statuses"):
            log.warning("Not all states of what was given up are written yet")

    async def take_up(self, joined: Joined) -> None:
        self._rebalances.complete()
        self._joined = joined
        given, assignment = self._holdings.given, joined.assignment
        if joined.protocol.cooperative:
            self._holdings.given = (given - assignment.revoked) | assignment.assigned
        else:
            self._holdings.given = assignment.assigned
        if assignment.assigned - given:
            log.info("Taking up %s", _told(assignment.assigned))
        self._loop.spawn(self._settle(joined), "taking up work")

    async def _settle(self, joined: Joined) -> None:
        assignment = joined.assignment
        behind = (
            assignment.problem is not AssignmentProblem.NONE or self._reconciler.carried_out.offset < assignment.offset
        )
        if behind and not await self._catch_up(joined):
            return
        if self._joined is not joined or not self._membership().member_id:
            return  # there was another rebalance meanwhile, or the place is lost
        if assignment.problem is not AssignmentProblem.NONE or self._reconciler.carried_out.offset < assignment.offset:
            self._membership().request_rejoin()
            return
        self._holdings.begin(assignment.offset, self._reconciler.carried_out.view)
        self._loop.spawn(self._after(joined.leads, self._held), "doing what a leader has to")
        if assignment.revoked:
            self._membership().request_rejoin()  # so that others get it
        self.settled.set()

    async def _catch_up(self, joined: Joined) -> bool:
        """Whether the config topic was read to its end. A worker that cannot read it leaves the group until it can;
        what it runs goes on for some time: perhaps nothing of it has changed."""
        left = _TRIES
        while self._joined is joined and not self._loop.ending:
            try:
                began = time.monotonic()
                await self._reconciler.catch_up(self._settings.sync_timeout_ms / 1000)
                if left < _TRIES:
                    log.info("The config topic can be read again")
                    self._membership().request_rejoin()
                    return False
                return True
            except Exception as error:
                log.error("The config topic was not read to its end in %.1f s: %s", time.monotonic() - began, error)
            await asyncio.wrap_future(self._membership().leave("the config topic cannot be read"))
            cooperative, settings = joined.protocol.cooperative, self._settings
            pause_ms = settings.max_delay_ms / 10 / max(left, 1) if cooperative else settings.unsync_backoff_ms
            await asyncio.sleep(pause_ms / 1000)
            left -= 1
            if left == 0 and self._holdings.given != NOTHING:
                log.error("All work is given up: the config topic cannot be read")
                await self._holdings.give_up(None)
        return False


def _told(work: Work) -> str:
    connectors, tasks = sorted(work.connectors), sorted(work.tasks)
    return f"{len(connectors)} connectors and {len(tasks)} tasks" + _some([*connectors, *map(str, tasks)])


def _some(names: list[str]) -> str:
    return f": {', '.join(names[:10])}" + (", …" if len(names) > 10 else "") if names else ""
