"""Rides: small batches of all tasks in one Spark job.

A Spark job costs tens of milliseconds whatever it carries, and a worker may run a hundred quiet connectors. So a task
with a small batch hands it to the next ride; one job carries everybody's. A ride leaves when the last one is back and
something waits: idle costs nothing, and load makes rides fuller, not more frequent. Large batches, and chains that were
slow, get a job of their own, so that nobody waits for them.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headgate.model import TaskId
from headgate.spark.jvm import warm_up
from headgate.spark.session import SparkEngine, SparkUnavailable

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

LARGE_BYTES: Final = 512 * 1024
"""A batch of more than this takes a job of its own."""
SLOW_S: Final = 0.5
"""A chain that took longer than this for a small batch rides alone until it is quick again."""
KEEP_WARM_S: Final = 45.0
_RIDE_POOL: Final = "rides"


@dataclass(slots=True)
class _Passenger:
    task: TaskId
    blobs: Sequence[bytes]
    done: Future[list[bytes]] = field(default_factory=Future)


def run_blobs(blobs: Iterable[bytes]) -> Iterator[bytes]:
    """On an executor: each blob names its chain and has its own result, good or bad."""
    from headgate.pipeline.blob import run

    with uncollected():
        for blob in blobs:
            yield run(blob)


@contextmanager
def uncollected() -> Iterator[None]:
    """On an executor: a batch is a hundred thousand objects without cycles that all go at its end. Looking for cycles
    among them costs time and finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Rides:
    """Shared by all tasks of a worker."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self._condition = threading.Condition()
        self._waiting: list[_Passenger] = []
        self._slow: set[TaskId] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._drive, name="rides", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def submit(self, task: TaskId, blobs: Sequence[bytes], alone: Lane, size: int | None = None) -> Future[list[bytes]]:
        """The results of `blobs`, in their order. `alone` is the task's own lane, for batches that should not share.
        `size` is what the blobs stand for, where that is on a shelf."""
        if task in self._slow or (sum(map(len, blobs)) if size is None else size) > LARGE_BYTES:
            return alone.submit(lambda: self._timed(task, blobs, lambda: self._job(blobs, str(task), task.connector)))
        passenger = _Passenger(task, blobs)
        with self._condition:
            if self._stopping:
                passenger.done.set_exception(SparkUnavailable("The worker is shutting down"))
                return passenger.done
            self._waiting.append(passenger)
            self._condition.notify()
        return passenger.done

    def forget(self, task: TaskId) -> None:
        self._slow.discard(task)

    # --- the thread of the shared rides -------------------------------------------------------------------------------

    def _drive(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._stopping, KEEP_WARM_S)
                passengers, self._waiting = self._waiting, []
                if self._stopping:
                    for passenger in passengers:
                        passenger.done.set_exception(SparkUnavailable("The worker is shutting down"))
                    return
            self._ride(passengers) if passengers else self._keep_warm()

    def _keep_warm(self) -> None:
        """Spark ends Python workers that were idle for a minute; the next record would wait seconds for new ones."""
        if not self._engine.alive:
            return
        try:
            context = self._engine.context()
            label(context, "keep warm", _RIDE_POOL)
            warm_up(context)
        except Exception as error:
            log.debug("The Python workers could not be kept: %s", error)

    def _ride(self, passengers: Sequence[_Passenger]) -> None:
        blobs = [blob for passenger in passengers for blob in passenger.blobs]
        began = time.monotonic()
        try:
            results = self._job(blobs, "ride", _RIDE_POOL)
        except SparkUnavailable as error:
            for passenger in passengers:
                passenger.done.set_exception(error)
            return
        except Exception as error:
            self._ride_one_by_one(passengers, error)
            return
        start = 0
        for passenger in passengers:
            end = start + len(passenger.blobs)
            passenger.done.set_result(results[start:end])
            start = end
        if time.monotonic() - began > SLOW_S:
            self._find_slow(passengers)

    def _ride_one_by_one(self, passengers: Sequence[_Passenger], error: Exception) -> None:
        """The pipeline reports its errors as results; a ride fails as a whole when a plugin crashed the Python worker.
        Alone, only the culprit fails."""
        if len(passengers) == 1:
            passengers[0].done.set_exception(error)
            return
        log.warning("A ride of %d batches failed as a whole and is repeated one by one: %s", len(passengers), error)
        for passenger in passengers:
            self._ride([passenger])

    def _find_slow(self, passengers: Sequence[_Passenger]) -> None:
        from headgate.pipeline.blob import unpack

        for passenger in passengers:
            if sum(unpack(blob).seconds for blob in passenger.done.result()) > SLOW_S:
                self._slow.add(passenger.task)

    def _timed(self, task: TaskId, blobs: Sequence[bytes], job: Callable[[], list[bytes]]) -> list[bytes]:
        began = time.monotonic()
        results = job()
        if task in self._slow and time.monotonic() - began < SLOW_S:
            self._slow.discard(task)
        return results

    def _job(self, blobs: Sequence[bytes], group: str, pool: str) -> list[bytes]:
        context = self._engine.context()
        try:
            label(context, group, pool)
            slices = min(len(blobs), max(context.defaultParallelism, 1))
            return context.parallelize(blobs, slices).mapPartitions(run_blobs).collect()
        except Exception as error:
            raise self._engine.explain(error) from error


def label(context: SparkContext, group: str, pool: str) -> None:
    """Of the jobs of this thread: the group they can be cancelled by, and the pool that shares the cluster fairly."""
    context.setJobGroup(group, f"headgate {group}", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", pool)


class Lane:
    """One thread for the Spark jobs of one task, started when first needed. Spark ties jobs to threads: that is how a
    task's jobs, and no others, can be cancelled."""

    def __init__(self, task: TaskId) -> None:
        self._task = task
        self._condition = threading.Condition()
        self._work: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._closed = False
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        done: Future[Any] = Future()
        with self._condition:
            if self._closed:
                raise RuntimeError(f"The lane of {self._task} is closed")
            self._work.append((work, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"spark-{self._task}", daemon=True)
                self._thread.start()
            self._condition.notify()
        return done

    def close(self) -> None:
        """What was submitted is still done."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._work or self._closed)
                if not self._work:
                    return
                work, done = self._work.pop(0)
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
