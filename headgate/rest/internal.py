"""Worker to worker: task configs and fencing for the leader, and goodbyes.

Each request proves by its signature that it comes from a worker of the group (KIP-507).
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.rest import entities
from headgate.rest.body import read_bytes, read_json
from headgate.rest.callers import PASSED_ON, target_of
from headgate.rest.routing import connector_of
from headgate.runtime.herder import Herder
from headgate.runtime.ports import PeerRequest


@dataclass(frozen=True, slots=True)
class InternalEndpoints:
    herder: Herder

    async def put_tasks(self, request: Request) -> Response:
        name = connector_of(request)
        configs = entities.parse_task_configs(await read_json(request))
        await self._check_signature(request)
        await self.herder.call(lambda: self.herder.put_task_configs(name, configs))
        return Response(status_code=204)

    async def fence(self, request: Request) -> Response:
        name = connector_of(request)
        await self._check_signature(request)
        await self.herder.call(lambda: self.herder.fence(name))
        return Response(status_code=204)

    async def remove_member(self, request: Request) -> Response:
        """A member of the group leaves for good."""
        member = str(request.path_params["member"])
        await self._check_signature(request)
        await self.herder.call(lambda: self.herder.took_leave(member))
        return Response(status_code=204)

    async def _check_signature(self, request: Request) -> None:
        asked = PeerRequest(request.method, target_of(request), await read_bytes(request))
        if self.herder.proofs.check(asked, dict(request.headers)):
            request.scope[PASSED_ON] = True
