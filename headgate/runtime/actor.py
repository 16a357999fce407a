"""Carries actions out: starts and stops what lives on this worker, and asks connectors for their task configs.

On the herder's thread only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from headgate.api.errors import ConfigError
from headgate.log import about, hide, masked, trace_of
from headgate.model import Config, ConnectorType, TargetState, TaskId
from headgate.runtime import config_rules, task_spec
from headgate.runtime.board import StatusBoard
from headgate.runtime.config import masking, reaches
from headgate.runtime.config.connector_config import CONNECTOR_CLASS, RELOAD, ConnectorConfig
from headgate.runtime.config.secrets import Resolved, put_back
from headgate.runtime.connector import ConnectorInstance
from headgate.runtime.context import RuntimeConnectorContext, StoreOffsetReader
from headgate.runtime.errors import HerderError, StartFailed, TooManyTasks
from headgate.runtime.herder_ports import HerderPorts
from headgate.runtime.lifecycle import EVENT_OF, InstanceEvent, Phase
from headgate.runtime.loop import HerderLoop
from headgate.runtime.plugins import Found
from headgate.runtime.reconcile import Action, Apply, Regenerate, Shutdown, StartTask, StopTasks, SwitchTasks
from headgate.runtime.worker import Worker

log = logging.getLogger(__name__)

_RETRY_FIRST_S, _RETRY_MOST_S = 0.25, 60.0

Publish = Callable[[str, tuple[Config, ...]], Awaitable[None]]
"""Makes these the task configs of a connector."""


@dataclass(eq=False)
class Actor:
    _loop: HerderLoop
    _ports: HerderPorts
    _board: StatusBoard
    _worker: Worker
    _expired: Callable[[str], None]
    """Is told a connector whose values from config providers are no longer good."""
    _publish: Publish
    _generation: Callable[[str], int]
    """Counts a connector's sets of task configs."""
    _patient: bool
    """A connector that was started is asked for them in the background, until they are published; else at once, and
    what fails is raised."""
    _resolved: dict[str, Resolved] = field(default_factory=dict)
    """By connector: the values that its instance was started with."""
    _reloads: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    async def act(self, actions: Sequence[Action], quietly: bool = False) -> None:
        """One after the other; the first that fails ends it, unless `quietly`: the status has it."""
        for action in actions:
            try:
                await self._act(action)
            except HerderError as error:
                if not quietly:
                    raise
                log.error("Failed %s: %s", action.doing, error)

    async def _act(self, action: Action) -> None:
        match action:
            case SwitchTasks(tasks, target):
                self._worker.switch_tasks(tasks, target)
            case Shutdown(name):
                await self.shutdown(name)
            case StopTasks(tasks):
                await self._worker.stop_tasks(tasks)
            case Apply(name, state):
                await self._apply(name, state)
            case StartTask(task):
                await self._start_task(task)
            case Regenerate(name, at_once):
                await self._regenerate(name, at_once)

    def type_of(self, name: str) -> ConnectorType:
        return self._ports.plugins.connector_type(self._ports.configs.view().require(name).config.get(CONNECTOR_CLASS))

    # --- the connector instance ---------------------------------------------------------------------------------------

    async def _apply(self, name: str, state: TargetState | None) -> None:
        connector = self._ports.configs.view().require(name)
        self._worker.begun.setdefault(name, connector.config)
        target = state or connector.target
        starts, starting = self._worker.connector_starts, target is TargetState.STARTED
        starts.attempts += starting
        try:
            instance = await self._instance(name, connector.config, starting)
            changed = await instance.to(target)
        except Exception as error:
            if target is TargetState.STOPPED and name not in self._worker.connectors:
                # KIP-875: stopping wins, also over a config that cannot be resolved. A resume resolves it anew.
                log.warning("Connector is stopped without having been built: %s", error)
                self._board.put(name, InstanceEvent.STOP)
                return
            starts.failures += starting
            self._fail(name, self._worker.connectors.get(name), error, f"did not reach state {target.value}")
            raise
        if changed:
            self._board.put(name, EVENT_OF[instance.phase], version=instance.version)

    async def _instance(self, name: str, stored: Config, starting: bool) -> ConnectorInstance:
        """The connector's, or a new one. A connector that is to be started gets its values anew."""
        instance = self._worker.connectors.get(name)
        if instance is not None and not starting:
            return instance
        self._hide(stored)
        resolved = await self._ports.secrets.look_up(stored)
        config = resolved.config
        found = self._ports.plugins.find_connector(config.get(CONNECTOR_CLASS, ""))
        try:
            task_spec.topic_creation(found.connector_type, config, self._ports.config)
            if starting:
                reaches.require(config, self._ports.plugins, self._ports.config.sandbox)
        except ConfigError as error:
            raise StartFailed(str(error)) from error
        if instance is None:
            instance = self._new_instance(name, config, found)
        instance.config = config
        self._resolved[name] = resolved
        if starting:
            self._schedule_reload(name, resolved)
        return instance

    def _hide(self, stored: Config) -> None:
        """From now on no trace and no line of the log tells its secrets. Those of providers hide themselves."""
        hide(masking.literals(stored, self._ports.plugins).values())

    def _schedule_reload(self, name: str, resolved: Resolved) -> None:
        self._cancel_reload(name)
        if resolved.ttl_ms is not None and resolved.config.get(RELOAD, "restart").strip() == "restart":
            log.info(
                "Values from config providers are good for %d ms; then the connector is restarted", resolved.ttl_ms
            )
            loop = asyncio.get_running_loop()
            self._reloads[name] = loop.call_later(resolved.ttl_ms / 1000, self._expired, name)

    def _cancel_reload(self, name: str) -> None:
        timer = self._reloads.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _new_instance(self, name: str, config: Config, found: Found) -> ConnectorInstance:
        context = RuntimeConnectorContext(
            name,
            StoreOffsetReader(lambda: self._ports.open_offsets(name, instance.config, to_change=False), name),
            lambda: self._loop.post(lambda: self._on_reconfigure(instance)),
            lambda error: self._loop.post(lambda: self._on_error(instance, error)),
            self._ports.session,
            lambda: task_spec.cluster_config(instance.config, self._ports.config),
        )
        instance = ConnectorInstance(name, config, found, context)
        self._worker.connectors[name] = instance
        return instance

    async def shutdown(self, name: str) -> None:
        """Ends the connector instance, if there is one."""
        self._cancel_reload(name)
        self._resolved.pop(name, None)
        instance = self._worker.connectors.pop(name, None)
        if instance is not None:
            await instance.shutdown()
            if instance.phase is Phase.FAILED and instance.trace:
                trace = masked(instance.trace)
                log.error("Connector was FAILED when it was shut down, or failed in stop(): %s", trace)
        self._worker.begun.pop(name, None)  # not before: until now it is waited for
        self._board.put(name, InstanceEvent.SHUTDOWN)  # also if it could not even be built: what comes next begins anew

    def _fail(self, name: str, instance: ConnectorInstance | None, error: BaseException, what: str) -> None:
        trace = masked(instance.trace if instance and instance.trace else trace_of(error))
        if instance is not None:
            instance.fail(trace)
        log.error("Connector %s: %s", what, trace)
        self._board.put(name, InstanceEvent.FAILURE, trace, instance.version if instance else None)

    # --- its tasks ----------------------------------------------------------------------------------------------------

    async def _start_task(self, task: TaskId) -> None:
        """A task that cannot be built is FAILED; the others start."""
        connector = self._ports.configs.view().require(task.connector)
        self._worker.begun_tasks.add(task)
        generation = self._generation(task.connector)
        try:
            self._hide(connector.config)
            config = (await self._ports.secrets.look_up(connector.config)).config
            limit = ConnectorConfig.parse(config).task_limit
            config_rules.check_task_count(connector.name, len(connector.tasks), limit)
            own = (await self._ports.secrets.look_up(connector.tasks[task.task])).config
            target = self._ports.configs.view().require(task.connector).target  # it may have changed meanwhile
            spec = task_spec.build(task, config, own, target, self._ports.config, self._ports.plugins)
        except Exception as error:
            self._worker.task_starts.attempts += 1
            self._worker.fail_task(task, trace_of(error))
            return
        self._worker.start_task(replace(spec, generation=generation))

    async def _regenerate(self, name: str, at_once: bool) -> None:
        instance = self._worker.connectors.get(name)
        if instance is None or instance.phase is not Phase.STARTED:
            return
        if self._patient and not at_once:
            self._on_reconfigure(instance)
            return
        try:
            configs = await self._generate(instance)
        except Exception as error:
            self._fail(name, instance, error, "did not generate its task configs")
            if isinstance(error, HerderError):
                raise
            raise StartFailed(f"Connector {name} failed to generate its task configs: {error}") from error
        await self._put(instance, configs)

    async def _put(self, instance: ConnectorInstance, configs: tuple[Config, ...] | None) -> None:
        if configs is not None:
            await self._publish(instance.name, configs)
        instance.made_tasks = True

    async def _generate(self, instance: ConnectorInstance) -> tuple[Config, ...] | None:
        """The task configs that the connector generates now; None if they are those that it has."""
        parsed = ConnectorConfig.parse(instance.config)
        sink = self._ports.plugins.connector_type(parsed.connector_class) is ConnectorType.SINK
        known = self._resolved[instance.name].secrets
        made = await instance.task_configs(parsed.tasks_max, sink)
        if not parsed.tasks_max_enforce and len(made) > parsed.tasks_max:
            log.warning("Connector made %d tasks, more than tasks.max=%d", len(made), parsed.tasks_max)
        view = self._ports.configs.view()
        stored = view.require(instance.name).config
        configs = tuple(put_back(config, stored, known) for config in made)
        return configs if config_rules.task_configs_differ(view, instance.name, configs, parsed.task_limit) else None

    # --- what connectors tell -----------------------------------------------------------------------------------------

    def _current(self, instance: ConnectorInstance) -> bool:
        return self._worker.connectors.get(instance.name) is instance

    def _on_reconfigure(self, instance: ConnectorInstance) -> None:
        if not self._current(instance) or self._loop.ending:
            return
        instance.outdated = True
        if not instance.asked:
            instance.asked = True
            self._loop.spawn(self._reconfigure(instance), f"reconfiguring the tasks of connector {instance.name}")

    async def _reconfigure(self, instance: ConnectorInstance) -> None:
        try:
            await self._ask_until_answered(instance)
        finally:
            instance.asked = False

    async def _ask_until_answered(self, instance: ConnectorInstance) -> None:
        """The old tasks run on while the connector cannot say what the new ones are: ask again, ever more slowly."""
        delay = _RETRY_FIRST_S
        while instance.outdated and not self._loop.ending:
            async with self._loop.exclusive(instance.name, "reconfiguring the tasks of connector"):
                instance.outdated = False
                if instance.phase is not Phase.STARTED or not self._current(instance):
                    return
                try:
                    await self._put(instance, await self._generate(instance))
                    continue
                except TooManyTasks as error:
                    self._fail(instance.name, instance, error, "generated too many tasks")
                    return
                except HerderError as error:
                    log.warning("New task configs were not published, trying again in %.2f s: %s", delay, error)
                except Exception:
                    log.exception("Connector failed to generate its task configs; trying again in %.2f s", delay)
                instance.outdated = True
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MOST_S)

    def _on_error(self, instance: ConnectorInstance, error: Exception) -> None:
        if self._current(instance) and not instance.silent:
            with about(instance.name):
                self._fail(instance.name, instance, error, "reported that it cannot go on")
