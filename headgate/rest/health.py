"""How connectors fare: verdicts from the statuses, with the figures of the workers that run their tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from headgate.model import ConnectorStatus, Health, State, TaskId, TaskStatus
from headgate.rest import entities
from headgate.rest.forwarding import Forwarding
from headgate.rest.routing import encoded, flag
from headgate.runtime import verdict
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class Healths:
    herder: Herder
    forwarding: Forwarding

    async def of(self, request: Request, statuses: Mapping[str, ConnectorStatus]) -> dict[str, ConnectorStatus]:
        """With what is known now. Whoever is asked by another worker says what it knows itself: `forward=false`."""
        known = dict(self.herder.watch.here)
        if flag(request, "forward", default=True):
            only = next(iter(statuses)) if len(statuses) == 1 else None
            others = dict(pair for status in statuses.values() for pair in self._others(status))
            urls = sorted(set(others.values()))
            for url, found in zip(
                urls, await asyncio.gather(*(self._ask(request, url, only) for url in urls)), strict=True
            ):
                # What it says of tasks that it has not, it knows no better than we do.
                known |= {task: health for task, health in found.items() if others.get(task) == url}
        return {name: _told(status, known) for name, status in statuses.items()}

    def _others(self, status: ConnectorStatus) -> Iterable[tuple[TaskId, str]]:
        """Its tasks that other workers run, and where these are."""
        for task in status.tasks:
            running = task.status.state is State.RUNNING and task.status.health is not None
            url = self.herder.url_of(task.status.worker_id) if running else None
            if url is not None:
                yield TaskId(status.name, task.id), url

    async def _ask(self, request: Request, url: str, only: str | None) -> dict[TaskId, Health]:
        path = "/connectors?expand=health" if only is None else f"/connectors/{encoded(only)}/status?"
        body = await self.forwarding.look(request, f"{url}{path}&forward=false")
        bodies: Mapping[str, Any] = {only: body} if only is not None else {}
        if only is None and isinstance(body, dict):
            bodies = {name: each.get("health") for name, each in body.items() if isinstance(each, dict)}
        return {task: health for name, each in bodies.items() for task, health in entities.parse_healths(name, each)}


def _told(status: ConnectorStatus, known: Mapping[TaskId, Health]) -> ConnectorStatus:
    def now(task: TaskStatus) -> TaskStatus:
        found = known.get(TaskId(status.name, task.id))
        # What was asked for may be older than what the topic says.
        if found is None or task.status.state is not State.RUNNING:
            return task
        return replace(task, status=replace(task.status, health=found))

    tasks = tuple(map(now, status.tasks))
    health = verdict.of_connector(status.connector, [task.status for task in tasks])
    return replace(status, connector=replace(status.connector, health=health), tasks=tasks)
