"""The herder of one worker alone: a command is carried out, to its end, before it is answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager

from headgate.model import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    RestartRequest,
    State,
    TargetState,
    TaskId,
)
from headgate.runtime import decide, restart
from headgate.runtime.connector import GRACEFUL_STOP_S
from headgate.runtime.errors import (
    AlreadyExists,
    AlreadyRestarting,
    HerderError,
    StartFailed,
    StatusNotFound,
)
from headgate.runtime.herder import Herder
from headgate.runtime.herder_ports import HerderPorts
from headgate.runtime.lifecycle import Event
from headgate.runtime.restart import RestartPlan

log = logging.getLogger(__name__)


class StandaloneHerder(Herder):
    def __init__(self, ports: HerderPorts) -> None:
        super().__init__(ports)
        self._restarting: set[str | TaskId] = set()

    async def create(self, name: str, config: Mapping[str, str | None], initial: TargetState | None) -> ConnectorInfo:
        async with self.exclusive(name, "creating connector"):
            valid = await self.require_valid(config)
            if self.configs.view().get(name) is not None:
                raise AlreadyExists(name)
            await self.actor.act(decide.on_create(name, valid, initial))
            return self.connector_info(name)

    async def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        async with self._ending(name, "updating the config of connector"):
            valid = await self.require_valid(config)
            return await self._replace(name, valid), self.connector_info(name)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        async with self._ending(name, "updating the config of connector"):
            merged = decide.patched(self.configs.view().require(name), changes)
            decide.check_name(name, merged)
            await self._replace(name, await self.require_valid(merged))
            return self.connector_info(name)

    async def _replace(self, name: str, config: Config) -> bool:
        """Whether the connector is new."""
        view = self.configs.view()
        new = view.get(name) is None
        await self.actor.act(decide.on_create(name, config, None) if new else decide.on_config(view, name, config))
        return new

    async def publish(self, name: str, configs: tuple[Config, ...]) -> None:
        await self.actor.act(decide.on_task_configs(name, configs))

    async def delete(self, name: str) -> None:
        self.configs.view().require(name)
        async with self._ending(name, "deleting connector"):
            await self.actor.act(decide.on_delete(self.configs.view(), name))
            self.forget_topics(name)

    # --- KIP-52, KIP-875: what is wanted of a connector ---------------------------------------------------------------

    async def pause(self, name: str) -> None:
        self.configs.view().require(name)
        self.spawn(self._switch(name, TargetState.PAUSED), f"pausing connector {name}")

    async def resume(self, name: str) -> None:
        self.configs.view().require(name)
        self.spawn(self._switch(name, TargetState.STARTED), f"resuming connector {name}")

    async def _switch(self, name: str, target: TargetState) -> None:
        resuming = target is TargetState.STARTED
        async with self.exclusive(name, "resuming connector" if resuming else "pausing connector"):
            decision = decide.on_resume if resuming else decide.on_pause
            await self.actor.act(decision(self.configs.view(), name))

    async def stop(self, name: str) -> None:
        self.configs.view().require(name)
        async with self._ending(name, "stopping connector"):
            await self.actor.act(decide.on_stop(self.configs.view(), name))

    # --- KIP-52, KIP-745: restarts ------------------------------------------------------------------------------------

    async def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        name = request.connector
        self.configs.view().require(name)
        if not request.forceful:
            return await self._restart_by_plan(request)
        with self._marked(name, f"Connector {name} is already being restarted"):
            async with self._ending(name, "restarting connector"):
                await self.actor.act(decide.on_restart(self.configs.view(), name))
        return None

    async def _restart_by_plan(self, request: RestartRequest) -> ConnectorStatus:
        name = request.connector
        with self._marked(name, f"Connector {name} is already being restarted"):
            async with self._ending(name, "restarting connector and tasks of"):
                self.configs.view().require(name)
                try:
                    plan = restart.plan(request, self.connector_status(name))
                except StatusNotFound:
                    raise StatusNotFound(f"Status for connector {name} not found") from None
                await self._carry_out(plan)
                return plan.answer()

    async def _carry_out(self, plan: RestartPlan) -> None:
        name = plan.request.connector
        if plan.connector:
            await self.actor.shutdown(name)
        await self.worker.stop_tasks(plan.tasks)
        if plan.connector:
            self.board.connector(name, Event.RESTART)
        for task in plan.tasks:
            self.board.task(task, Event.RESTART)
        if plan.connector:
            try:
                await self.actor.act([decide.Apply(name)])
            except HerderError as error:  # the status has it; the tasks are started all the same
                log.error("Connector did not start again: %s", error)
        for task in plan.tasks:
            await self.actor.start_task(task)
        if plan.connector:
            await self._regenerate_quietly(name)

    async def _regenerate_quietly(self, name: str) -> None:
        try:
            await self.actor.act([decide.Regenerate(name)])
        except HerderError as error:
            log.error("Connector did not generate its task configs: %s", error)

    async def restart_task(self, task: TaskId) -> None:
        self.configs.view().require_task(task)
        with self._marked(task, f"Task {task} is already being restarted"):
            async with self.exclusive(task.connector, "restarting a task of connector"):
                self.configs.view().require_task(task)
                await self.worker.stop_tasks([task])
                await self.actor.start_task(task)
                status = self.board.task_status(task)
                if status.state is State.FAILED:
                    raise StartFailed(f"Failed to start task: {task}")

    @contextmanager
    def _marked(self, what: str | TaskId, conflict: str) -> Iterator[None]:
        """KIP-52: who asks for a restart while one is under way is told so."""
        if what in self._restarting:
            raise AlreadyRestarting(conflict)
        self._restarting.add(what)
        try:
            yield
        finally:
            self._restarting.discard(what)

    def _ending(self, name: str, doing: str) -> AbstractAsyncContextManager[None]:
        """For commands that end the connector instance: plugin code that hangs does not keep them waiting."""

        def give_up() -> None:
            instance = self.worker.connectors.get(name)
            if instance is not None:
                instance.abandon()

        return self.exclusive(name, doing, GRACEFUL_STOP_S, give_up)

    # --- for clusters only --------------------------------------------------------------------------------------------

    async def put_task_configs(self, name: str, configs: Sequence[Config]) -> None:
        raise HerderError("Kafka Connect in standalone mode does not support externally setting task configurations.")

    async def fence(self, name: str) -> None:
        raise HerderError("Kafka Connect in standalone mode does not support exactly-once source connectors.")
