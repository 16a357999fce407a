"""Restarts in a group (KIP-745): asked for once, by the leader, carried out by every worker with a part in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from headgate.model import ConnectorStatus, RestartRequest, State, TaskId
from headgate.runtime import restart
from headgate.runtime.connector import in_thread
from headgate.runtime.errors import AlreadyRestarting, StatusNotFound
from headgate.runtime.group import Stores
from headgate.runtime.restart import RestartPlan
from headgate.runtime.shared_writes import SharedWrites

_RESTART_S: Final = 60.0
"""A restart whose owner has not been heard of for so long is under way no more."""
_FLUSH_S: Final = 5.0


class Restarts:
    """On the herder's thread."""

    def __init__(self, stores: Stores, writes: SharedWrites) -> None:
        self._stores = stores
        self._writes = writes
        self._restarting: dict[str, float] = {}
        self._busy: set[str | TaskId] = set()

    async def request(self, request: RestartRequest, status: Callable[[str], ConnectorStatus]) -> ConnectorStatus:
        """The leader's part. RESTARTING is written, and known to be, before the request: so no owner's RUNNING is
        overtaken by it. Raises AlreadyRestarting, StatusNotFound."""
        name = request.connector
        try:
            plan = restart.plan(request, status(name))
        except StatusNotFound:
            raise StatusNotFound(f"Status for connector {name} not found") from None
        if self._restarting.get(name, 0.0) > time.monotonic() and _under_way(plan):
            raise AlreadyRestarting(f"Connector {name} is already being restarted")
        self._restarting[name] = time.monotonic() + _RESTART_S
        answer = plan.answer()
        if plan.connector:
            self._stores.statuses.put_connector(name, answer.connector)
        chosen = {task.task for task in plan.tasks}
        for each in answer.tasks:
            if each.id in chosen:
                self._stores.statuses.put_task(TaskId(name, each.id), each.status)
        await in_thread(lambda: self._stores.statuses.flush(_FLUSH_S), "flush-statuses")
        await self._writes.lead(lambda: self._stores.configs.put_restart_request(request), f"writing {request} to")
        return answer

    @contextmanager
    def marked(self, what: str | TaskId, conflict: str) -> Iterator[None]:
        """KIP-52: who asks for a restart while one is under way is told so."""
        if what in self._busy:
            raise AlreadyRestarting(conflict)
        self._busy.add(what)
        try:
            yield
        finally:
            self._busy.discard(what)


def _under_way(plan: RestartPlan) -> bool:
    """Whether anything of what it chose is still being restarted."""
    chosen = {task.task for task in plan.tasks}
    tasks = any(each.id in chosen and each.status.state is State.RESTARTING for each in plan.status.tasks)
    return tasks or (plan.connector and plan.status.connector.state is State.RESTARTING)
