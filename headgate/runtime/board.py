"""The status board: every state that users see is written here, by the lifecycle's tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from headgate.log import masked
from headgate.model import ConnectorStatus, ConnectorType, Health, State, Status, TaskId, TaskStatus
from headgate.runtime import verdict
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.lifecycle import CONNECTOR, TASK, ImpossibleEvent, InstanceEvent, step
from headgate.runtime.ports import StatusStore

log = logging.getLogger(__name__)

_LIVE: Final = (State.UNASSIGNED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class StatusBoard:
    """Writes from the herder's thread; reads from any. What it writes tells no secrets."""

    _store: StatusStore
    worker_id: str
    _generation: Callable[[], int] = lambda: 0
    """The group's now: of two workers that claim a task, it tells who is right."""
    _now_ms: Callable[[], int] = lambda: round(time.time() * 1000)

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
            health = verdict.of_state(state, self._now_ms(), shown)
            self._store.put(what, Status(state, self.worker_id, shown, version, self._generation(), health))

    def watched(self, task: TaskId) -> State | None:
        """The state of a task that runs here, or is about to, as far as everybody knows: only then is there more to
        say about it than its state."""
        found = self._store.get(task)
        live = found is not None and found.worker_id == self.worker_id and found.state in _LIVE
        return found.state if found is not None and live else None

    def put_health(self, task: TaskId, health: Health) -> bool:
        """How a watched task fares. Whether it was told: not before everybody knows that it runs here."""
        current = self._store.get(task)
        if current is None or current.state is not State.RUNNING:
            return False
        told = replace(health, lag=None, rate=None)  # old by the time that somebody reads it
        self._store.put(task, replace(current, health=told, again=True))
        shown = self._store.get(task)
        return shown is not None and shown.health == told

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
