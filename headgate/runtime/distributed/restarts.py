"""Restarts in a group (KIP-745): asked for once, by the leader, carried out by every worker with a part in it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class Restarts:
    """On the herder's thread."""

    _stores: Stores
    _writes: SharedWrites
    _restarting: dict[str, float] = field(default_factory=dict)

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
        statuses, told = self._stores.statuses, _by_owner(status)
        for whose in plan.work:
            now = statuses.get(whose)
            if not unless_heard or (now is not None and now.state is State.RESTARTING):
                statuses.put(whose, told[whose])


def _under_way(plan: RestartPlan) -> bool:
    """Whether anything of what it chose is still being restarted."""
    told = _by_owner(plan.status)
    return any(told[whose].state is State.RESTARTING for whose in plan.work)


def _by_owner(status: ConnectorStatus) -> dict[str | TaskId, Status]:
    return {status.name: status.connector, **{TaskId(status.name, each.id): each.status for each in status.tasks}}
