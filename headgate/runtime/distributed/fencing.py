"""Rounds of fencing (KIP-618): before tasks of a new set start, nothing that an older set sends may count any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.model import Config, ConnectorType
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import SharedConfigs
from headgate.runtime.errors import BadRequest, FencingOutdated

log = logging.getLogger(__name__)

_REFRESH_S: Final = 30.0

Fence = Callable[[Config, Sequence[str]], None]
"""Shuts out the producers of these transactional ids, on the cluster of these client settings. Blocks."""


@dataclass(eq=False)
class FencingRounds:
    """The leader's, on the herder's thread. One at a time for each connector; who asks meanwhile shares it."""

    _configs: SharedConfigs
    _fence: Fence
    _clients: Callable[[str], Awaitable[Config]]
    """A connector's settings for the cluster that it writes to."""
    _type_of: Callable[[str], ConnectorType]
    _write: Callable[[Callable[[], None], str], Awaitable[None]]
    _group_id: str
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def run(self, name: str) -> None:
        """Raises ConnectorNotFound, BadRequest, FencingOutdated, and what the fencing raises."""
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.get_running_loop().create_task(self._round(name))
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        await asyncio.shield(task)

    async def _round(self, name: str) -> None:
        state = await in_thread(lambda: self._configs.refresh(_REFRESH_S), "catch-up")
        tasks = len(state.view.require(name).tasks)
        if self._type_of(name) is not ConnectorType.SOURCE:
            raise BadRequest(f"Connector {name} is not a source connector")
        if name not in state.pending_fencing:
            return
        before = state.task_count_records.get(name)
        # One task after one task: the new one shuts the old one out by its id.
        if before is not None and not (before == 1 and tasks == 1):
            ids = [f"{self._group_id}-{name}-{number}" for number in range(before)]
            log.info("Fencing %d tasks of connector %s that may still run somewhere", before, name)
            clients = await self._clients(name)
            await in_thread(lambda: self._fence(clients, ids), f"fence-{name}")
            again = await in_thread(lambda: self._configs.refresh(_REFRESH_S), "catch-up")
            if again.generations.get(name) != state.generations.get(name):
                raise FencingOutdated(
                    "Failed to complete zombie fencing because a new set of task configs was generated"
                )
        await self._write(lambda: self._configs.put_task_count(name, tasks), "task count record")
