"""Puts: what the pipeline made of a batch, given to the sink task, again and again where that is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.errors import RetriableError
from headgate.api.task import Form, FrameSinkTask, SinkTask, TableSinkTask
from headgate.log import cause_of
from headgate.metrics import SinkMetrics
from headgate.model import EngineUnavailable
from headgate.pipeline.blob import Packed, Result
from headgate.pipeline.shelf import Shelf
from headgate.tasks.control import Control, StartOver
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.ports import Clock, Engine
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.statements import Statements

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
    _control: Control
    _clock: Clock
    _wait: Callable[[float], None]
    """Sits out a pause before something is tried again; it raises when there is nothing to try any more."""

    def results(self, packed: Iterable[Packed], shelf: Shelf | None) -> None:
        """What the pipeline made of the blobs of a batch. Raises JobFailed, and StartOver when the task wants to go
        elsewhere before it has all of it."""
        made = (result for data in packed for result in self._outcomes.of(data))
        results = self._statements.after(made, self._outcomes, shelf)
        if isinstance(self._task, FrameSinkTask):
            import pyarrow as pa

            tables = [result.table() for result in results]
            if tables:  # a statement may leave nothing
                table = pa.concat_tables(tables)
                self.content(lambda: self._engine.frame(table), table.num_rows)
            return
        for result in results:
            if self._context.wished:
                raise StartOver("the task wants to go elsewhere in the middle of a batch")
            if isinstance(self._task, TableSinkTask) and self._task.form is Form.TYPED:
                self._put_typed(self._task, result)
                continue
            content = result.records() if isinstance(self._task, SinkTask) else result.table()
            self.content(lambda content=content: content, result.count)  # type: ignore[misc]

    def _put_typed(self, task: TableSinkTask, result: Result) -> None:
        for typed in result.typed().tables:
            task.key_schema, task.value_schema = typed.key_schema, typed.value_schema
            self.content(lambda table=typed.table: table, typed.table.num_rows)  # type: ignore[misc]

    def content(self, content: Callable[[], Any], count: int) -> None:
        """The same again after RetriableError, or when the engine of a frame has died, until it goes, or the task is
        asked to stop, or partitions go."""
        while True:
            began = self._clock()
            activity = self._metrics.activity
            activity.enter(_PUT)
            try:
                self._task.put(content())
                activity.goes(_PUT)
                break
            except RetriableError as error:
                self._metrics.errors.retries += 1
                activity.fails(_PUT, cause_of(error))
                pause = self._context.take_timeout(_RETRY_S)
                log.warning("put() failed and is tried again in %.1f s: %s", pause, error)
                self._wait(pause)
            except Exception as error:
                if not isinstance(self._task, FrameSinkTask):
                    raise
                explained = self._engine.explain(error)
                if not isinstance(explained, EngineUnavailable):
                    raise
                log.warning("put() is tried again when there is a new session: %s", explained)
                self._engine.ready(lambda: self._control.stopping)
        self._metrics.put_ms.add((self._clock() - began) * 1000)
        self._metrics.sent.add(count)
