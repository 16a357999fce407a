"""GroupHoldings: the connectors and tasks that the group has given to this worker, and what of them may run here.

Used from the herder's thread only. What is given is begun once; what failed stays failed until somebody restarts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final

from headgate.cluster.work import NOTHING, Work, union
from headgate.model import RestartRequest, State, TargetState, TaskId
from headgate.runtime import restart
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import SharedStatuses
from headgate.runtime.errors import ConnectorNotFound, HerderError, StartFailed, StatusNotFound
from headgate.runtime.holdings import Holdings
from headgate.runtime.lifecycle import InstanceEvent, Phase
from headgate.runtime.reconcile import Action, Passed, Shutdown
from headgate.runtime.view import ClusterView

log = logging.getLogger(__name__)

_RETRY_S: Final = 0.25
_RETRY_MOST_S: Final = 60.0
_FLUSH_S: Final = 5.0


@dataclass(eq=False)
class GroupHoldings(Holdings):
    _statuses: SharedStatuses
    given: Work = NOTHING
    _held: Work = NOTHING
    """What of that may run."""
    _barriers: dict[str, int] = field(default_factory=dict)
    """By connector: tasks of it start only by an assignment that knows the config topic up to this offset. All workers
    stop the tasks of an older set before they join; so no two sets ever run side by side."""
    _requests: dict[str, RestartRequest] = field(default_factory=dict)

    def has(self, what: str | TaskId) -> bool:
        return what in (self.given.tasks if isinstance(what, TaskId) else self.given.connectors)

    def held(self, part: Work) -> Work:
        return self._held & part

    # --- what the group gives and takes -------------------------------------------------------------------------------

    def begin(self, offset: int, carried_out: ClusterView) -> None:
        """What was given may run; `offset`: what the assignment is based on, `carried_out`: what this worker lives by.
        Tasks of a set that it knows of, but has not come to yet, have to wait."""
        view = self._configs.view()

        def may_run(task: TaskId) -> bool:
            connector, known = view.get(task.connector), carried_out.get(task.connector)
            if connector is None or known is None or connector.tasks is not known.tasks:
                return False
            return view.has_task(task) and self._barriers.get(task.connector, 0) <= offset

        connectors = (name for name in self.given.connectors if view.get(name) is not None)
        self._held |= Work.of(connectors, filter(may_run, self.given.tasks))
        self._barriers = {name: barrier for name, barrier in self._barriers.items() if barrier > offset}
        self.see_to_all({})

    async def give_up(self, work: Work | None) -> None:
        """All of it if None. Returns when it has ended here, or was given up on."""
        gone = self.given if work is None else work
        self.given -= gone
        await self._end(gone)

    async def shut_down(self) -> None:
        """Ends all of it, connectors first."""
        everything, self.given = self.given, NOTHING
        await self._end(Work(everything.connectors))
        await self._end(Work(tasks=everything.tasks))

    async def end_tasks(self, names: Iterable[str], offset: int) -> None:
        """The tasks of these connectors have other configs now: they end, and start again by an assignment that knows
        of it."""
        affected = frozenset(names)
        self._barriers |= dict.fromkeys(affected, offset)
        await self._end(Work.of(tasks=(task for task in self._held.tasks if task.connector in affected)))

    async def _end(self, work: Work) -> None:
        self._held -= work
        ending = [self._see_to(what, {}) for what in work if self._worker.has_begun(what)]
        for problem in await asyncio.gather(*ending, return_exceptions=True):
            if isinstance(problem, BaseException):
                log.error("Something that was given up did not end as it should", exc_info=problem)

    # --- each connector, each task in its turn ------------------------------------------------------------------------

    def see_to_all(self, passed: Passed) -> None:
        """Whatever is not as it should be."""
        for what in self._held:
            if due := self.due(Work.just(what), passed):
                self._loop.spawn(self._see_to(what, passed), f"{due[0].doing} {what}")

    async def _see_to(self, what: str | TaskId, passed: Passed) -> None:
        """What is due is looked up again when its turn comes."""
        part = Work.just(what)
        async with self._turn(what, self.due(part, passed), passed):
            due = self.due(part, passed)
            if due and not self._worker.has_begun(what) and not self._stays_stopped(what):
                self._board.put(what, InstanceEvent.ASSIGN)
            await self.settle(part, passed)

    def _stays_stopped(self, what: str | TaskId) -> bool:
        """Nobody starts it: whoever it is given to, and whatever it was before, it is STOPPED at once."""
        connector = self._configs.view().get(what) if isinstance(what, str) else None
        return connector is not None and connector.target is TargetState.STOPPED

    def _turn(self, what: str | TaskId, due: list[Action], passed: Passed) -> AbstractAsyncContextManager[None]:
        doing = due[0].doing if due else "seeing to"
        # KIP-875: stopping wins, also over plugin code that hangs.
        if isinstance(what, str) and (Shutdown(what) in due or TargetState.STOPPED in passed.get(what, ())):
            return self.ending(what, doing)
        return self._loop.exclusive(what, doing)

    async def settle(self, part: Work, passed: Passed, quietly: bool = True) -> None:
        """What fails is in the status. One that has to make its tasks before it is paused is asked again until
        somebody takes them."""
        delay = _RETRY_S
        while True:
            try:
                await super().settle(part, passed)
                return
            except HerderError as error:
                started = [name for name in part.connectors if self._is_started(name)]
                if not started:
                    log.debug("It did not come up: %s", error)
                    return
                log.warning("New task configs were not published, trying again in %.2f s: %s", delay, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MOST_S)
            passed = dict.fromkeys(started, (TargetState.PAUSED,))

    def _is_started(self, name: str) -> bool:
        instance = self._worker.connectors.get(name)
        return instance is not None and instance.phase is Phase.STARTED

    # --- restarts -----------------------------------------------------------------------------------------------------

    def request_restart(self, request: RestartRequest) -> None:
        """KIP-745: of several that wait, the one with the highest impact is carried out."""
        name = request.connector
        waiting = self._requests.get(name)
        if waiting is None or restart.impact(request) > restart.impact(waiting):
            self._requests[name] = request
        if waiting is None:
            self._loop.spawn(self._restart_by_plan(name), f"restarting connector {name} and its tasks")

    def under_way(self) -> Work:
        return union([self._restarting, *map(self._chosen, self._requests.values())])

    def _chosen(self, request: RestartRequest) -> Work:
        """What of the plan is here: it is made anew from the states that this worker sees."""
        try:
            status = self._board.status(request.connector, self._actor.type_of(request.connector))
        except (ConnectorNotFound, StatusNotFound) as error:
            log.warning("Nothing is restarted: %s", error)
            return NOTHING
        return self.held(restart.plan(request, status, chosen_before=True).work)

    async def _restart_by_plan(self, name: str) -> None:
        """One that hangs does not keep the others waiting."""
        async with self.ending(name, "restarting connector and tasks of"):
            mine = self._chosen(self._requests.pop(name))
            self._restarting |= mine
            try:
                tasks = (self._restart_task_by_plan(task) for task in sorted(mine.tasks))
                await asyncio.gather(self.restart(Work(mine.connectors)), *tasks)
            finally:
                self._restarting -= mine

    async def _restart_task_by_plan(self, task: TaskId) -> None:
        async with self._loop.exclusive(task, "restarting task"):
            await self.restart(Work.just(task))

    async def restart(self, part: Work, by_plan: bool = True) -> None:
        """RESTARTING is in the topic before anything is done, in either form: so the leader, too, knows of it."""
        for what in self.held(part):
            self._board.put(what, InstanceEvent.RESTART)
        await in_thread(lambda: self._statuses.flush(_FLUSH_S), "flush-statuses")
        await super().restart(part, by_plan)

    async def restart_connector(self, name: str) -> None:
        """KIP-52: the connector instance alone. Raises StartFailed."""
        async with self.ending(name, "restarting connector"):
            await self.restart(Work.just(name))
        if self._board.status(name, self._actor.type_of(name)).connector.state is State.FAILED:
            raise StartFailed(f"Failed to start connector: {name}")

    async def restart_task(self, task: TaskId) -> None:
        async with self._loop.exclusive(task, "restarting task"):
            await super().restart_task(task)
