"""The herder of one worker alone: a command is carried out, to its end, before it is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.cluster.work import Work
from headgate.model import Config, ConnectorInfo, ConnectorStatus, RestartRequest, TargetState, TaskId
from headgate.runtime import config_rules
from headgate.runtime.errors import AlreadyExists
from headgate.runtime.herder import Herder
from headgate.runtime.herder_ports import HerderPorts
from headgate.runtime.holdings import Holdings
from headgate.runtime.lifecycle import InstanceEvent


class StandaloneHerder(Herder):
    def __init__(self, ports: HerderPorts) -> None:
        super().__init__(ports, patient=False)
        self.holdings = Holdings(self, self.configs, self.board, self.worker, self.actor)

    async def _settle(self, name: str, *passed: TargetState) -> None:
        await self.holdings.settle(self.holdings.all_of(name), {name: passed})

    # --- configs ------------------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, str | None], initial: TargetState | None) -> ConnectorInfo:
        async with self.exclusive(name, "creating connector"):
            valid = await self.require_valid(config)
            if self.configs.view().get(name) is not None:
                raise AlreadyExists(name)
            self.configs.put_connector(name, valid, initial)
            await self._settle(name)
            return self.connector_info(name)

    async def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        async with self.holdings.ending(name, "updating the config of connector"):
            valid = await self.require_valid(config)
            new = self.configs.view().get(name) is None
            await self._replace(name, valid)
            return new, self.connector_info(name)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        async with self.holdings.ending(name, "updating the config of connector"):
            merged = config_rules.patched(self.configs.view().require(name), changes)
            config_rules.check_name(name, merged)
            await self._replace(name, await self.require_valid(merged))
            return self.connector_info(name)

    async def _replace(self, name: str, config: Config) -> None:
        """Its tasks run on until there are new task configs."""
        await self.holdings.stop(Work.just(name))
        self.configs.put_connector(name, config)
        await self._settle(name)

    async def publish(self, name: str, configs: Sequence[Config]) -> None:
        await self._put_tasks(name, configs)
        await self._settle(name)

    async def _put_tasks(self, name: str, configs: Sequence[Config]) -> None:
        """Those that it had end before, and their statuses go with them."""
        tasks = self.holdings.all_of(name).tasks
        await self.holdings.stop(Work(tasks=tasks))
        for task in tasks:
            self.board.put(task, InstanceEvent.DELETE)
        self.configs.put_tasks(name, configs)

    async def delete(self, name: str) -> None:
        self.configs.view().require(name)
        async with self.holdings.ending(name, "deleting connector"):
            self.configs.view().require(name)
            await self._put_tasks(name, ())
            await self.holdings.stop(Work.just(name))
            self.board.put(name, InstanceEvent.DELETE)
            self.configs.remove_connector(name)
            self.forget_topics(name)

    # --- KIP-52, KIP-875: what is wanted of a connector ---------------------------------------------------------------

    async def pause(self, name: str) -> None:
        self.configs.view().require(name)
        self.spawn(self._switch(name, TargetState.PAUSED, "pausing connector"), f"pausing connector {name}")

    async def resume(self, name: str) -> None:
        self.configs.view().require(name)
        self.spawn(self._switch(name, TargetState.STARTED, "resuming connector"), f"resuming connector {name}")

    async def _switch(self, name: str, target: TargetState, doing: str) -> None:
        async with self.exclusive(name, doing):
            if self.configs.view().require(name).target is not target:
                self.configs.put_target_state(name, target)
                await self._settle(name, target)

    async def stop(self, name: str) -> None:
        self.configs.view().require(name)
        async with self.holdings.ending(name, "stopping connector"):
            connector = self.configs.view().require(name)
            if connector.target is not TargetState.STOPPED:
                # Empty tasks first: a crash in between leaves a running connector without tasks, not a lie.
                if not connector.never_resumed:
                    await self._put_tasks(name, ())
                self.configs.put_target_state(name, TargetState.STOPPED)
                await self._settle(name, TargetState.STOPPED)

    # --- KIP-52, KIP-745: restarts ------------------------------------------------------------------------------------

    async def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        name = request.connector
        self.configs.view().require(name)
        doing = "restarting connector" if request.forceful else "restarting connector and tasks of"
        with self.holdings.restarting(Work.just(name) if request.forceful else self.restart_plan(request).work):
            async with self.holdings.ending(name, doing):
                self.configs.view().require(name)
                if request.forceful:
                    await self.holdings.restart(Work.just(name))
                    return None
                plan = self.restart_plan(request)
                await self.holdings.restart(plan.work, by_plan=True)
                return plan.answer()

    async def restart_task(self, task: TaskId) -> None:
        self.configs.view().require_task(task)
        with self.holdings.restarting(Work.just(task)):
            async with self.exclusive(task.connector, "restarting a task of connector"):
                await self.holdings.restart_task(task)
