"""Outcomes: what came back from the engine. Failures are told; what is to be tried again is, after its pause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from headgate.model import Offset, Partition, TaskId
from headgate.pipeline.blob import Packed, Result, unpack
from headgate.pipeline.failure import Failure, PolledRecord
from headgate.tasks.control import Control
from headgate.tasks.ports import Clock, Engine
from headgate.tasks.reporter import Reporter
from headgate.tasks.waiting import result_of

Place = tuple[Partition | None, Offset | None]
"""Where a record of a source came from."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Of one task."""

    _task: TaskId
    _reporter: Reporter
    _control: Control
    _engine: Engine
    _clock: Clock
    _pause: Callable[[float], None]
    """Waits, and raises when the task shall end."""
    _by_records: Counter[str] = field(default_factory=Counter)
    """Counts them, by reason."""

    def of(self, packed: Packed, place: Callable[[int], Place | None] = lambda _: None) -> Iterator[Result]:
        """The result of a blob, and then those of what it left undone. `place` knows, for a row of the blob, where
        its record came from, if the record does not."""
        first, began = 0, 0.0
        while True:
            result = unpack(packed)
            self._by_records.update(result.by_records)
            for failure in result.failures:
                self._reporter.failed(_placed(failure, place(first + failure.row)))
            yield result
            rest = result.rest
            if rest is None:
                return
            if rest.attempts == 1:
                began = self._clock()
            self._reporter.retried()
            self._pause(rest.delay_ms / 1000)
            blob = rest.blob((self._clock() - began) * 1000)
            packed = result_of(self._engine.submit(self._task, [blob]), self._control)[0]
            first += rest.row


def _placed(failure: Failure, place: Place | None) -> Failure:
    if place is None or not isinstance(failure.record, PolledRecord):
        return failure
    return replace(failure, record=failure.record._replace(source_partition=place[0], source_offset=place[1]))
