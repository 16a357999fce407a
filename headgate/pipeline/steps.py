"""Steps: the transforms of a chain, each guarded by its predicate, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError, Predicate, Record, Transform
from headgate.api.frame import ByColumns, DecidesByColumns, Frame
from headgate.api.transform import EVERYTHING
from headgate.pipeline.columns.refused_rows import RefusedRows
from headgate.pipeline.failure import Stage, class_name
from headgate.pipeline.inherited import said_of
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
        return said_of(type(self.transform), "apply_to_columns", "apply") and (
            predicate is None or said_of(type(predicate), "test_columns", "test")
        )

    def apply_to_columns(self, frame: Frame, refused: RefusedRows) -> Iterator[Frame]:
        """The same for a frame, in one or several, without the records that are refused."""
        asked = refused.accepted(frame, self._chosen)
        if asked is None:
            return
        frame, mask = asked
        chosen, spared = frame.split(mask) if mask is not None else (frame, None)
        if spared is not None:
            yield spared
        done = None if chosen is None else refused.accepted(chosen, self._changed)
        if done is not None:
            yield from done[1]

    def _chosen(self, frame: Frame) -> pa.Array | None:
        """A mask of the records that it is applied to; None: to all. Raises NotByColumns."""
        if self.predicate is None:
            return None
        answer = cast(DecidesByColumns, self.predicate).test_columns(frame)
        if isinstance(answer, bool):
            return None if answer != self.negate else pa.repeat(pa.scalar(value=False), frame.count)
        return pc.invert(answer) if self.negate else answer

    def _changed(self, frame: Frame) -> list[Frame]:
        """Raises NotByColumns."""
        made = cast(ByColumns, self.transform).apply_to_columns(frame)
        if made is None:
            return []
        return [made] if isinstance(made, Frame) else list(made)

    def close(self) -> None:
        self.transform.close()
        if self.predicate is not None:
            self.predicate.close()


def _uses(plugin: Transform[Any] | Predicate[Any], method: str) -> frozenset[str]:
    return plugin.uses if said_of(type(plugin), "uses", method) else EVERYTHING


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

    @cached_property
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

    def outcomes(self, records: Iterable[R]) -> list[R | StageFailed | None]:
        """What `apply` gives for each of them, up to the first that fails."""
        found: list[R | StageFailed | None] = []
        try:
            found.extend(map(self.apply, records))
        except StageFailed as failed:
            found.append(failed)
        return found

    def apply_to_columns(self, frame: Frame, refused: RefusedRows) -> list[Frame]:
        """The same for a frame, if they can: one or several, without the records that were dropped or refused."""
        current = [frame]
        for step in self._steps:
            current = [made for each in current for made in step.apply_to_columns(each, refused)]
        return current

    def close(self) -> None:
        for step in self._steps:
            step.close()
