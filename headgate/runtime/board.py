"""The status board: every state that users see is written here, by the lifecycle's tables."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from headgate.log import masked
from headgate.model import ConnectorStatus, ConnectorType, State, Status, TaskId, TaskStatus
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.lifecycle import CONNECTOR, TASK, ImpossibleEvent, InstanceEvent, step
from headgate.runtime.ports import StatusStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StatusBoard:
    """Writes from the herder's thread; reads from any. What it writes tells no secrets."""

    _store: StatusStore
    worker_id: str
    _generation: Callable[[], int] = lambda: 0
    """The group's now: of two workers that claim a task, it tells who is right."""

    def put(
        self, what: str | TaskId, event: InstanceEvent, trace: str | None = None, version: str | None = None
    ) -> None:
        """This happened to a connector or a task."""
        kind, table = ("task", TASK) if isinstance(what, TaskId) else ("connector", CONNECTOR)
        current = self._store.get(what)
        try:
            state = step(table, current.state if current else State.UNASSIGNED, event)
        except ImpossibleEvent as error:
            log.error("Status of %s %s left as it is: %s", kind, what, error)
            return
        if current is not None and current.state is state is State.STOPPED and event is not InstanceEvent.STOP:
            return  # what is stopped stays so, whoever has it
        if state is State.DESTROYED:
            self._store.remove(what)
        else:
            shown = masked(trace) if trace else trace
            self._store.put(what, Status(state, self.worker_id, shown, version, self._generation()))

    def status(self, name: str, kind: ConnectorType) -> ConnectorStatus:
        connector = self._store.get(name)
        if connector is None:
            raise StatusNotFound(f"No status found for connector {name}")
        tasks = tuple(TaskStatus(number, status) for number, status in sorted(self._store.tasks(name).items()))
        return ConnectorStatus(name, connector, tasks, kind)

    def task_status(self, task: TaskId) -> Status:
        status = self._store.get(task)
        if status is None:
            raise StatusNotFound(f"No status found for task {task}")
        return status
