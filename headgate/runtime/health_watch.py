"""HealthWatch: looks at the tasks that run here, about once a second, and lets the board tell what is new of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from headgate.log import masked
from headgate.model import Health, TaskFacts, TaskId
from headgate.runtime import verdict
from headgate.runtime.board import StatusBoard
from headgate.runtime.worker import Worker

_EVERY_S: Final = 1.0
_SLOWEST_S: Final = 5.0
_SHARE: Final = 200
"""To look at very many tasks takes long: it may be one part of so many of the time, if that is often enough."""


@dataclass(eq=False)
class HealthWatch:
    """`look` on the herder's thread; `here` is read from any."""

    _worker: Worker
    _board: StatusBoard
    _now_ms: Callable[[], int] = lambda: round(time.time() * 1000)
    _clock: Callable[[], float] = time.monotonic
    here: Mapping[TaskId, Health] = field(default_factory=dict)
    """How the tasks of this worker fared a moment ago, with figures. It is replaced, never changed."""
    _told: dict[TaskId, tuple[Health, int]] = field(default_factory=dict)

    def look(self) -> float:
        """And after how many seconds to look again."""
        began = self._clock()
        self._look(self._now_ms())
        return min(max(_EVERY_S, _SHARE * (self._clock() - began)), _SLOWEST_S)

    def _look(self, now: int) -> None:
        seen = {
            task: verdict.of_task(self.here.get(task), state, _discreet(facts), now)
            for task, facts in self._worker.facts().items()
            if (state := self._board.watched(task)) is not None
        }
        for task, health in seen.items():
            told, when = self._told.get(task, (None, 0))
            if verdict.news(told, health, when, now) and self._board.put_health(task, health):
                self._told[task] = health, now
        self._told = {task: told for task, told in self._told.items() if task in seen}
        self.here = seen


def _discreet(facts: TaskFacts) -> TaskFacts:
    """What plugins say may have secrets in it."""
    if facts.trouble is None and facts.last_error is None:
        return facts
    trouble, error = (masked(text) if text else text for text in (facts.trouble, facts.last_error))
    return replace(facts, trouble=trouble, last_error=error)
