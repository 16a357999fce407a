"""Restarts in a group (KIP-745): asked for once, by the leader, carried out by every worker with a part in it."""

from __future__ import annotations

import time
from typing import Final

from headgate.model import ConnectorStatus, State, Status, TaskId
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import Stores
from headgate.runtime.distributed.shared_writes import SharedWrites
from headgate.runtime.errors import AlreadyRestarting
from headgate.runtime.restart import RestartPlan

_RESTART_S: Final = 60.0
"""A restart whose owner has not been heard of for so long is under way no more."""
_FLUSH_S: Final = 5.0


class Restarts:
    """On the herder's thread."""

    def __init__(self, stores: Stores, writes: SharedWrites) -> None:
        self._stores = stores
        self._writes = writes
        self._restarting: dict[str, float] = {}

    async def request(self, plan: RestartPlan) -> ConnectorStatus:
        """The leader's part. RESTARTING is written, and known to be, before the request: so no owner's RUNNING is
        overtaken by it. Raises AlreadyRestarting."""
        name = plan.status.name
        if self._restarting.get(name, 0.0) > time.monotonic() and _under_way(plan):
            raise AlreadyRestarting(f"Connector {name} is already being restarted")
        self._restarting[name] = time.monotonic() + _RESTART_S
        answer = plan.answer()
        self._put(plan, answer)
        await in_thread(lambda: self._stores.statuses.flush(_FLUSH_S), "flush-statuses")
        try:
            await self._writes.lead(
                lambda: self._stores.configs.put_restart_request(plan.request), f"writing restart request for {name} to"
            )
        except Exception:
            del self._restarting[name]
            self._put(plan, plan.status, unless_heard=True)
            raise
        return answer

    def _put(self, plan: RestartPlan, status: ConnectorStatus, unless_heard: bool = False) -> None:
        """Of what the plan chose. `unless_heard`: but not of what has been said to be something else since."""
        statuses, name = self._stores.statuses, status.name

        def due(now: Status | None) -> bool:
            return not unless_heard or (now is not None and now.state is State.RESTARTING)

        if plan.connector and due(statuses.connector(name)):
            statuses.put_connector(name, status.connector)
        chosen = {task.task for task in plan.tasks}
        for each in status.tasks:
            task = TaskId(name, each.id)
            if each.id in chosen and due(statuses.task(task)):
                statuses.put_task(task, each.status)


def _under_way(plan: RestartPlan) -> bool:
    """Whether anything of what it chose is still being restarted."""
    chosen = {task.task for task in plan.tasks}
    tasks = any(each.id in chosen and each.status.state is State.RESTARTING for each in plan.status.tasks)
    return tasks or (plan.connector and plan.status.connector.state is State.RESTARTING)
