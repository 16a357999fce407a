"""Worker to worker: new task configurations for the leader, and fencing. Not part of the public description."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.rest import entities
from headgate.rest.body import read_json
from headgate.rest.routing import connector_of
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class InternalEndpoints:
    herder: Herder

    async def put_tasks(self, request: Request) -> Response:
        name = connector_of(request)
        configs = entities.parse_task_configs(await read_json(request))
        await self.herder.call(lambda: self.herder.put_task_configs(name, configs))
        return Response(status_code=204)

    async def fence(self, request: Request) -> Response:
        name = connector_of(request)
        await self.herder.call(lambda: self.herder.fence(name))
        return Response(status_code=204)
