"""The stores in memory: configs and states of standalone mode, and doubles for tests.

Each holds one value and replaces it as a whole, so that a reader on any thread sees all of a change or nothing of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.model import Config, Offset, Partition, Status, TargetState, TaskId
from headgate.runtime.view import ClusterView, ConnectorView
from headgate.storage.offset_table import OffsetTable


class MemoryConfigStore:
    def __init__(self) -> None:
        self._view = ClusterView()
        self._writing = threading.Lock()

    def view(self) -> ClusterView:
        return self._view

    def put_connector(self, name: str, config: Config, target: TargetState | None = None) -> None:
        """A new connector without target state is STARTED; one that exists keeps its target state and tasks."""
        with self._writing:
            known = self._view.get(name) or ConnectorView(name, {})
            self._view = self._view.with_connector(
                replace(known, config=dict(config), target=known.target if target is None else target)
            )

    def remove_connector(self, name: str) -> None:
        with self._writing:
            self._view = self._view.without(name)

    def put_tasks(self, name: str, configs: Sequence[Config]) -> None:
        """Raises ConnectorNotFound."""
        with self._writing:
            known = self._view.require(name)
            tasks = tuple(dict(each) for each in configs)
            self._view = self._view.with_connector(replace(known, tasks=tasks, applied=known.config))

    def put_target_state(self, name: str, target: TargetState) -> None:
        """Raises ConnectorNotFound."""
        with self._writing:
            self._view = self._view.with_connector(replace(self._view.require(name), target=target))


@dataclass(frozen=True, slots=True)
class _Statuses:
    connectors: Mapping[str, Status] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[int, Status]] = field(default_factory=dict)


class MemoryStatusStore:
    def __init__(self) -> None:
        self._now = _Statuses()
        self._writing = threading.Lock()

    def connector(self, name: str) -> Status | None:
        return self._now.connectors.get(name)

    def task(self, task: TaskId) -> Status | None:
        return self.tasks(task.connector).get(task.task)

    def tasks(self, name: str) -> Mapping[int, Status]:
        return self._now.tasks.get(name, {})

    def connectors(self) -> Iterable[str]:
        return tuple(self._now.connectors)

    def put_connector(self, name: str, status: Status) -> None:
        with self._writing:
            self._now = replace(self._now, connectors={**self._now.connectors, name: status})

    def put_task(self, task: TaskId, status: Status) -> None:
        with self._writing:
            tasks = {**self.tasks(task.connector), task.task: status}
            self._now = replace(self._now, tasks={**self._now.tasks, task.connector: tasks})

    def remove_connector(self, name: str) -> None:
        """Its tasks go with it."""
        with self._writing:
            self._now = _Statuses(
                {key: status for key, status in self._now.connectors.items() if key != name},
                {key: tasks for key, tasks in self._now.tasks.items() if key != name},
            )

    def remove_task(self, task: TaskId) -> None:
        with self._writing:
            left = {number: status for number, status in self.tasks(task.connector).items() if number != task.task}
            tasks = {key: value for key, value in self._now.tasks.items() if key != task.connector}
            self._now = replace(self._now, tasks={**tasks, task.connector: left} if left else tasks)


class MemoryOffsetStore:
    def __init__(self) -> None:
        self._table = OffsetTable()
        self._writing = threading.Lock()

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        return self._table.get(connector, partitions)

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        return self._table.all(connector)

    def put(self, connector: str, offsets: Sequence[tuple[Partition | None, Offset | None]]) -> None:
        with self._writing:
            self._table = self._table.changed(connector, offsets)
