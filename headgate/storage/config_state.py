"""The config topic, folded: what all its records, in their order, say about the cluster.

Compaction may have taken any record that a later one of the same key replaces. Task configs therefore count only when a
commit finds all of them; until then the connector is inconsistent and has no tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.model import Config, LevelChange, RestartRequest, SessionKey, TargetState
from headgate.runtime.view import ClusterView, ConnectorView
from headgate.storage.config_records import (
    CommitRecord,
    ConfigRecord,
    ConnectorRecord,
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
    """Count the sets of task configs seen since the start: equal numbers, equal task configs."""
    task_count_records: Mapping[str, int] = field(default_factory=dict)
    pending_fencing: frozenset[str] = frozenset()
    """KIP-618: connectors with a commit after their last task count record."""
    session_key: SessionKey | None = None


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

    @property
    def offset(self) -> int:
        """The next one to read."""
        return self._offset

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

    def left_behind(self, name: str) -> bool:
        """Whether there is a target state, but no connector of this name."""
        return name in self._targets and name not in self._connectors

    def ignore(self, offset: int) -> None:
        """A record without meaning was there."""
        self._offset = offset + 1
        self._state = None

    def apply(self, record: ConfigRecord, offset: int) -> bool:
        """Whether whoever listens has to hear of it."""
        self.ignore(offset)
        match record:
            case TargetStateRecord(connector, target):
                return self._target(connector, target)
            case ConnectorRecord(connector, config):
                return self._connector(connector, config)
            case TaskRecord(task, config):
                self._held.setdefault(task.connector, {})[task.task] = config
                return False
            case CommitRecord(connector, tasks):
                return self._commit(connector, tasks)
            case TaskCountRecord(connector, count):
                self._count(connector, count)
                return False
            case SessionKey():
                self._session_key = record
                return True
            case RestartRequest() | LevelChange():
                return True

    def _target(self, connector: str, target: TargetState | None) -> bool:
        known = connector in self._connectors
        if target is None:
            # Deleting a connector deletes its config, too: that is what is told.
            self._targets.pop(connector, None)
            if known:
                self._targets[connector] = _DEFAULT
            return False
        before = self._targets.get(connector)
        self._targets[connector] = target
        return known and before is not target

    def _connector(self, name: str, config: Config | None) -> bool:
        if config is None:
            self._forget(name)
        elif name in self._connectors:
            self._connectors[name].config = config
        else:
            self._connectors[name] = _Connector(config)
            self._targets.setdefault(name, _DEFAULT)
        return True

    def _forget(self, name: str) -> None:
        """Its target state and task count record go with records of their own."""
        self._connectors.pop(name, None)
        self._held.pop(name, None)

    def _commit(self, name: str, count: int) -> bool:
        connector = self._connectors.get(name)
        if connector is None:
            self._forget(name)  # left over from a connector that was deleted
            return False
        # Always cleared: after an incomplete set, only a completely new one counts.
        held = self._held.pop(name, {})
        # More than are asked for are no sign of trouble: compaction keeps the last config of tasks that are no more.
        connector.consistent = all(number in held for number in range(count))
        if connector.consistent:
            connector.tasks = tuple(held[number] for number in range(count))
            connector.applied = connector.config
            self._generations[name] = self._generations.get(name, 0) + 1
        connector.task_count = count
        self._pending_fencing.add(name)
        return True

    def _count(self, connector: str, count: int | None) -> None:
        if count is None:
            self._count_records.pop(connector, None)
        else:
            self._count_records[connector] = count
            self._pending_fencing.discard(connector)
