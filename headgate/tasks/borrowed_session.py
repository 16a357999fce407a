"""BorrowedSession: the worker's SparkSession as a task of a plugin uses it, and what follows when its JVM dies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from headgate.model import EngineUnavailable, TaskId
from headgate.tasks.control import Control
from headgate.tasks.ports import Engine

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(eq=False)
class BorrowedSession:
    """Used by the task's thread alone."""

    _engine: Engine
    _task: TaskId
    _control: Control
    used: bool = False
    """Only who uses Spark can lose it."""

    def get(self) -> Any:
        self.used = True
        return self._engine.session_for(self._task)

    def call(self, plugin: Callable[[], T], what: str) -> T:
        """What the plugin gives; called again each time that the session was lost. Raises EngineUnavailable when there
        will be none, or the task is to stop."""
        while True:
            try:
                return plugin()
            except Exception as error:
                lost = self.lost(error)
                if lost is None:
                    raise
                log.warning("%s is tried again when there is a new session: %s", what, lost)
                self._engine.ready(lambda: self._control.stopping)

    def lost(self, error: Exception) -> EngineUnavailable | None:
        """What an exception out of the plugin means, if it means that there is no session any more."""
        explained = self._engine.explain(error) if self.used else error
        return explained if isinstance(explained, EngineUnavailable) else None
