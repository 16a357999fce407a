"""ClusterView: all connectors with their configs, tasks and wanted states, as one value that never changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate.model import Config, TargetState, TaskId
from headgate.runtime.errors import ConnectorNotFound, TaskNotFound


@dataclass(frozen=True, slots=True)
class ConnectorView:
    name: str
    config: Config
    target: TargetState = TargetState.STARTED
    tasks: tuple[Config, ...] = ()
    applied: Config | None = None
    """The connector's config when its tasks were last published."""

    @property
    def never_resumed(self) -> bool:
        """It was created paused or stopped, and not resumed since (KIP-980): it has never had a set of tasks, not even
        an empty one, and makes none before it is resumed."""
        return self.target is not TargetState.STARTED and self.applied is None

    @property
    def task_ids(self) -> tuple[TaskId, ...]:
        return tuple(TaskId(self.name, number) for number in range(len(self.tasks)))


@dataclass(frozen=True, slots=True)
class ClusterView:
    connectors: Mapping[str, ConnectorView] = field(default_factory=dict)

    @classmethod
    def of(cls, *connectors: ConnectorView) -> ClusterView:
        return cls({each.name: each for each in connectors})

    def get(self, name: str) -> ConnectorView | None:
        return self.connectors.get(name)

    def require(self, name: str) -> ConnectorView:
        found = self.connectors.get(name)
        if found is None:
            raise ConnectorNotFound(name)
        return found

    def has_task(self, task: TaskId) -> bool:
        connector = self.connectors.get(task.connector)
        return connector is not None and 0 <= task.task < len(connector.tasks)

    def require_task(self, task: TaskId) -> Config:
        tasks = self.require(task.connector).tasks
        if not self.has_task(task):
            raise TaskNotFound(task)
        return tasks[task.task]

    def with_connector(self, connector: ConnectorView) -> ClusterView:
        return replace(self, connectors={**self.connectors, connector.name: connector})

    def without(self, name: str) -> ClusterView:
        return replace(self, connectors={key: value for key, value in self.connectors.items() if key != name})
