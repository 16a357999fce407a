"""/connector-plugins: what is installed, which keys it has, and whether a configuration is good."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from headgate.access.rights import Role
from headgate.rest import entities
from headgate.rest.body import JsonResponse, read_json
from headgate.rest.errors import unknown_class
from headgate.rest.guard import Guard
from headgate.rest.masks import Masks
from headgate.rest.routing import flag, query
from headgate.runtime.errors import BadRequest, PluginNotFound, RequestTimeout
from headgate.runtime.herder import Herder
from headgate.runtime.plugins import CONNECTORS


@dataclass(frozen=True, slots=True)
class PluginEndpoints:
    herder: Herder
    masks: Masks
    guard: Guard

    async def names(self, request: Request) -> Response:
        connectors_only = flag(request, "connectorsOnly", default=True)
        found = self.herder.plugins.all
        return JsonResponse([entities.plugin(each) for each in found if each.kind in CONNECTORS or not connectors_only])

    async def config(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        try:
            keys = self.herder.plugin_config(plugin, query(request, "version") or None)
        except PluginNotFound:
            raise PluginNotFound(f"Unknown plugin {plugin}.") from None
        return JsonResponse([entities.definition(key) for key in keys])

    async def validate(self, request: Request) -> Response:
        plugin = request.path_params["plugin"]
        config = entities.parse_config(await read_json(request))
        self.guard.require(request, Role.EDITOR, config.get("name"), plugin)
        included = config.get("connector.class")
        if included is not None and not (_short(included).endswith(_short(plugin)) or self._same(included, plugin)):
            raise BadRequest(f"Included connector type {included} does not match request type {plugin}")
        try:
            with unknown_class():
                infos = await self.herder.call(lambda: self.herder.validate(config))
        except RequestTimeout as error:
            # Kafka Connect ends this one text without a full stop.
            raise RequestTimeout(str(error).removesuffix(".")) from None
        return JsonResponse(entities.config_infos(infos, self.masks.hidden(request, config)))

    def _same(self, *names: str) -> bool:
        """A class of ours may go by Apache's name and by its own."""
        first, second = (self.herder.plugins.get(each, *CONNECTORS) for each in names)
        return first is not None and first is second


def _short(name: str) -> str:
    return name.removesuffix("Connector") if name != "Connector" else name
