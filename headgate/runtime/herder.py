"""Herder: the one thread that decides and acts.

Everything mutable is touched on its thread alone; reads are answered, from any thread, from values that never change
once published. Standalone and distributed mode shape the commands.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from headgate.api.config import ConfigDef, Key
from headgate.backoff import Backoff
from headgate.model import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    ConnectorType,
    Offset,
    Partition,
    RestartRequest,
    Status,
    TargetState,
    TaskId,
)
from headgate.runtime import restart
from headgate.runtime.actor import Actor
from headgate.runtime.board import StatusBoard
from headgate.runtime.config import connector_config, masking, unknown_keys
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.connector_config import CONNECTOR_CLASS, NAME
from headgate.runtime.config.validation import ConfigInfos
from headgate.runtime.config.validator import Validator, failure_message, require_version
from headgate.runtime.connector import in_thread
from headgate.runtime.errors import (
    AlreadyRestarting,
    ConnectorNotFound,
    Forbidden,
    HerderError,
    InvalidConfig,
    PluginNotFound,
    StatusNotFound,
)
from headgate.runtime.health_watch import HealthWatch
from headgate.runtime.herder_ports import HerderPorts
from headgate.runtime.loop import HerderLoop
from headgate.runtime.offset_changes import OffsetChanges
from headgate.runtime.plugins import CONNECTORS
from headgate.runtime.ports import NoPeers, PeerProofs
from headgate.runtime.restart import RestartPlan
from headgate.runtime.worker import Worker

log = logging.getLogger(__name__)

_KAFKA_AWAY: Final = Backoff(5.0, 2.0, 60.0)
_KAFKA_THERE_S: Final = 10.0
_WATCH_AGAIN_S: Final = 1.0
_ASKING: Final = "asking whether Kafka is there"


@dataclass(frozen=True, slots=True)
class KafkaReach:
    reached: bool
    since_ms: int


class Herder(HerderLoop, ABC):
    def __init__(self, ports: HerderPorts, patient: bool) -> None:
        """`patient`: see `Actor`."""
        super().__init__()
        self.config = ports.config
        self.plugins = ports.plugins
        self.configs = ports.configs
        self.board = StatusBoard(ports.statuses, ports.worker_id, self.group_generation)
        self.worker = Worker(
            ports.runner, self.board, self.config.graceful_timeout_s, self.post, self._knows_topic, self._on_topic
        )
        self.actor = Actor(
            self, ports, self.board, self.worker, self._on_expired, self.publish, self.task_generation, patient
        )
        self.watch = HealthWatch(self.worker, self.board)
        self.ready = False
        self.kafka_cluster_id: str | None = None
        self.kafka: KafkaReach | None = None
        """Whether a broker answered the last time; None: that is not known yet."""
        self.trouble = ports.trouble
        self._secrets = ports.secrets
        check = ClientCheck(self.config, ports.try_client)
        self._validator = Validator(
            self.plugins, self.config.raw, ports.secrets, check, ports.try_step, self.config.sandbox
        )
        self._changes = OffsetChanges(
            self.config, self.plugins, ports.open_offsets, ports.groups, ports.secrets, ports.session
        )
        self._cluster_id = ports.cluster_id
        self._topics: dict[str, dict[str, None]] = {}

    def start(self) -> None:
        super().start()
        self.post(self._begin)
        self.post(lambda: self.spawn(self._ask_kafka(), _ASKING))
        self.post(self._watch)

    def _watch(self) -> None:
        again = _WATCH_AGAIN_S
        try:
            again = self.watch.look()
        except Exception:
            log.exception("The tasks could not be looked at")
        self.later(again, self._watch)

    def _begin(self) -> None:
        self.ready = True

    async def _ask_kafka(self, failures: int = 0) -> None:
        """Whether a broker answers, and for which cluster; from now on again and again, more slowly while none does."""
        found = await in_thread(self._cluster_id, "cluster-id")
        if self.kafka is None or self.kafka.reached is not (found is not None):
            self.kafka = KafkaReach(found is not None, round(time.time() * 1000))
        self.kafka_cluster_id = found or self.kafka_cluster_id
        failures = 0 if found is not None else failures + 1
        again = _KAFKA_AWAY.after(failures) if failures else _KAFKA_THERE_S
        self.later(again, lambda: self.spawn(self._ask_kafka(failures), _ASKING))

    def shutdown(self, timeout: float = 60.0) -> None:
        """From any thread: ends all connectors, then all tasks, with their offsets committed, then the herder."""
        self.end(self._shutdown, timeout)

    async def _shutdown(self) -> None:
        with self.stages.doing("shutting down"):
            ending = [self.actor.shutdown(name) for name in list(self.worker.connectors)]
            for problem in await asyncio.gather(*ending, return_exceptions=True):
                if isinstance(problem, BaseException):
                    log.error("A connector did not shut down: %s", problem)
            await self.worker.stop_tasks(list(self.worker.tasks))

    # --- reads: from any thread ---------------------------------------------------------------------------------------

    @property
    def stage(self) -> str | None:
        """What the herder is doing, for people who wait for it."""
        return self.stages.summary

    def connector_names(self) -> list[str]:
        return list(self.configs.view().connectors)

    def connector_info(self, name: str) -> ConnectorInfo:
        found = self.configs.view().require(name)
        return ConnectorInfo(name, found.config, found.task_ids, self._type(found.config))

    def _type(self, config: Config) -> ConnectorType:
        return self.plugins.connector_type(config.get(CONNECTOR_CLASS))

    def task_configs(self, name: str) -> list[tuple[TaskId, Config]]:
        found = self.configs.view().require(name)
        return list(zip(found.task_ids, found.tasks, strict=True))

    def connector_status(self, name: str) -> ConnectorStatus:
        found = self.configs.view().get(name)
        return self.board.status(name, self._type(found.config) if found else ConnectorType.UNKNOWN)

    def task_status(self, task: TaskId) -> Status:
        return self.board.task_status(task)

    def active_topics(self, name: str) -> list[str]:
        self._require_topic_tracking()
        return list(self.topics_of(name))

    def _require_topic_tracking(self) -> None:
        if not self.config.topic_tracking:
            raise Forbidden("Topic tracking is disabled.")

    def plugin_config(self, plugin: str, version: str | None) -> Sequence[Key]:
        found = self.plugins.find_any(plugin)
        if found is None:
            raise PluginNotFound(f"Unknown plugin {plugin}.")
        require_version(found, version)
        own: ConfigDef = getattr(found.cls, "config", ConfigDef())
        if found.kind not in CONNECTORS:
            return list(own)
        known = {connector_config.CONNECTOR_VERSION: found.version}
        framework = connector_config.definition(found.connector_type)
        shown = (replace(key, default=known.get(key.name, key.default)) for key in framework)
        return [*own, *(key for key in shown if key.name not in own)]

    # --- commands, the same in both modes: on the herder's thread, through `call` -------------------------------------

    async def noop(self) -> None:
        """Returns when the herder's thread got to it: the health check."""

    async def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        whole = self._unmasked(config)
        return await in_thread(lambda: self._validator.validate(whole), "validate")

    def _unmasked(self, config: Mapping[str, str | None]) -> Mapping[str, str | None]:
        known = self.configs.view().get(config.get(NAME) or "")
        return masking.unmasked(config, known.config if known else {}, self.plugins)

    async def require_valid(self, config: Mapping[str, str | None]) -> Config:
        """The config with what is stored in place of masks, and without nulls, which validation refuses. Raises
        BadRequest, InvalidConfig."""
        config = self._unmasked(config)
        infos = await self.validate(config)
        if infos.error_count:
            raise InvalidConfig(failure_message(infos))
        if infos.unknown_keys:
            log.warning("Keys that nobody declared: %s", unknown_keys.told(infos.unknown_keys))
        return {key: value for key, value in config.items() if value is not None}

    def restart_plan(self, request: RestartRequest) -> RestartPlan:
        """KIP-745. Raises StatusNotFound."""
        try:
            return restart.plan(request, self.connector_status(request.connector))
        except StatusNotFound:
            raise StatusNotFound(f"Status for connector {request.connector} not found") from None

    def _on_expired(self, name: str) -> None:
        if not self.ending:
            self.spawn(self._reload(name), f"restarting connector {name}, whose values have expired")

    async def _reload(self, name: str) -> None:
        with suppress(AlreadyRestarting, ConnectorNotFound):
            await self.restart(RestartRequest(name))

    async def offsets(self, name: str) -> list[tuple[Partition, Offset]]:
        return await self._changes.read(self.configs.view().require(name))

    async def alter_offsets(self, name: str, offsets: Sequence[tuple[Partition | None, Offset | None]]) -> str:
        """What to tell the user."""
        async with self.exclusive(name, "altering the offsets of connector"):
            return await self._changes.alter(self.configs.view().require(name), offsets)

    async def reset_offsets(self, name: str) -> str:
        async with self.exclusive(name, "resetting the offsets of connector"):
            return await self._changes.reset(self.configs.view().require(name))

    async def reset_topics(self, name: str) -> None:
        self._require_topic_tracking()
        if not self.config.topic_tracking_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        self.forget_topics(name)

    def topics_of(self, name: str) -> Iterable[str]:
        return self._topics.get(name, ())

    def forget_topics(self, name: str) -> None:
        self._topics = {key: topics for key, topics in self._topics.items() if key != name}

    def _knows_topic(self, name: str, topic: str) -> bool:
        """Whether nobody has to be told that a task of this connector uses this topic; from any thread."""
        return topic in self._topics.get(name, ())

    def _on_topic(self, task: TaskId, topic: str) -> None:
        known = self._topics.get(task.connector, {})
        self._topics = {**self._topics, task.connector: {**known, topic: None}}

    # --- what a worker alone has no use for ---------------------------------------------------------------------------

    def group_generation(self) -> int:
        """Of the group of workers now; from any thread."""
        return 0

    def task_generation(self, connector: str) -> int:
        """Counts a connector's sets of task configs."""
        return 0

    def url_of(self, worker_id: str) -> str | None:
        """Where another worker of the group can be asked; from any thread."""
        return None

    # --- among workers ------------------------------------------------------------------------------------------------

    @property
    def proofs(self) -> PeerProofs:
        """Of requests to and from other workers."""
        return NoPeers()

    async def set_level_everywhere(self, logger: str, level: str) -> bool:
        """Whether all workers are told, this one with them. A worker alone sees to it itself."""
        return False

    async def took_leave(self, member: str) -> None:
        """A member of the group says that it will not come back: its work need not wait for it."""
        raise HerderError("A worker alone has no group that anybody could leave.")

    async def put_task_configs(self, name: str, configs: Sequence[Config]) -> None:
        raise HerderError("Kafka Connect in standalone mode does not support externally setting task configurations.")

    async def fence(self, name: str) -> None:
        raise HerderError("Kafka Connect in standalone mode does not support exactly-once source connectors.")

    # --- commands that each mode shapes -------------------------------------------------------------------------------

    @abstractmethod
    async def create(
        self, name: str, config: Mapping[str, str | None], initial: TargetState | None
    ) -> ConnectorInfo: ...

    @abstractmethod
    async def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        """Whether it was created, and what it is now."""

    @abstractmethod
    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo: ...

    @abstractmethod
    async def delete(self, name: str) -> None: ...

    @abstractmethod
    async def pause(self, name: str) -> None: ...

    @abstractmethod
    async def resume(self, name: str) -> None: ...

    @abstractmethod
    async def stop(self, name: str) -> None: ...

    @abstractmethod
    async def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        """None for the plain form; else the status with RESTARTING put in."""

    @abstractmethod
    async def restart_task(self, task: TaskId) -> None: ...

    @abstractmethod
    async def publish(self, name: str, configs: tuple[Config, ...]) -> None:
        """What a connector here has generated becomes its task configs."""
