"""Holdings: what this worker holds is brought to what is wanted of it; restarts, of one thing or by plan, are the same.

On the herder's thread. Nothing that is awaited here waits for its turn: whoever calls has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field

from headgate.cluster.work import NOTHING, Work
from headgate.model import State, TaskId
from headgate.runtime.actor import Actor
from headgate.runtime.board import StatusBoard
from headgate.runtime.connector import GRACEFUL_STOP_S
from headgate.runtime.errors import AlreadyRestarting, StartFailed
from headgate.runtime.lifecycle import InstanceEvent
from headgate.runtime.loop import HerderLoop
from headgate.runtime.ports import ConfigStore
from headgate.runtime.reconcile import Action, Passed, reconcile
from headgate.runtime.worker import Worker


@dataclass(eq=False)
class Holdings:
    """Of a worker alone: it holds everything."""

    _loop: HerderLoop
    _configs: ConfigStore
    _board: StatusBoard
    _worker: Worker
    _actor: Actor
    _restarting: Work = field(default=NOTHING, init=False)

    def held(self, part: Work) -> Work:
        """What of this part is this worker's."""
        return part

    def all_of(self, name: str) -> Work:
        """The connector, and its tasks that are wanted or were begun here."""
        connector = self._configs.view().get(name)
        begun = (task for task in self._worker.begun_tasks if task.connector == name)
        return Work.of([name], (*begun, *(connector.task_ids if connector else ())))

    def due(self, part: Work, passed: Passed) -> list[Action]:
        return reconcile(self._configs.view(), self.held(part), self._worker.running(part), passed)

    async def settle(self, part: Work, passed: Passed, quietly: bool = False) -> None:
        """Raises what the first action that fails raises; `quietly`, the others are carried out all the same."""
        await self._actor.act(self.due(part, passed), quietly)

    async def stop(self, part: Work) -> None:
        """As if it were held no more."""
        await self._actor.act(reconcile(self._configs.view(), NOTHING, self._worker.running(part), {}))

    # --- KIP-52, KIP-745: restarts ------------------------------------------------------------------------------------

    async def restart(self, part: Work, by_plan: bool = False) -> None:
        """Raises what starting it raises; not `by_plan`: one that does not start keeps nothing else from it."""
        mine = self.held(part)
        await self.stop(mine)
        if by_plan:
            for what in mine:
                self._board.put(what, InstanceEvent.RESTART)
        await self.settle(mine, {}, quietly=by_plan)

    async def restart_task(self, task: TaskId) -> None:
        """Raises TaskNotFound, StartFailed."""
        self._configs.view().require_task(task)
        await self.restart(Work.just(task))
        if self._board.task_status(task).state is State.FAILED:
            raise StartFailed(f"Failed to start task: {task}")

    def under_way(self) -> Work:
        """What is being restarted here."""
        return self._restarting

    @contextmanager
    def restarting(self, part: Work) -> Iterator[None]:
        """KIP-52: who asks for a restart while one is under way is told so, whichever form either of them has."""
        for what in part & self.under_way():
            raise AlreadyRestarting.of(what)
        self._restarting |= part
        try:
            yield
        finally:
            self._restarting -= part

    def ending(self, name: str, doing: str) -> AbstractAsyncContextManager[None]:
        """The turn for what ends the connector instance: plugin code that hangs does not keep it waiting."""

        def give_up() -> None:
            instance = self._worker.connectors.get(name)
            if instance is not None:
                instance.abandon()

        return self._loop.exclusive(name, doing, GRACEFUL_STOP_S, give_up)
