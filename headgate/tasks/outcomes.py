"""Outcomes: what came back from the engine. Failures are told; what is to be tried again is, after its pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.model import Offset, Partition
from headgate.tasks.control import Control
from headgate.tasks.ports import Clock
from headgate.tasks.reporter import Reporter
from headgate.tasks.waiting import result_of

if TYPE_CHECKING:
    from headgate.pipeline.blob import Packed, Result
    from headgate.pipeline.failure import Failure

Place = tuple["Partition | None", "Offset | None"]
"""Where a record of a source came from."""


class Outcomes:
    def __init__(
        self,
        reporter: Reporter,
        control: Control,
        clock: Clock,
        submit: Callable[[bytes], Future[list[Packed]]],
        pause: Callable[[float], None],
    ) -> None:
        """`submit` gives a blob to the engine; `pause` waits, and raises when the task shall end."""
        self._reporter = reporter
        self._control = control
        self._clock = clock
        self._submit = submit
        self._pause = pause

    def of(self, packed: Packed, place: Callable[[int], Place | None] = lambda _: None) -> Iterator[Result]:
        """The result of a blob, and then those of what it left undone. `place` knows, for a row of the blob, where
        its record came from, if the record does not."""
        from headgate.pipeline.blob import unpack

        first, began = 0, 0.0
        while True:
            result = unpack(packed)
            for failure in result.failures:
                self._reporter.failed(_placed(failure, place(first + failure.row)))
            yield result
            rest = result.rest
            if rest is None:
                return
            if rest.attempts == 1:
                began = self._clock.now()
            self._reporter.retried()
            self._pause(rest.delay_ms / 1000)
            packed = result_of(self._submit(rest.blob((self._clock.now() - began) * 1000)), self._control)[0]
            first += rest.row


def _placed(failure: Failure, place: Place | None) -> Failure:
    from headgate.pipeline.failure import PolledRecord

    if place is None or not isinstance(failure.record, PolledRecord):
        return failure
    return replace(failure, record=failure.record._replace(source_partition=place[0], source_offset=place[1]))
