"""The config topic, folded: what all its records, in their order, say about the cluster.

Compaction may have taken any record that a later one of the same key replaces. Task configs therefore count only when a
commit finds all of them; until then the connector is inconsistent and has no tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.model import Config, RestartRequest, SessionKey, TargetState, TaskId
from headgate.runtime.view import ClusterView, ConnectorView
from headgate.storage.config_records import (
    CommitRecord,
    ConfigRecord,
    ConnectorRecord,
    LoggerRecord,
    RestartRecord,
    SessionKeyRecord,
    TargetStateRecord,
    TaskCountRecord,
    TaskRecord,
)


@dataclass(frozen=True, slots=True)
class ConfigState:
    """All of it at one moment, as one value that never changes."""

    offset: int = 0
    """The next offset to read: what workers compare when they join."""
    view: ClusterView = field(default_factory=ClusterView)
    """Inconsistent connectors are there, without tasks."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """What each connector's last commit said, whether its tasks were complete or not."""
    inconsistent: frozenset[str] = frozenset()
    generations: Mapping[str, int] = field(default_factory=dict)
    task_count_records: Mapping[str, int] = field(default_factory=dict)
    pending_fencing: frozenset[str] = frozenset()
    """KIP-618: connectors with a commit after their last task count record."""
    session_key: SessionKey | None = None

    def task_count(self, connector: str) -> int:
        return self.task_counts.get(connector, 0)

    def task_count_record(self, connector: str) -> int | None:
        return self.task_count_records.get(connector)

    def generation(self, connector: str) -> int:
        """Counts the sets of task configs seen since the start: equal numbers, equal task configs."""
        return self.generations.get(connector, 0)


# --- what a record changed, for whoever acts upon it ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectorUpdated:
    connector: str


@dataclass(frozen=True, slots=True)
class ConnectorRemoved:
    connector: str


@dataclass(frozen=True, slots=True)
class TasksUpdated:
    connector: str
    tasks: tuple[TaskId, ...]
    """Those that were applied: none if the set was incomplete."""


@dataclass(frozen=True, slots=True)
class TargetStateChanged:
    connector: str


@dataclass(frozen=True, slots=True)
class SessionKeyUpdated:
    key: SessionKey


@dataclass(frozen=True, slots=True)
class RestartRequested:
    request: RestartRequest


@dataclass(frozen=True, slots=True)
class LoggerLevelSet:
    namespace: str
    level: str


ConfigEvent = (
    ConnectorUpdated
    | ConnectorRemoved
    | TasksUpdated
    | TargetStateChanged
    | SessionKeyUpdated
    | RestartRequested
    | LoggerLevelSet
)


@dataclass(slots=True)
class _Connector:
    """What is kept of a connector for as long as its own record lives."""

    config: Config
    tasks: tuple[Config, ...] = ()
    applied: Config | None = None
    task_count: int | None = None
    consistent: bool = True


_DEFAULT: Final = TargetState.STARTED


class ConfigFold:
    """Takes records one by one. Not for several threads at once."""

    def __init__(self) -> None:
        self._offset = 0
        self._connectors: dict[str, _Connector] = {}
        self._held: dict[str, dict[int, Config]] = {}
        self._targets: dict[str, TargetState] = {}
        self._generations: dict[str, int] = {}
        self._count_records: dict[str, int] = {}
        self._pending_fencing: set[str] = set()
        self._session_key: SessionKey | None = None
        self._state: ConfigState | None = ConfigState()

    def state(self) -> ConfigState:
        if self._state is None:
            self._state = ConfigState(
                offset=self._offset,
                view=ClusterView({name: self._view(name, each) for name, each in self._connectors.items()}),
                task_counts={n: each.task_count for n, each in self._connectors.items() if each.task_count is not None},
                inconsistent=frozenset(name for name, each in self._connectors.items() if not each.consistent),
                generations=dict(self._generations),
                task_count_records=dict(self._count_records),
                pending_fencing=frozenset(self._pending_fencing),
                session_key=self._session_key,
            )
        return self._state

    def _view(self, name: str, connector: _Connector) -> ConnectorView:
        tasks = connector.tasks if connector.consistent else ()
        return ConnectorView(name, connector.config, self._targets.get(name, _DEFAULT), tasks, connector.applied)

    def ignore(self, offset: int) -> None:
        """A record without meaning was there."""
        self._offset = offset + 1
        self._state = None

    def apply(self, record: ConfigRecord, offset: int) -> ConfigEvent | None:
        """What to tell whoever listens, if anything."""
        self.ignore(offset)
        match record:
            case TargetStateRecord(connector, target):
                return self._target(connector, target)
            case ConnectorRecord(connector, config):
                return self._connector(connector, config)
            case TaskRecord(task, config):
                self._held.setdefault(task.connector, {})[task.task] = config
                return None
            case CommitRecord(connector, tasks):
                return self._commit(connector, tasks)
            case RestartRecord(request):
                return RestartRequested(request)
            case TaskCountRecord(connector, count):
                self._count(connector, count)
                return None
            case SessionKeyRecord(key):
                self._session_key = key
                return SessionKeyUpdated(key)
            case LoggerRecord(namespace, level):
                return LoggerLevelSet(namespace, level)

    def _target(self, connector: str, target: TargetState | None) -> ConfigEvent | None:
        known = connector in self._connectors
        if target is None:
            # Deleting a connector deletes its config, too: that is what is told.
            self._targets.pop(connector, None)
            if known:
                self._targets[connector] = _DEFAULT
            return None
        before = self._targets.get(connector)
        self._targets[connector] = target
        return TargetStateChanged(connector) if known and before is not target else None

    def _connector(self, name: str, config: Config | None) -> ConfigEvent:
        if config is None:
            self._forget(name)
            return ConnectorRemoved(name)
        known = self._connectors.get(name)
        if known is None:
            self._connectors[name] = _Connector(config)
            self._targets.setdefault(name, _DEFAULT)
        else:
            known.config = config
        return ConnectorUpdated(name)

    def _forget(self, name: str) -> None:
        """Its target state and task count record go with records of their own."""
        self._connectors.pop(name, None)
        self._held.pop(name, None)

    def _commit(self, name: str, count: int) -> ConfigEvent | None:
        connector = self._connectors.get(name)
        if connector is None:
            self._forget(name)  # left over from a connector that was deleted
            return None
        # Always cleared: after an incomplete set, only a completely new one counts.
        held = self._held.pop(name, {})
        applied: tuple[TaskId, ...] = ()
        # More than are asked for are no sign of trouble: compaction keeps the last config of tasks that are no more.
        if all(number in held for number in range(count)):
            connector.tasks = tuple(held[number] for number in range(count))
            connector.applied = connector.config
            connector.consistent = True
            self._generations[name] = self._generations.get(name, 0) + 1
            applied = tuple(TaskId(name, number) for number in range(count))
        else:
            connector.consistent = False
        connector.task_count = count
        self._pending_fencing.add(name)
        return TasksUpdated(name, applied)

    def _count(self, connector: str, count: int | None) -> None:
        if count is None:
            self._count_records.pop(connector, None)
        else:
            self._count_records[connector] = count
            self._pending_fencing.discard(connector)
