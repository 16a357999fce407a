"""Statements: the Sql transforms of a task, run by the engine between two parts of its chain.

What the first part gave comes back to the worker, becomes the table `records` of the statement, and what the statement
makes of it goes on through the next part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from headgate.model import TaskId
from headgate.pipeline.blob import Job, Result, pack
from headgate.pipeline.shelf import drop
from headgate.tasks.control import Control
from headgate.tasks.outcomes import Outcomes, Place
from headgate.tasks.ports import Engine, StatementRunner
from headgate.tasks.waiting import insist, result_of

if TYPE_CHECKING:
    from headgate.pipeline.shelf import Shelf

Where: TypeAlias = "Callable[[int], Place | None]"
"""Of a row of a blob, where it came from; see Outcomes."""


class Statements:
    """Of one task. Used by the thread that puts or sends what the engine gave."""

    def __init__(self, runner: StatementRunner, task: TaskId, engine: Engine, control: Control) -> None:
        self.first = runner.first
        """The chain up to the first statement, or all of it."""
        self._runner = runner
        self._task = task
        self._engine = engine
        self._control = control

    def __bool__(self) -> bool:
        return len(self._runner) > 0

    def after(
        self, results: Iterable[Result], outcomes: Outcomes, shelf: Shelf | None, place: Where = lambda _: None
    ) -> Iterable[Result]:
        """What the whole chain gives, from what its first part gave. Raises StatementFailed, JobFailed."""
        for index in range(len(self._runner)):
            tables = [table for table in (result.table() for result in results) if table.num_rows]
            select = partial(self._runner.select, index, tables, shelf)
            jobs = insist(select, self._engine, self._control) if tables else []
            results = self._continued(jobs, outcomes, place)
        return results

    def _continued(self, jobs: Sequence[Job], outcomes: Outcomes, place: Where) -> Iterator[Result]:
        packed = result_of(self._engine.submit(self._task, [pack(job) for job in jobs]), self._control)
        for data, job in zip(packed, jobs, strict=True):
            drop(job.payload)
            yield from outcomes.of(data, place)

    def close(self) -> None:
        self._runner.close()
