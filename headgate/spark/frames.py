"""Frames of source tasks: each is one Spark job, in which the executors send its records to Kafka."""

from __future__ import annotations

import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from headgate.model import Config, TaskSpec
from headgate.pipeline.blob import SourceColumns
from headgate.pipeline.frame_report import FrameReport
from headgate.spark.frame_part import REPORTS, FramePart
from headgate.spark.session import Session, label

if TYPE_CHECKING:
    from headgate.api import SourceFrame

_MEMORY: Final = {"buffer.memory": str(32 * 1024 * 1024)}
"""Of each producer, unless the connector says otherwise: an executor may have many at a time. As Java's client."""


class FrameSender:
    """Fits `tasks.ports.FrameSender`. On a lane as the task's statements are: Spark ties jobs to threads."""

    def __init__(self, spec: TaskSpec, chain: bytes, session: Session) -> None:
        self._producer: Config = {**_MEMORY, **spec.producer}
        self._chain = chain
        self._session = session
        self._pool = spec.id.connector
        # Not the group of what the plugin reads: that is cancelled as soon as the task is asked to stop.
        self._group = f"{spec.id} to Kafka"
        self._lane = ThreadPoolExecutor(1, f"frames-{spec.id}")
        self._last: Future[FrameReport] | None = None

    def send(self, frame: SourceFrame) -> Future[FrameReport]:
        """Fails with what explains Spark's error."""
        self._last = self._lane.submit(self._send, frame)
        return self._last

    def _send(self, frame: SourceFrame) -> FrameReport:
        columns = SourceColumns(frame.topic, frame.key_schema, frame.value_schema)
        part = FramePart(self._chain, columns, self._producer, frame.records)
        try:
            label(self._session.context(), self._group, self._pool)
            reports = frame.frame(self._session.session()).mapInArrow(part, REPORTS).collect()
        except Exception as error:
            explained = self._session.explain(error)
            if explained is error:
                raise
            raise explained from error
        return FrameReport.joined([pickle.loads(each.report) for each in reports])  # noqa: S301 - of our own executors

    def close(self) -> None:
        """What is under way is cancelled."""
        if self._last is not None and not self._last.done():
            self._session.cancel(self._group)
        self._lane.shutdown(wait=False)
