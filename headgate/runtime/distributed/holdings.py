"""Holdings: the connectors and tasks that the group has given to this worker, and what of them runs here.

Used from the herder's thread only. What is given is started once; what failed stays failed until somebody restarts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Final

from headgate.cluster.work import NOTHING, Work
from headgate.model import RestartRequest, State, TargetState, TaskId
from headgate.runtime import decide, restart
from headgate.runtime.actor import Actor
from headgate.runtime.board import StatusBoard
from headgate.runtime.connector import GRACEFUL_STOP_S
from headgate.runtime.errors import ConnectorNotFound, StartFailed, StatusNotFound
from headgate.runtime.lifecycle import Event, Phase
from headgate.runtime.loop import HerderLoop
from headgate.runtime.ports import ConfigStore
from headgate.runtime.view import ClusterView
from headgate.runtime.worker import Worker

log = logging.getLogger(__name__)

_RETRY_S: Final = 0.25
_RETRY_MOST_S: Final = 60.0


class Holdings:
    def __init__(
        self, loop: HerderLoop, configs: ConfigStore, board: StatusBoard, worker: Worker, actor: Actor
    ) -> None:
        self.given: Work = NOTHING
        self._loop = loop
        self._configs = configs
        self._board = board
        self._worker = worker
        self._actor = actor
        self._begun: set[str | TaskId] = set()
        self._barriers: dict[str, int] = {}
        """By connector: tasks of it start only by an assignment that knows the config topic up to this offset. All
        workers stop the tasks of an older set before they join; so no two sets ever run side by side."""
        self._requests: dict[str, RestartRequest] = {}

    # --- what the group gives and takes -------------------------------------------------------------------------------

    def begin(self, offset: int, carried_out: ClusterView) -> None:
        """Starts what was given and has not been begun; `offset`: what the assignment is based on, `carried_out`: what
        this worker lives by. Tasks of a set that it knows of, but has not come to yet, are not started."""
        view = self._configs.view()
        for name in sorted(self.given.connectors - self._begun):
            if view.get(name) is not None:
                self._begun.add(name)
                self._loop.spawn(self._start_connector(name), f"starting connector {name}")
        for task in sorted(self.given.tasks - self._begun):
            connector, known = view.get(task.connector), carried_out.get(task.connector)
            if connector is None or known is None or connector.tasks is not known.tasks:
                continue
            if task.task >= len(connector.tasks):
                continue  # gone meanwhile: the next rebalance takes it away
            if self._barriers.get(task.connector, 0) <= offset:
                self._begun.add(task)
                self._loop.spawn(self._start_task(task), f"starting task {task}")
        self._barriers = {name: barrier for name, barrier in self._barriers.items() if barrier > offset}

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

    async def _end(self, work: Work) -> None:
        connectors = [self._end_connector(name) for name in work.connectors & self._begun]
        tasks = [self._end_task(task) for task in work.tasks & self._begun]
        for problem in await asyncio.gather(*connectors, *tasks, return_exceptions=True):
            if isinstance(problem, BaseException):
                log.error("Something that was given up did not end as it should", exc_info=problem)

    async def end_tasks(self, names: Iterable[str], offset: int) -> None:
        """The tasks of these connectors have other configs now: they end, and start again by an assignment that knows
        of it."""
        affected = frozenset(names)
        self._barriers |= dict.fromkeys(affected, offset)
        await self._end(Work(tasks=frozenset(task for task in self._held_tasks() if task.connector in affected)))

    def _held_tasks(self) -> set[TaskId]:
        return {each for each in self._begun if isinstance(each, TaskId)}

    # --- one connector, one task --------------------------------------------------------------------------------------

    async def _start_connector(self, name: str) -> None:
        async with self._loop.exclusive(name, "starting connector"):
            if name in self._begun and name not in self._worker.connectors and self._configs.view().get(name):
                self._board.connector(name, Event.ASSIGN)
                await self._bring_up(name)

    async def _start_task(self, task: TaskId) -> None:
        async with self._loop.exclusive(task, "starting task"):
            if task in self._begun and task not in self._worker.tasks:
                await self._begin_task(task)

    async def _begin_task(self, task: TaskId) -> None:
        connector = self._configs.view().get(task.connector)
        if connector is None or task.task >= len(connector.tasks):
            self._begun.discard(task)
            return
        self._board.task(task, Event.ASSIGN)
        await self._actor.start_task(task)

    async def _end_connector(self, name: str) -> None:
        self._begun.discard(name)
        async with self._ending(name, "stopping connector"):
            await self._actor.shutdown(name)

    async def _end_task(self, task: TaskId) -> None:
        self._begun.discard(task)
        async with self._loop.exclusive(task, "stopping task"):
            await self._worker.stop_tasks([task])

    def _ending(self, name: str, doing: str) -> AbstractAsyncContextManager[None]:
        """For what ends the connector instance: plugin code that hangs does not keep it waiting."""

        def give_up() -> None:
            instance = self._worker.connectors.get(name)
            if instance is not None:
                instance.abandon()

        return self._loop.exclusive(name, doing, GRACEFUL_STOP_S, give_up)

    # --- what the config topic says -----------------------------------------------------------------------------------

    def reconfigure(self, name: str) -> None:
        """It has a new config: a new instance is started with it; its tasks run on until there are others."""
        if name in self._begun:
            self._loop.spawn(self._replace(name), f"updating connector {name}")

    async def _replace(self, name: str) -> None:
        async with self._ending(name, "updating the config of connector"):
            if name in self._begun and self._configs.view().get(name):
                await self._actor.shutdown(name)
                await self._bring_up(name)

    def retarget(self, name: str, stopped: bool) -> None:
        """Another state is wanted of the connector. `stopped`: it was to be stopped meanwhile, perhaps no longer."""
        connector = self._configs.view().get(name)
        if connector is None:
            return
        self._worker.switch_tasks(name, connector.target)
        if name in self._begun:
            work = self._switch(name, stopped)
            self._loop.spawn(work, f"bringing connector {name} to state {connector.target.value}")

    async def _switch(self, name: str, stopped: bool) -> None:
        doing = "changing the state of connector"
        # KIP-875: stopping wins, also over plugin code that hangs.
        async with self._ending(name, doing) if stopped else self._loop.exclusive(name, doing):
            connector = self._configs.view().get(name)
            if connector is None or name not in self._begun:
                return
            if stopped and connector.target is not TargetState.STOPPED:
                # Its tasks went with the stop, also if that was overtaken: only a new start brings others.
                await self._actor.act([decide.Apply(name, TargetState.STOPPED)])
            await self._bring_up(name)

    async def _bring_up(self, name: str) -> None:
        """To the state that is wanted of it. KIP-875 sees no difference between resuming and pausing what was stopped:
        it is started and makes its tasks, which come up paused. What fails is in the status."""
        delay = _RETRY_S
        while name in self._begun and self._lacks_tasks(name):
            try:
                await self._actor.act([decide.Apply(name, TargetState.STARTED), decide.Regenerate(name)])
                break
            except Exception as error:
                instance = self._worker.connectors.get(name)
                if instance is None or instance.phase is Phase.FAILED:
                    return
                log.warning("New task configs were not published, trying again in %.2f s: %s", delay, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MOST_S)
        await self._actor.bring_up(name)

    def _lacks_tasks(self, name: str) -> bool:
        """It was stopped and shall be paused. One that was created paused has never had a set of tasks, not even an
        empty one, and makes none before it is resumed (KIP-980)."""
        connector, instance = self._configs.view().get(name), self._worker.connectors.get(name)
        if connector is None or connector.target is not TargetState.PAUSED:
            return False
        paused = instance is not None and instance.phase is Phase.PAUSED
        return not connector.tasks and connector.applied is not None and not paused

    # --- restarts -----------------------------------------------------------------------------------------------------

    def request_restart(self, request: RestartRequest) -> None:
        """KIP-745: of several that wait, the one with the highest impact is carried out."""
        name = request.connector
        waiting = self._requests.get(name)
        if waiting is None or restart.impact(request) > restart.impact(waiting):
            self._requests[name] = request
        if waiting is None:
            self._loop.spawn(self._restart_by_plan(name), f"restarting connector {name} and its tasks")

    async def _restart_by_plan(self, name: str) -> None:
        """What of the plan is here: it is made anew from the states that this worker sees."""
        async with self._ending(name, "restarting connector and tasks of"):
            request = self._requests.pop(name)
            try:
                status = self._board.status(name, self._actor.type_of(name))
            except (ConnectorNotFound, StatusNotFound) as error:
                log.warning("Nothing is restarted: %s", error)
                return
            plan = restart.plan(request, status, chosen_before=True)
            tasks = [task for task in plan.tasks if task in self._begun]
            connector = plan.connector and name in self._begun
            if connector:
                await self._actor.shutdown(name)
                self._board.connector(name, Event.RESTART)
            await asyncio.gather(*(self._restart_task(task, by_plan=True) for task in tasks))
            if connector:
                await self._bring_up(name)

    async def restart_connector(self, name: str) -> None:
        """KIP-52: the connector instance alone. Raises StartFailed."""
        async with self._ending(name, "restarting connector"):
            await self._actor.shutdown(name)
            await self._bring_up(name)
        if self._board.status(name, self._actor.type_of(name)).connector.state is State.FAILED:
            raise StartFailed(f"Failed to start connector: {name}")

    async def restart_task(self, task: TaskId) -> None:
        """Raises StartFailed."""
        await self._restart_task(task)
        if self._board.task_status(task).state is State.FAILED:
            raise StartFailed(f"Failed to start task: {task}")

    async def _restart_task(self, task: TaskId, by_plan: bool = False) -> None:
        async with self._loop.exclusive(task, "restarting task"):
            await self._worker.stop_tasks([task])
            if by_plan:
                self._board.task(task, Event.RESTART)
            if task in self._begun:
                await self._begin_task(task)

    def has(self, what: str | TaskId) -> bool:
        return what in (self.given.tasks if isinstance(what, TaskId) else self.given.connectors)
