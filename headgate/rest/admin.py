"""/admin/loggers: read and change log levels while the worker runs."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.rest.body import JsonResponse, read_json
from headgate.rest.commands import note_change
from headgate.rest.entities import parse_level
from headgate.rest.loggers import Loggers, UnknownLevel, level_number
from headgate.rest.routing import query
from headgate.runtime.herder import Herder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdminEndpoints:
    herder: Herder
    loggers: Loggers

    async def levels(self, request: Request) -> Response:
        return JsonResponse({name: asdict(level) for name, level in self.loggers.all().items()})

    async def level(self, request: Request) -> Response:
        name = request.path_params["logger"]
        found = self.loggers.get(name)
        if found is None:
            raise HTTPException(404, f"Logger {name} not found.")
        return JsonResponse(asdict(found))

    async def set_level(self, request: Request) -> Response:
        name = request.path_params["logger"]
        level = parse_level(await read_json(request))
        scope = query(request, "scope").lower() or "worker"
        note_change(request, lambda: {"level": level})
        try:
            level_number(level)
        except UnknownLevel:
            raise HTTPException(404, f"invalid log level '{level}'.") from None
        if scope == "cluster":
            if not await self.herder.call(lambda: self.herder.set_level_everywhere(name, level)):
                self.loggers.set(name, level)
            return Response(status_code=204)
        if scope != "worker":
            log.warning("Unknown scope %r of a request to change log levels: taken as 'worker'", scope)
        return JsonResponse(self.loggers.set(name, level))
