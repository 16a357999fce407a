"""A resident: a Spark task that stays. It calls the driver, takes blobs, runs the pipeline, gives results."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headgate.spark.line import Invitation


@dataclass(frozen=True, slots=True)
class Reside:
    """What a Spark task of one partition runs, on an executor; it gives the number of blobs that it was given."""

    invitation: Invitation

    def __call__(self, _: Iterable[object]) -> Iterator[int]:
        from headgate.pipeline import blob as job
        from headgate.spark import range_part

        line = self.invitation.accept()
        count = 0
        try:
            gc.collect()
            gc.freeze()  # what was imported stays
            while (blob := line.receive()) is not None:
                with uncollected():
                    line.send((range_part if range_part.is_part(blob) else job).run(blob))
                count += 1
        finally:
            line.close()
        yield count


@contextmanager
def uncollected() -> Iterator[None]:
    """On an executor: a batch is a hundred thousand objects without cycles that all go at its end. Looking for cycles
    among them costs time and finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
