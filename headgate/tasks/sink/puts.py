"""Puts: what the pipeline made of a batch, given to the sink task, again and again where that is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.api.errors import RetriableError
from headgate.api.task import Form, FrameSinkTask, SinkTask, TableSinkTask
from headgate.log import cause_of
from headgate.metrics import SinkMetrics
from headgate.pipeline.blob import Packed, Result
from headgate.pipeline.shelf import Shelf
from headgate.tasks.control import StartOver
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.ports import Clock, Engine
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.statements import Statements

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_RETRY_S: Final = 1.0
_PUT: Final = "put()"


@dataclass(frozen=True, slots=True, eq=False)
class Puts:
    """Used by the task's thread alone."""

    _task: SinkTask | TableSinkTask | FrameSinkTask
    _engine: Engine
    _statements: Statements
    _outcomes: Outcomes
    _context: RuntimeSinkContext
    _metrics: SinkMetrics
    _clock: Clock
    _wait: Callable[[float], None]
    """Sits out a pause before something is tried again; it raises when there is nothing to try any more."""

    def results(self, packed: Iterable[Packed], shelf: Shelf | None) -> None:
        """What the pipeline made of the blobs of a batch. Raises JobFailed, and StartOver when the task wants to go
        elsewhere before it has all of it."""
        made = (result for data in packed for result in self._outcomes.of(data))
        results = self._statements.after(made, self._outcomes, shelf)
        if isinstance(self._task, FrameSinkTask) and self._task.form is not Form.TYPED:
            import pyarrow as pa

            tables = [result.table() for result in results]
            if tables:  # a statement may leave nothing
                table = pa.concat_tables(tables)
                self.content(lambda: self._engine.frame(table), table.num_rows)
            return
        for result in results:
            if self._context.wished:
                raise StartOver("the task wants to go elsewhere in the middle of a batch")
            if not isinstance(self._task, SinkTask) and self._task.form is Form.TYPED:
                self._put_typed(self._task, result)
                continue
            content = result.records() if isinstance(self._task, SinkTask) else result.table()
            self.content(lambda content=content: content, result.count)  # type: ignore[misc]

    def _put_typed(self, task: TableSinkTask | FrameSinkTask, result: Result) -> None:
        shown = self._engine.frame if isinstance(task, FrameSinkTask) else _as_it_is
        for typed in result.typed().tables:
            task.key_schema, task.value_schema = typed.key_schema, typed.value_schema
            self.content(partial(shown, typed.table), typed.table.num_rows)

    def content(self, content: Callable[[], Any], count: int) -> None:
        """The same again after RetriableError, or when the session that the task uses has died, until it goes, or the
        task is asked to stop, or partitions go."""
        while True:
            began = self._clock()
            activity = self._metrics.activity
            activity.enter(_PUT)
            try:
                self._context.session.call(lambda: self._task.put(content()), _PUT)
                activity.goes(_PUT)
                break
            except RetriableError as error:
                self._metrics.errors.retries += 1
                activity.fails(_PUT, cause_of(error))
                pause = self._context.take_timeout(_RETRY_S)
                log.warning("put() failed and is tried again in %.1f s: %s", pause, error)
                self._wait(pause)
        self._metrics.put_ms.add((self._clock() - began) * 1000)
        self._metrics.sent.add(count)


def _as_it_is(table: pa.Table) -> pa.Table:
    return table
