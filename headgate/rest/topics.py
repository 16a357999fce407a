"""/connectors/{connector}/topics: the topics a connector has used, whether or not there is such a connector."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.rest.body import JsonResponse
from headgate.rest.routing import connector_of
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class TopicEndpoints:
    herder: Herder

    async def active(self, request: Request) -> Response:
        name = connector_of(request)
        return JsonResponse({name: {"topics": self.herder.active_topics(name)}})

    async def reset(self, request: Request) -> Response:
        name = connector_of(request)
        await self.herder.call(lambda: self.herder.reset_topics(name))
        return Response(status_code=202)
