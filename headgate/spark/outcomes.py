"""Outcomes: what came back from Spark for a task. Failures are told; what is to be tried again is, after its pause."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.model import Offset, Partition
from headgate.spark.reporter import Reporter

if TYPE_CHECKING:
    from headgate.pipeline.blob import Result
    from headgate.pipeline.failure import Failure

Place = tuple["Partition | None", "Offset | None"]
"""Where a record of a source came from."""


class Outcomes:
    def __init__(self, reporter: Reporter, run: Callable[[bytes], bytes], pause: Callable[[float], None]) -> None:
        """`run` gives a blob to Spark and waits for its result; `pause` waits, and raises when the task shall end."""
        self._reporter = reporter
        self._run = run
        self._pause = pause

    def of(self, packed: bytes, place: Callable[[int], Place | None] = lambda _: None) -> Iterator[Result]:
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
                began = time.monotonic()
            self._reporter.retried()
            self._pause(rest.delay_ms / 1000)
            packed = self._run(rest.blob((time.monotonic() - began) * 1000))
            first += rest.row


def _placed(failure: Failure, place: Place | None) -> Failure:
    from headgate.pipeline.failure import Polled

    if place is None or not isinstance(failure.record, Polled):
        return failure
    return replace(failure, record=failure.record._replace(source_partition=place[0], source_offset=place[1]))
