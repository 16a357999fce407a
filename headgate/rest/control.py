"""Pause, resume, stop, restart. Bodies are not read: these requests have nothing to say in one."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.model import RestartRequest, TaskId
from headgate.rest import entities
from headgate.rest.body import JsonResponse
from headgate.rest.errors import unknown_connector
from headgate.rest.routing import connector_of, flag
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class ControlEndpoints:
    herder: Herder

    async def pause(self, request: Request) -> Response:
        name = connector_of(request)
        with unknown_connector("Unknown connector"):
            await self.herder.call(lambda: self.herder.pause(name))
        return Response(status_code=202)

    async def resume(self, request: Request) -> Response:
        name = connector_of(request)
        with unknown_connector("Unknown connector"):
            await self.herder.call(lambda: self.herder.resume(name))
        return Response(status_code=202)

    async def stop(self, request: Request) -> Response:
        name = connector_of(request)
        with unknown_connector("Unknown connector"):
            await self.herder.call(lambda: self.herder.stop(name))
        return Response(status_code=204)

    async def restart(self, request: Request) -> Response:
        asked = RestartRequest(connector_of(request), flag(request, "includeTasks"), flag(request, "onlyFailed"))
        with unknown_connector("Unknown connector:"):
            status = await self.herder.call(lambda: self.herder.restart(asked))
        if status is None:
            return Response(status_code=204)
        return JsonResponse(entities.connector_status(status), 202)

    async def restart_task(self, request: Request) -> Response:
        task = TaskId(connector_of(request), request.path_params["task"])
        with unknown_connector("Unknown connector:"):
            await self.herder.call(lambda: self.herder.restart_task(task))
        return Response(status_code=204)
