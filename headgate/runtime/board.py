"""The status board: every state that users see is written here, by the lifecycle's tables."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headgate.log import masked
from headgate.model import ConnectorStatus, ConnectorType, State, Status, TaskId, TaskStatus
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.lifecycle import CONNECTOR, TASK, Event, IllegalTransition, step
from headgate.runtime.ports import StatusStore

log = logging.getLogger(__name__)


class StatusBoard:
    """Writes from the herder's thread; reads from any. What it writes tells no secrets."""

    def __init__(self, store: StatusStore, worker_id: str, generation: Callable[[], int] = lambda: 0) -> None:
        """`generation` is the group's now: of two workers that claim a task, it tells who is right."""
        self._store = store
        self.worker_id = worker_id
        self._generation = generation

    def connector(self, name: str, event: Event, trace: str | None = None, version: str | None = None) -> None:
        current = self._store.connector(name)
        try:
            state = step(CONNECTOR, current.state if current else State.UNASSIGNED, event)
        except IllegalTransition as error:
            log.error("Status of connector %s left as it is: %s", name, error)
            return
        if state is State.DESTROYED:
            self._store.remove_connector(name)
        else:
            self._store.put_connector(name, self._status(state, trace, version))

    def task(self, task: TaskId, event: Event, trace: str | None = None, version: str | None = None) -> None:
        current = self._store.task(task)
        try:
            state = step(TASK, current.state if current else State.UNASSIGNED, event)
        except IllegalTransition as error:
            log.error("Status of task %s left as it is: %s", task, error)
            return
        if state is State.DESTROYED:
            self._store.remove_task(task)
        else:
            self._store.put_task(task, self._status(state, trace, version))

    def _status(self, state: State, trace: str | None, version: str | None) -> Status:
        return Status(state, self.worker_id, masked(trace) if trace else trace, version, self._generation())

    def status(self, name: str, kind: ConnectorType) -> ConnectorStatus:
        connector = self._store.connector(name)
        if connector is None:
            raise StatusNotFound(f"No status found for connector {name}")
        tasks = tuple(TaskStatus(number, status) for number, status in sorted(self._store.tasks(name).items()))
        return ConnectorStatus(name, connector, tasks, kind)

    def task_status(self, task: TaskId) -> Status:
        status = self._store.task(task)
        if status is None:
            raise StatusNotFound(f"No status found for task {task}")
        return status
