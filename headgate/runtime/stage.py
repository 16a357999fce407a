"""What the herder is doing, for messages to callers who waited too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class HerderStage:
    description: str
    began: datetime
    completed: datetime | None = None

    def summary(self) -> str:
        began = _instant(self.began)
        if self.completed is None:
            return f"The worker is currently {self.description}, which began at {began}."
        return (
            f"The last operation the worker completed was {self.description}, which began at {began}"
            f" and completed at {_instant(self.completed)}."
        )


class Stages:
    """Several operations may run at once; the one that has lasted longest is the one to name."""

    def __init__(self) -> None:
        self._current: list[HerderStage] = []
        self._last: HerderStage | None = None

    @contextmanager
    def doing(self, description: str) -> Iterator[None]:
        stage = HerderStage(description, datetime.now(UTC))
        self._current = [*self._current, stage]
        try:
            yield
        finally:
            self._current = [each for each in self._current if each is not stage]
            self._last = HerderStage(stage.description, stage.began, datetime.now(UTC))

    @property
    def summary(self) -> str | None:
        stage = self._current[0] if self._current else self._last
        return stage.summary() if stage else None


def _instant(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
