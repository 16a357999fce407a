"""Writing: rows that are on their way to the target, in a thread of their own, while the task gathers more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from headgate.api import TopicPartition
from headgate.connectors.spark.sink.target import RowBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Begin: TypeAlias = "Callable[[SparkSession, Callable[[], None]], Future[None]]"
"""Begins what is to be done with a session."""


@dataclass(frozen=True, slots=True)
class Writing:
    batch: RowBatch
    first: Mapping[TopicPartition, int]
    """The lowest offset of each partition that has rows in it."""
    ended: Future[None]

    @property
    def done(self) -> bool:
        return self.ended.done()

    def wait(self) -> None:
        """Until it has ended, whether it went well or not."""
        self.ended.exception()


def in_a_thread(session: SparkSession, work: Callable[[], None]) -> Future[None]:
    """Its jobs are those of the thread that asks for it: in the same group and pool, and cancelled with it."""
    from pyspark import InheritableThread

    ended: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # it is told to whoever asks how it ended
            ended.set_exception(error)
        else:
            ended.set_result(None)

    thread = InheritableThread(target=run, session=session, name="spark-sink-writing", daemon=True)
    thread.start()
    return ended
