"""The status board: every state that users see is written here, by the lifecycle's tables."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headgate.log import masked
from headgate.model import ConnectorStatus, ConnectorType, State, Status, TaskId, TaskStatus
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.lifecycle import CONNECTOR, TASK, ImpossibleEvent, InstanceEvent, step
from headgate.runtime.ports import StatusStore

log = logging.getLogger(__name__)


class StatusBoard:
    """Writes from the herder's thread; reads from any. What it writes tells no secrets."""

    def __init__(self, store: StatusStore, worker_id: str, generation: Callable[[], int] = lambda: 0) -> None:
        """`generation` is the group's now: of two workers that claim a task, it tells who is right."""
        self._store = store
        self.worker_id = worker_id
        self._generation = generation

    def put(
        self, what: str | TaskId, event: InstanceEvent, trace: str | None = None, version: str | None = None
    ) -> None:
        """This happened to a connector or a task."""
        of_task = isinstance(what, TaskId)
        current = self._store.task(what) if isinstance(what, TaskId) else self._store.connector(what)
        try:
            state = step(TASK if of_task else CONNECTOR, current.state if current else State.UNASSIGNED, event)
        except ImpossibleEvent as error:
            log.error("Status of %s %s left as it is: %s", "task" if of_task else "connector", what, error)
            return
        status = None if state is State.DESTROYED else self._status(state, trace, version)
        if isinstance(what, TaskId):
            self._store.remove_task(what) if status is None else self._store.put_task(what, status)
        else:
            self._store.remove_connector(what) if status is None else self._store.put_connector(what, status)

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
