"""A worker without Kafka and Spark: connectors that do as they are told, a runner that records, stores in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar, TypeVar

from memory_offsets import MemoryOffsetStore

from headgate.api import INT, STRING, ConfigDef, Key, SinkConnector, SinkTask, SourceConnector, SourceTask
from headgate.model import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    RestartRequest,
    State,
    Status,
    TargetState,
    TaskFacts,
    TaskId,
    TaskSpec,
    TopicPartition,
)
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.runtime.config.secrets import Secrets
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.herder_ports import HerderPorts, offsets_in
from headgate.runtime.plugins import Plugins
from headgate.runtime.ports import TaskListener
from headgate.runtime.standalone import StandaloneHerder
from headgate.storage.memory import MemoryConfigStore, MemoryStatusStore

T = TypeVar("T")
WORKER_ID = "me:8083"
PATIENCE_S = 5.0
TASK_GRACE_MS = 200


def eventually(condition: Callable[[], object], what: str = "") -> None:
    """Waits until it is so, and not for ever."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"did not come true within {PATIENCE_S} s: {what or condition}"
        time.sleep(0.002)


class Script:
    """What the connectors of a test do, and what was called on them."""

    def __init__(self) -> None:
        self.journal: list[str] = []
        """Calls on connectors and tasks in their order."""
        self.plugins: list[Any] = []
        self.tasks: list[Mapping[str, Any]] | Exception = [{"part": 0}, {"part": 1}]
        self.on_init: Callable[[], None] = lambda: None
        self.on_start: Callable[[Any], None] = lambda plugin: None
        self.on_stop: Callable[[Any], None] = lambda plugin: None
        self.on_task_configs: Callable[[Any], None] = lambda plugin: None
        self.on_alter: Callable[[Mapping[str, str], Any], bool] = lambda config, offsets: False
        self.hanging = threading.Event()
        """Set once a call hangs."""
        self.released = threading.Event()

    def hang(self, *_: object) -> None:
        """Does not return before the test ends, or releases it."""
        self.hanging.set()
        self.released.wait(30)

    def count(self, entry: str) -> int:
        return self.journal.count(entry)


class Scripted:
    current: ClassVar[Script]

    def __init__(self) -> None:
        self.script = self.current  # one that is left behind by a test does not play in the next
        self.script.plugins.append(self)
        self.script.on_init()

    def start(self, config: Mapping[str, str]) -> None:
        self.settings = dict(config)
        self.script.journal.append(f"start {config['name']}")
        self.script.on_start(self)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.script.journal.append(f"task_configs {max_tasks}")
        self.script.on_task_configs(self)
        if isinstance(self.script.tasks, Exception):
            raise self.script.tasks
        return self.script.tasks

    def stop(self) -> None:
        self.script.journal.append(f"stop {self.settings['name']}")
        self.script.on_stop(self)

    def alter_offsets(self, config: Mapping[str, str], offsets: Any) -> bool:
        return self.script.on_alter(config, offsets)

    @classmethod
    def version(cls) -> str:
        return "7.1"


class ScriptedSourceTask(SourceTask):
    def poll(self) -> None:
        raise AssertionError("the runner of these tests runs nothing")


class ScriptedSinkTask(SinkTask):
    def put(self, records: Any) -> None:
        raise AssertionError("the runner of these tests runs nothing")


class ScriptedSourceConnector(Scripted, SourceConnector):
    config = ConfigDef(Key("color", STRING, None), Key("size", INT, 1))
    task_class = ScriptedSourceTask


class ScriptedSinkConnector(Scripted, SinkConnector):
    task_class = ScriptedSinkTask


class FakeTask:
    """A running task that obeys at once, unless told otherwise."""

    def __init__(self, spec: TaskSpec, listener: TaskListener, runner: FakeRunner) -> None:
        self.spec = spec
        self.listener = listener
        self.calls: list[str] = []
        self.known = TaskFacts("poll()", 0)
        self._runner = runner
        self._ended: Callable[[], None] = lambda: None

    def facts(self) -> TaskFacts:
        return self.known

    def pause(self) -> None:
        self.calls.append("pause")
        self.listener.on_paused()

    def resume(self) -> None:
        self.calls.append("resume")
        self.listener.on_running()

    def stop(self) -> None:
        self.calls.append("stop")
        self._runner.journal.append(f"stop task {self.spec.id}")
        if not self._runner.deaf:
            self.end()

    def cancel(self) -> None:
        self.calls.append("cancel")

    def when_ended(self, callback: Callable[[], None]) -> None:
        self._ended = callback

    def end(self) -> None:
        self.listener.on_stopped()
        self._ended()


class FakeRunner:
    def __init__(self, journal: list[str]) -> None:
        self.journal = journal
        self.all: list[FakeTask] = []
        self.deaf = False
        """Tasks do not hear that they shall stop."""
        self.silent = False
        """Tasks do not report that they run."""
        self.refusing: Exception | None = None

    def start(self, spec: TaskSpec, listener: TaskListener) -> FakeTask:
        if self.refusing is not None:
            raise self.refusing
        task = FakeTask(spec, listener, self)
        self.all.append(task)
        self.journal.append(f"start task {spec.id}")
        if not self.silent:
            (listener.on_running if spec.target_state is TargetState.STARTED else listener.on_paused)()
        return task

    def task(self, number: int = 0, connector: str = "orders") -> FakeTask:
        """The latest of this number."""
        return next(task for task in reversed(self.all) if task.spec.id == TaskId(connector, number))


