from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from headgate.api.testing import MemorySourceTaskContext
from headgate.connectors.spark.source.polling import SparkPolling


class Nothing(SparkPolling):
    def start(self, config: object) -> None:
        self._session()

    def _next(self) -> None: ...

    def _go_back(self) -> None: ...


class Session:
    """Is its own context, and slow to cancel."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.cancelled: list[str] = []

    @property
    def sparkContext(self) -> Session:  # noqa: N802, as PySpark names it
        return self

    def getLocalProperty(self, _: str) -> str:  # noqa: N802
        return "group-0"

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        self.begun.set()
        self.may_end.wait(10)
        self.cancelled.append(group)


@pytest.fixture
def session() -> Session:
    return Session()


def test_a_task_has_stopped_when_its_jobs_are_cancelled_and_not_before(session: Session) -> None:
    """The next one has the same group."""
    task = Nothing()
    task.context = MemorySourceTaskContext({}, session=cast(Any, session))
    task.start({})
    task.stop_requested()
    assert session.begun.wait(10), "whoever asks does not wait"
    threading.Timer(0.05, session.may_end.set).start()
    task.stop()
    assert session.cancelled == ["group-0"]


def test_a_task_that_is_stopped_while_somebody_asks_it_to_cancels_nothing_of_the_next_one(session: Session) -> None:
    """A pump that fails asks from its own thread, and the task's thread has seen the failure already."""
    session.may_end.set()
    task = Nothing()
    task.context = MemorySourceTaskContext({}, session=cast(Any, session))
    task.start({})
    task.stop()
    task.stop_requested()
    assert not session.begun.wait(0.05)


def test_who_asks_and_who_stops_at_the_same_time_do_not_meet_half_way(session: Session) -> None:
    session.may_end.set()
    for _ in range(200):
        task = Nothing()
        task.context = MemorySourceTaskContext({}, session=cast(Any, session))
        task.start({})
        asking = threading.Thread(target=task.stop_requested)
        asking.start()
        task.stop()
        done = len(session.cancelled)
        asking.join()
        assert len(session.cancelled) == done
