"""/connectors/{connector}/offsets: read, alter, reset (KIP-875)."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.rest import entities
from headgate.rest.body import JsonResponse, read_json
from headgate.rest.commands import note_change
from headgate.rest.routing import connector_of
from headgate.runtime.herder import Herder
from headgate.runtime.ports import OffsetsLost


@dataclass(frozen=True, slots=True)
class OffsetEndpoints:
    herder: Herder

    async def read(self, request: Request) -> Response:
        name = connector_of(request)
        try:
            return JsonResponse(entities.offsets(await self.herder.call(lambda: self.herder.offsets(name))))
        except OffsetsLost as lost:  # KIP-875: what a worker remembers can be a life-saver
            warning = f'199 - "from memory: topic {lost.topic} of source offsets was deleted"'
            return JsonResponse(entities.offsets(lost.known), headers={"Warning": warning})

    async def alter(self, request: Request) -> Response:
        name = connector_of(request)
        asked = entities.OffsetsRequest.parse(await read_json(request))
        note_change(request, lambda: entities.offsets(asked.offsets))
        return JsonResponse({"message": await self.herder.call(lambda: self.herder.alter_offsets(name, asked.offsets))})

    async def reset(self, request: Request) -> Response:
        name = connector_of(request)
        return JsonResponse({"message": await self.herder.call(lambda: self.herder.reset_offsets(name))})
