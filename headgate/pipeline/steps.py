"""Steps: the transforms of a chain, each guarded by its predicate, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from headgate.api import ConnectError, Predicate, Record, Transform
from headgate.api.transform import EVERYTHING
from headgate.pipeline.columns.frame import ByColumns, DecidesByColumns, Frame
from headgate.pipeline.failure import Stage, class_name
from headgate.pipeline.tolerance import StageFailed
from headgate.pipeline.transforms.sql import Sql

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

    @property
    def uses(self) -> frozenset[str]:
        """The parts of a record that it looks at. Raises ConnectError."""
        found = _uses(self.transform, "apply")
        if self.predicate is not None:
            found |= _uses(self.predicate, "test")
        if not found <= EVERYTHING:
            unknown = ", ".join(sorted(found - EVERYTHING))
            raise ConnectError(
                f"{class_name(type(self.transform))} or its predicate uses what no record has: {unknown}"
            )
        return found

    @property
    def by_columns(self) -> bool:
        """Whether it knows how to take columns."""
        predicate = self.predicate
        return _said_of(type(self.transform), "apply_to_columns", "apply") and (
            predicate is None or _said_of(type(predicate), "test_columns", "test")
        )

    def apply_to_columns(self, frame: Frame) -> Frame | None:
        """The same for a frame. Raises NotByColumns."""
        if self.predicate is not None and cast(DecidesByColumns, self.predicate).test_columns(frame) == self.negate:
            return frame
        return cast(ByColumns, self.transform).apply_to_columns(frame)

    def close(self) -> None:
        self.transform.close()
        if self.predicate is not None:
            self.predicate.close()


def _uses(plugin: Transform[Any] | Predicate[Any], method: str) -> frozenset[str]:
    return plugin.uses if _said_of(type(plugin), "uses", method) else EVERYTHING


def _said_of(cls: type, name: str, method: str) -> bool:
    """Whether this name was given to the method that the class has. One that a derived class has instead may do
    something else with records."""
    for each in cls.__mro__:
        if name in vars(each):
            return True
        if method in vars(each):
            return False
    return False


class Steps:
    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.cut = bool(steps) and isinstance(steps[-1].transform, Sql)
        """Whether the last step is a statement, which is not for single records: the chain is cut there."""
        by_record = steps[:-1] if self.cut else steps
        # A transform without predicate is called without detour.
        self._calls: list[tuple[type, Callable[[Any], Any]]] = [
            (type(step.transform), step.transform.apply if step.predicate is None else step.apply) for step in by_record
        ]

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def uses(self) -> frozenset[str]:
        """The parts of a record that they look at. Raises ConnectError."""
        return frozenset().union(*(step.uses for step in self._steps))

    @property
    def by_columns(self) -> bool:
        """Whether all of them know how to take columns."""
        return all(step.by_columns for step in self._steps)

    def apply(self, record: R) -> R | None:
        """The record after all steps before a statement, or None when one dropped it. Raises StageFailed."""
        current: R | None = record
        cls: type = Record
        try:
            for cls, call in self._calls:  # noqa: B007
                current = call(current)
                if current is None:
                    return None
        except Exception as error:
            raise StageFailed(Stage.TRANSFORMATION, cls, error) from error
        return current

    def apply_to_columns(self, frame: Frame) -> Frame | None:
        """The same for a frame, if they can. Raises NotByColumns."""
        current: Frame | None = frame
        for step in self._steps:
            current = step.apply_to_columns(current) if current is not None else None
        return current

    def close(self) -> None:
        for step in self._steps:
            step.close()
