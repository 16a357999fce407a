"""The stores in memory: configs and states of standalone mode.

Each holds one value and replaces it as a whole, so that a reader on any thread sees all of a change or nothing of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate.model import Config, Status, TargetState, TaskId
from headgate.runtime.view import ClusterView, ConnectorView


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


class MemoryStatusStore:
    def __init__(self) -> None:
        self._now: Mapping[str, Mapping[int | None, Status]] = {}
        """By connector; None: its own, a number: that of this task."""
        self._writing = threading.Lock()

    def get(self, whose: str | TaskId) -> Status | None:
        name, number = _place(whose)
        return self._now.get(name, {}).get(number)

    def tasks(self, name: str) -> Mapping[int, Status]:
        return {number: status for number, status in self._now.get(name, {}).items() if number is not None}

    def connectors(self) -> Iterable[str]:
        return tuple(name for name, statuses in self._now.items() if None in statuses)

    def put(self, whose: str | TaskId, status: Status) -> None:
        name, number = _place(whose)
        with self._writing:
            self._now = {**self._now, name: {**self._now.get(name, {}), number: status}}

    def remove(self, whose: str | TaskId) -> None:
        """A connector's tasks go with it."""
        name, number = _place(whose)
        with self._writing:
            others = {key: statuses for key, statuses in self._now.items() if key != name}
            left = {
                key: status for key, status in self._now.get(name, {}).items() if number is not None and key != number
            }
            self._now = {**others, name: left} if left else others


def _place(whose: str | TaskId) -> tuple[str, int | None]:
    return (whose, None) if isinstance(whose, str) else (whose.connector, whose.task)
