"""Restarts in a group (KIP-745): asked for once, by the leader, carried out by every worker with a part in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headgate.model import ConnectorStatus, State, Status, TaskId
from headgate.runtime import restart
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import Stores
from headgate.runtime.distributed.shared_writes import SharedWrites
from headgate.runtime.errors import AlreadyRestarting
from headgate.runtime.restart import RestartPlan

_RESTART_S: Final = 60.0
"""What has been RESTARTING for so long, and nothing else was heard of it, is being restarted no more."""
_FLUSH_S: Final = 5.0
_REFRESH_S: Final = 30.0


@dataclass(eq=False)
class Restarts:
    """On the herder's thread."""

    _stores: Stores
    _writes: SharedWrites

    async def request(self, make: Callable[[], RestartPlan]) -> ConnectorStatus:
        """The leader's part, by what owners have said until now: one may just have been told to restart it by itself.
        RESTARTING is written, and known to be, before the request: so no owner's RUNNING is overtaken by it. Raises
        AlreadyRestarting."""
        await in_thread(lambda: self._stores.statuses.refresh(_REFRESH_S), "catch-up")
        plan = make()
        name = plan.status.name
        told = _by_owner(plan.status)
        for whose in restart.plan(plan.request, plan.status, chosen_before=True).work:
            if told[whose].state is State.RESTARTING and self._stores.statuses.age(whose) < _RESTART_S:
                raise AlreadyRestarting.of(whose)
        answer = plan.answer()
        self._put(plan, answer)
        await in_thread(lambda: self._stores.statuses.flush(_FLUSH_S), "flush-statuses")
        try:
            await self._writes.lead(
                lambda: self._stores.configs.put_restart_request(plan.request), f"writing restart request for {name} to"
            )
        except Exception:
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


def _by_owner(status: ConnectorStatus) -> dict[str | TaskId, Status]:
    return {status.name: status.connector, **{TaskId(status.name, each.id): each.status for each in status.tasks}}