class RecordingStatusStore(MemoryStatusStore):
    """Remembers every change of a state, also those that last for a moment only."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str | TaskId, list[State]] = {}

    def put(self, whose: str | TaskId, status: Status) -> None:
        seen = self.history.setdefault(whose, [])
        if seen[-1:] != [status.state]:
            seen.append(status.state)
        super().put(whose, status)


class FakeGroups:
    """Consumer groups in a dict. `failing` is raised by whatever is called."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.admins: list[Config] = []
        self.failing: Exception | None = None

    def _called(self, admin: Config) -> None:
        self.admins.append(admin)
        if self.failing is not None:
            raise self.failing

    def read(self, admin: Config, group: str) -> Mapping[TopicPartition, int]:
        self._called(admin)
        return dict(self.groups.get(group, {}))

    def alter(self, admin: Config, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        self._called(admin)
        merged = {**self.groups.get(group, {}), **offsets}
        self.groups[group] = {where: offset for where, offset in merged.items() if offset is not None}

    def delete(self, admin: Config, group: str) -> None:
        self._called(admin)
        self.groups.pop(group, None)


WORKER_FILE: Mapping[str, str] = {
    "bootstrap.servers": "broker:9092",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "value.converter.converter.encoding": "UTF-8",
    "offset.storage.file.filename": "/nowhere",
    "task.shutdown.graceful.timeout.ms": str(TASK_GRACE_MS),
}


def scripted_plugins() -> Plugins:
    return Plugins([ScriptedSourceConnector, ScriptedSinkConnector, StringConverter, SimpleHeaderConverter])


class World:
    """A standalone herder with all that is around it."""

    def __init__(
        self, script: Script, worker_file: Mapping[str, str] | None = None, secrets: Secrets | None = None
    ) -> None:
        self.script = script
        self.runner = FakeRunner(script.journal)
        self.configs = MemoryConfigStore()
        self.statuses = RecordingStatusStore()
        self.offsets = MemoryOffsetStore()
        self.groups = FakeGroups()
        ports = HerderPorts(
            config=WorkerConfig.parse({**WORKER_FILE, **(worker_file or {})}),
            plugins=scripted_plugins(),
            configs=self.configs,
            statuses=self.statuses,
            open_offsets=offsets_in(self.offsets),
            groups=self.groups,
            runner=self.runner,
            worker_id=WORKER_ID,
            cluster_id=lambda: "cluster-1",
            secrets=secrets or Secrets(),
        )
        self.herder = StandaloneHerder(ports)
        self.herder.start()

    def submit(self, command: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        return self.herder.submit(command)

    def do(self, command: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self.submit(command).result(PATIENCE_S)

    def settle(self) -> None:
        """Waits until what tasks and connectors have told so far is known to the herder."""
        self.do(self.herder.noop)

    @staticmethod
    def config(name: str = "orders", /, **more: str | None) -> dict[str, str | None]:
        return {"name": name, "connector.class": "ScriptedSource", "tasks.max": "2"} | {
            key.replace("_", "."): value for key, value in more.items()
        }

    def create(self, name: str = "orders", initial: TargetState | None = None, **more: str) -> ConnectorInfo:
        return self.do(lambda: self.herder.create(name, self.config(name, **more), initial))

    def put(self, name: str = "orders", **more: str) -> tuple[bool, ConnectorInfo]:
        return self.do(lambda: self.herder.put_config(name, self.config(name, **more)))

    def patch(self, changes: Mapping[str, str | None], name: str = "orders") -> ConnectorInfo:
        return self.do(lambda: self.herder.patch_config(name, changes))

    def delete(self, name: str = "orders") -> None:
        self.do(lambda: self.herder.delete(name))

    def pause(self, name: str = "orders") -> None:
        """Until it is done, which the command itself does not wait for."""
        self.do(lambda: self.herder.pause(name))
        self.idle()

    def resume(self, name: str = "orders") -> None:
        self.do(lambda: self.herder.resume(name))
        self.idle()

    def stop(self, name: str = "orders") -> None:
        self.do(lambda: self.herder.stop(name))

    def restart(self, include_tasks: bool = False, only_failed: bool = False) -> ConnectorStatus | None:
        return self.do(lambda: self.herder.restart(RestartRequest("orders", include_tasks, only_failed)))

    def restart_task(self, number: int) -> None:
        self.do(lambda: self.herder.restart_task(TaskId("orders", number)))

    def idle(self) -> None:
        """Waits until nothing goes on in the background, and what was reported meanwhile is known."""
        self.settle()
        eventually(lambda: not self.herder._background, "idle")
        self.settle()

    def be_patient(self) -> None:
        """Tasks that do not stop are waited for, for as long as the test lasts."""
        self.herder.worker._graceful_timeout_s = PATIENCE_S

    def status(self, name: str = "orders") -> ConnectorStatus:
        self.settle()
        return self.herder.connector_status(name)

    def state(self, name: str = "orders") -> State:
        return self.status(name).connector.state

    def task_states(self, name: str = "orders") -> list[State]:
        return [each.status.state for each in self.status(name).tasks]

    def target(self, name: str = "orders") -> TargetState:
        return self.configs.view().require(name).target

    def connector_history(self, name: str = "orders") -> list[State]:
        self.settle()
        return self.statuses.history.get(name, [])

    def task_history(self, number: int = 0) -> list[State]:
        self.settle()
        return self.statuses.history.get(TaskId("orders", number), [])

    def forget_history(self) -> None:
        self.settle()
        self.statuses.history.clear()
        self.script.journal.clear()

    def context(self) -> Any:
        """What the latest connector object talks to the runtime with."""
        return self.script.plugins[-1].context
