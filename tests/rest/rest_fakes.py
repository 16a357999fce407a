"""A herder of plain values, for a layer that only maps HTTP to calls and results to HTTP."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from headgate.api.config import INT, PASSWORD, STRING, ConfigValue, Key
from headgate.api.plugin import Plugin
from headgate.model import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    ConnectorType,
    Offset,
    Partition,
    RestartRequest,
    State,
    Status,
    TargetState,
    TaskId,
    TaskStatus,
)
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos
from headgate.runtime.errors import (
    AlreadyExists,
    BadRequest,
    ConnectorNotFound,
    PluginNotFound,
    StatusNotFound,
    TaskNotFound,
)
from headgate.runtime.herder import Herder, KafkaReach
from headgate.runtime.plugins import Found, PluginKind
from headgate.runtime.ports import PeerProofs, PeerRequest

T = TypeVar("T")
WORKER = "worker:8083"


class FakePlugins:
    all = (
        Found(PluginKind.SINK, "acme.Sink", "1.0", Plugin),
        Found(PluginKind.SOURCE, "acme.Source", None, Plugin),
        Found(PluginKind.TRANSFORMATION, "acme.Mask", "1.0", Plugin),
        Found(PluginKind.PREDICATE, "acme.Has", "1.0", Plugin),
        Found(PluginKind.CONVERTER, "acme.Json", "1.0", Plugin),
        Found(PluginKind.HEADER_CONVERTER, "acme.Json", "1.0", Plugin),
    )

    def get(self, name: str, *kinds: PluginKind) -> Found | None:
        """`theirs.Source` is another name of acme.Source."""
        name = name.replace("theirs.", "acme.")
        return next((each for each in self.all if each.name == name and each.kind in kinds), None)


class FakeHerder:
    """Connectors with one task each. `errors` makes a method fail, `calls` has what was called with what."""

    def __init__(self, *names: str) -> None:
        self.ready = True
        self.stage: str | None = None
        self.kafka_cluster_id: str | None = "cluster-1"
        self.kafka: KafkaReach | None = KafkaReach(True, 0)
        self.trouble: Callable[[], str | None] = lambda: None
        self.watch = SimpleNamespace(here={})
        self.urls: dict[str, str] = {}
        """Of other workers."""
        self.plugins = FakePlugins()
        self.configs: dict[str, dict[str, Any]] = {}
        self.statuses: dict[str, ConnectorStatus] = {}
        self.stored_offsets: list[tuple[Partition, Offset]] = []
        self.errors: dict[str, Exception] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.timeouts: list[float] = []
        self.signed: list[tuple[PeerRequest, Mapping[str, str]]] = []
        self.tells_all = False
        for name in names:
            self._put(name, {"name": name, "connector.class": "acme.Source"})

    def as_herder(self) -> Herder:
        return cast(Herder, self)

    def _put(self, name: str, config: Mapping[str, Any]) -> ConnectorInfo:
        self.configs[name] = dict(config)
        running = Status(State.RUNNING, WORKER, version="1.0")
        self.statuses[name] = ConnectorStatus(name, running, (TaskStatus(0, running),), ConnectorType.SOURCE)
        return self._info(name)

    def _info(self, name: str) -> ConnectorInfo:
        # Null values are validation's to refuse; this one has no validation.
        config = {key: value for key, value in self.configs[name].items() if value is not None}
        return ConnectorInfo(name, config, (TaskId(name, 0),), ConnectorType.SOURCE)

    def _called(self, method: str, *args: Any) -> None:
        self.calls.append((method, *args))
        if method in self.errors:
            raise self.errors[method]

    def _require(self, name: str) -> None:
        if name not in self.configs:
            raise ConnectorNotFound(name)

    # --- reads --------------------------------------------------------------------------------------------------------

    def url_of(self, worker_id: str) -> str | None:
        return self.urls.get(worker_id)

    def connector_names(self) -> list[str]:
        return list(self.configs)

    def connector_info(self, name: str) -> ConnectorInfo:
        self._called("connector_info", name)
        self._require(name)
        return self._info(name)

    def task_configs(self, name: str) -> list[tuple[TaskId, Config]]:
        self._require(name)
        return [(TaskId(name, 0), {"task.class": "acme.Task"})]

    def connector_status(self, name: str) -> ConnectorStatus:
        self._called("connector_status", name)
        if name not in self.statuses:
            raise StatusNotFound(f"No status found for connector {name}")
        return self.statuses[name]

    def task_status(self, task: TaskId) -> Status:
        tasks = self.statuses[task.connector].tasks if task.connector in self.statuses else ()
        for each in tasks:
            if each.id == task.task:
                return each.status
        raise StatusNotFound(f"No status found for task {task}")

    def active_topics(self, name: str) -> list[str]:
        self._called("active_topics", name)
        return ["t1", "t2"] if name in self.configs else []

    def plugin_config(self, plugin: str, version: str | None) -> Sequence[Key]:
        self._called("plugin_config", plugin, version)
        if not any(plugin == found.name for found in FakePlugins.all):
            raise PluginNotFound(plugin)
        return [Key("tasks.max", INT, 1), Key("secret", PASSWORD, "x", group="Access"), Key("topic", STRING)]

    # --- commands -----------------------------------------------------------------------------------------------------

    async def call(self, command: Callable[[], Coroutine[Any, Any, T]], timeout: float = 90.0) -> T:
        self.timeouts.append(timeout)
        return await command()

    async def create(self, name: str, config: Mapping[str, Any], initial: TargetState | None) -> ConnectorInfo:
        self._called("create", name, dict(config), initial)
        if not name or any(unicodedata.category(char) == "Cc" for char in name):
            raise BadRequest(f"Invalid value {name} for configuration name: …")
        if name in self.configs:
            raise AlreadyExists(name)
        return self._put(name, config)

    async def put_config(self, name: str, config: Mapping[str, Any]) -> tuple[bool, ConnectorInfo]:
        self._called("put_config", name, dict(config))
        created = name not in self.configs
        return created, self._put(name, config)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        self._called("patch_config", name, dict(changes))
        self._require(name)
        return self._put(name, {**self.configs[name], **changes})

    async def delete(self, name: str) -> None:
        self._called("delete", name)
        self._require(name)
        del self.configs[name], self.statuses[name]

    async def pause(self, name: str) -> None:
        self._called("pause", name)
        self._require(name)

    async def resume(self, name: str) -> None:
        self._called("resume", name)
        self._require(name)

    async def stop(self, name: str) -> None:
        self._called("stop", name)
        self._require(name)

    async def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        self._called("restart", request)
        self._require(request.connector)
        return None if request.forceful else self.statuses[request.connector]

    async def restart_task(self, task: TaskId) -> None:
        self._called("restart_task", task)
        self._require(task.connector)
        if task.task != 0:
            raise TaskNotFound(task)

    async def offsets(self, name: str) -> list[tuple[Partition, Offset]]:
        self._called("offsets", name)
        self._require(name)
        return self.stored_offsets

    async def alter_offsets(self, name: str, offsets: Sequence[tuple[Partition | None, Offset | None]]) -> str:
        self._called("alter_offsets", name, list(offsets))
        self._require(name)
        return "The offsets for this connector have been altered successfully"

    async def reset_offsets(self, name: str) -> str:
        self._called("reset_offsets", name)
        self._require(name)
        return "The offsets for this connector have been reset successfully"

    async def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        self._called("validate", dict(config))
        found = ConfigInfo(Key("tasks.max", INT, 1, group="Common"), ConfigValue("tasks.max", 2, [1, 2], ["too many"]))
        return ConfigInfos(config.get("connector.class") or "", 1, ["Common"], [found])

    async def reset_topics(self, name: str) -> None:
        self._called("reset_topics", name)

    async def put_task_configs(self, name: str, configs: Sequence[Config]) -> None:
        self._called("put_task_configs", name, list(configs))

    async def fence(self, name: str) -> None:
        self._called("fence", name)

    @property
    def proofs(self) -> PeerProofs:
        return self

    def check(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        self.signed.append((asked, headers))
        if "check_signature" in self.errors:
            raise self.errors["check_signature"]
        return True

    def sign(self, asked: PeerRequest) -> Mapping[str, str]:
        return {"X-Headgate-Authorization": hashlib.sha256(repr(asked).encode()).hexdigest()}

    def vouches(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        """Workers of a test trust each other without a key."""
        return headers.get("x-headgate-authorization") == self.sign(asked)["X-Headgate-Authorization"]

    async def took_leave(self, member: str) -> None:
        self._called("took_leave", member)

    async def set_level_everywhere(self, logger: str, level: str) -> bool:
        self._called("set_level_everywhere", logger, level)
        return self.tells_all

    async def noop(self) -> None:
        self._called("noop")
