"""Steps: the transforms of a chain, each guarded by its predicate, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from headgate.api import Predicate, Record, Transform
from headgate.pipeline.failure import Stage
from headgate.pipeline.tolerance import attempt

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Step:
    transform: Transform[Any]
    predicate: Predicate[Any] | None = None
    negate: bool = False

    def apply(self, record: R) -> R | None:
        """The record as the transform leaves it, or as it came when the predicate spares it; None drops it."""
        if self.predicate is not None and self.predicate.test(record) == self.negate:
            return record
        changed: R | None = self.transform.apply(record)
        return changed

    def close(self) -> None:
        self.transform.close()
        if self.predicate is not None:
            self.predicate.close()


class Steps:
    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        # A transform without predicate is called without detour.
        self._calls: list[tuple[type, Callable[[Any], Any]]] = [
            (type(step.transform), step.transform.apply if step.predicate is None else step.apply) for step in steps
        ]

    def __bool__(self) -> bool:
        return bool(self._steps)

    def apply(self, record: R) -> R | None:
        """The record after all steps, or None when one dropped it. Raises StageFailed."""
        current: R | None = record
        for cls, call in self._calls:
            current = attempt(Stage.TRANSFORMATION, cls, call, current)
            if current is None:
                return None
        return current

    def close(self) -> None:
        for step in self._steps:
            step.close()
