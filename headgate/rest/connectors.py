"""/connectors: list, create, read, change, delete; pause, resume, stop, restart; the topics they have used."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headgate.access.rights import Role
from headgate.model import Config, ConnectorInfo, ConnectorStatus, RestartRequest, TaskId, TaskStatus
from headgate.rest import entities
from headgate.rest.body import JsonResponse, read_json
from headgate.rest.commands import note_change
from headgate.rest.errors import unknown_class, unknown_connector
from headgate.rest.guard import Guard
from headgate.rest.health import Healths
from headgate.rest.masks import Masks
from headgate.rest.routing import connector_of, flag, location
from headgate.runtime.config import masking
from headgate.runtime.config_rules import check_name
from headgate.runtime.errors import ConnectorNotFound, StatusNotFound
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class ConnectorEndpoints:
    herder: Herder
    healths: Healths
    masks: Masks
    guard: Guard

    async def names(self, request: Request) -> Response:
        """Those that the caller may see."""
        wanted = request.query_params.getlist("expand")
        names = [name for name in self.herder.connector_names() if self.guard.has(request, Role.VIEWER, name)]
        if not wanted:
            return JsonResponse(names)
        statuses = await self._statuses(request, names, wanted)
        expanded = ((name, self._expand(request, name, wanted, statuses.get(name))) for name in names)
        return JsonResponse({name: found for name, found in expanded if found is not None})

    async def _statuses(
        self, request: Request, names: Sequence[str], wanted: Sequence[str]
    ) -> Mapping[str, ConnectorStatus]:
        """With figures of all workers only where they are asked for: a list of states is nobody's business but ours."""
        found: dict[str, ConnectorStatus] = {}
        if "status" in wanted or "health" in wanted:
            for name in names:
                with suppress(StatusNotFound):
                    found[name] = self.herder.connector_status(name)
        return await self.healths.of(request, found) if "health" in wanted else found

    async def create(self, request: Request) -> Response:
        asked = entities.CreateRequest.parse(await read_json(request))
        request.path_params["connector"] = asked.name  # which is not in the path, for the line in the log
        state = {} if asked.initial_state is None else {"initial_state": asked.initial_state.name}
        self._require_class(request, asked.name, asked.config)
        note_change(request, lambda: {"config": masking.changes({}, asked.config, self.herder.plugins), **state})
        with unknown_class():
            info = await self.herder.call(lambda: self.herder.create(asked.name, asked.config, asked.initial_state))
        return self._answer(request, info, 201, {"Location": location(request, info.name)})

    def _require_class(self, request: Request, name: str, config: Mapping[str, str | None]) -> None:
        """Whoever gives a connector a class must be an editor of such, whatever it was before."""
        if "connector.class" in config:
            self.guard.require(request, Role.EDITOR, name, config["connector.class"])

    def _changes(self, name: str, after: Callable[[Config], Mapping[str, str | None]]) -> Mapping[str, Any]:
        """`after`: what the configuration is to be, of what it is."""
        try:
            before = self.herder.connector_info(name).config
        except ConnectorNotFound:
            before = {}
        return {"config": masking.changes(before, after(before), self.herder.plugins)}

    def _answer(
        self, request: Request, info: ConnectorInfo, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        return JsonResponse(entities.connector_info(self.masks.info(request, info)), status, headers)

    async def info(self, request: Request) -> Response:
        return self._answer(request, self.herder.connector_info(connector_of(request)))

    async def config(self, request: Request) -> Response:
        info = self.masks.info(request, self.herder.connector_info(connector_of(request)))
        return JsonResponse(dict(info.config))

    async def put_config(self, request: Request) -> Response:
        name = connector_of(request)
        config = entities.named(name, entities.parse_config(await read_json(request)))
        self._require_class(request, name, config)
        note_change(request, lambda: self._changes(name, lambda before: config))
        with unknown_class():
            created, info = await self.herder.call(lambda: self.herder.put_config(name, config))
        if not created:
            return self._answer(request, info)
        return self._answer(request, info, 201, {"Location": location(request, name)})

    async def patch_config(self, request: Request) -> Response:
        name = connector_of(request)
        asked = entities.parse_config(await read_json(request))
        check_name(name, asked)
        # What is left is the name it has, or null: it would be removed, and put back as every missing name is.
        changes: Mapping[str, str | None] = {key: value for key, value in asked.items() if key != "name"}
        self._require_class(request, name, changes)
        note_change(request, lambda: self._changes(name, lambda before: {**before, **changes}))
        with unknown_class():
            info = await self.herder.call(lambda: self.herder.patch_config(name, changes))
        return self._answer(request, info)

    async def delete(self, request: Request) -> Response:
        name = connector_of(request)
        await self.herder.call(lambda: self.herder.delete(name))
        return Response(status_code=204)

    async def tasks(self, request: Request) -> Response:
        name = connector_of(request)
        configs = self.herder.task_configs(name)
        shown = ((task, self.masks.task(request, name, config)) for task, config in configs)
        return JsonResponse([entities.task_config(task, config) for task, config in shown])

    async def status(self, request: Request) -> Response:
        return JsonResponse(entities.connector_status(await self._status(request)))

    async def _status(self, request: Request) -> ConnectorStatus:
        name = connector_of(request)
        return (await self.healths.of(request, {name: self.herder.connector_status(name)}))[name]

    async def task_status(self, request: Request) -> Response:
        task = _task_of(request)
        own = TaskStatus(task.task, self.herder.task_status(task))
        alone = replace(self.herder.connector_status(task.connector), tasks=(own,))
        told = (await self.healths.of(request, {task.connector: alone}))[task.connector]
        return JsonResponse(entities.task_status(task.task, told.tasks[0].status))

    def _expand(
        self, request: Request, name: str, wanted: Sequence[str], status: ConnectorStatus | None
    ) -> dict[str, Any] | None:
        def of_status(show: Callable[[ConnectorStatus], dict[str, Any]]) -> dict[str, Any]:
            if status is None:
                raise StatusNotFound(name)
            return show(status)

        known: dict[str, Callable[[], dict[str, Any]]] = {
            "status": lambda: of_status(entities.connector_status),
            "health": lambda: of_status(entities.connector_health),
            "info": lambda: entities.connector_info(self.masks.info(request, self.herder.connector_info(name))),
        }
        try:
            return {each: known[each]() for each in dict.fromkeys(wanted) if each in known}
        except (ConnectorNotFound, StatusNotFound):
            return None  # Deleted since the names were listed: it is not there any more.

    # --- pause, resume, stop, restart. Bodies are not read: these requests have nothing to say in one -----------------

    async def pause(self, request: Request) -> Response:
        return await self._order(self.herder.pause, request, 202)

    async def resume(self, request: Request) -> Response:
        return await self._order(self.herder.resume, request, 202)

    async def stop(self, request: Request) -> Response:
        return await self._order(self.herder.stop, request, 204)

    async def _order(
        self, command: Callable[[str], Coroutine[Any, Any, None]], request: Request, status: int
    ) -> Response:
        name = connector_of(request)
        with unknown_connector("Unknown connector"):
            await self.herder.call(lambda: command(name))
        return Response(status_code=status)

    async def restart(self, request: Request) -> Response:
        asked = RestartRequest(connector_of(request), flag(request, "includeTasks"), flag(request, "onlyFailed"))
        with unknown_connector("Unknown connector:"):
            status = await self.herder.call(lambda: self.herder.restart(asked))
        if status is None:
            return Response(status_code=204)
        return JsonResponse(entities.connector_status(status, with_health=False), 202)

    async def restart_task(self, request: Request) -> Response:
        task = _task_of(request)
        with unknown_connector("Unknown connector:"):
            await self.herder.call(lambda: self.herder.restart_task(task))
        return Response(status_code=204)

    # --- topics, whether or not there is such a connector -------------------------------------------------------------

    async def topics(self, request: Request) -> Response:
        name = connector_of(request)
        return JsonResponse({name: {"topics": self.herder.active_topics(name)}})

    async def reset_topics(self, request: Request) -> Response:
        name = connector_of(request)
        await self.herder.call(lambda: self.herder.reset_topics(name))
        return Response(status_code=202)


def _task_of(request: Request) -> TaskId:
    return TaskId(connector_of(request), request.path_params["task"])
