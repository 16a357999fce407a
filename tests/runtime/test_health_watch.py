"""HealthWatch: what becomes of a task's facts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from headgate.log import hide
from headgate.model import Health, State, Status, TaskFacts, TaskId, Verdict
from headgate.runtime.board import StatusBoard
from headgate.runtime.health_watch import HealthWatch
from headgate.runtime.lifecycle import InstanceEvent
from headgate.runtime.worker import Worker
from headgate.storage.memory import MemoryStatusStore

TASK = TaskId("orders", 0)
NOW = 1_000_000_000


class Store(MemoryStatusStore):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[Status] = []

    def put(self, whose: str | TaskId, status: Status) -> None:
        super().put(whose, status)
        self.written.append(status)


@dataclass
class Tasks:
    known: dict[TaskId, TaskFacts] = field(default_factory=dict)

    def facts(self) -> dict[TaskId, TaskFacts]:
        return self.known


@dataclass
class Lab:
    store: Store = field(default_factory=Store)
    tasks: Tasks = field(default_factory=Tasks)
    now: int = NOW
    moments: Iterator[float] = field(default_factory=itertools.count)
    """What the clock says, asked again and again."""

    def __post_init__(self) -> None:
        self.board = StatusBoard(self.store, "me:8083", lambda: 7)
        self.watch = HealthWatch(cast(Worker, self.tasks), self.board, lambda: self.now, lambda: next(self.moments))

    def look(self, facts: TaskFacts, after_ms: int = 1_000) -> Health | None:
        self.now += after_ms
        self.tasks.known = {TASK: facts}
        self.watch.look()
        found = self.store.get(TASK)
        return found.health if found else None


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_a_change_is_written_once_and_the_state_stays(lab: Lab) -> None:
    lab.board.put(TASK, InstanceEvent.STARTUP, version="1.0")
    lab.store.written.clear()
    trouble = TaskFacts("put()", NOW, trouble="put(): locked", last_error="put(): locked", lag=5, rate=2.5)
    for _ in range(5):
        lab.look(trouble)
    assert [(each.state, each.version, each.generation) for each in lab.store.written] == [(State.RUNNING, "1.0", 7)]
    told = lab.store.written[0].health
    assert told is not None
    assert (told.verdict, told.reason) == (Verdict.RETRYING, "put(): locked")


def test_what_the_store_does_not_take_yet_is_told_a_second_later(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.board.put(TASK, InstanceEvent.STARTUP)
    trouble = TaskFacts("put()", NOW, trouble="put(): locked")
    with monkeypatch.context() as held:
        held.setattr(lab.store, "put", lambda whose, status: None)
        before = lab.look(trouble)
    after = lab.look(trouble)
    assert before is not None
    assert after is not None
    assert (before.verdict, after.verdict) == (Verdict.STARTING, Verdict.RETRYING)


def test_figures_are_known_here_and_not_written(lab: Lab) -> None:
    lab.board.put(TASK, InstanceEvent.STARTUP)
    written = lab.look(TaskFacts("put()", NOW, lag=5, rate=2.5))
    assert written is not None
    assert (written.lag, written.rate) == (None, None)
    assert (lab.watch.here[TASK].lag, lab.watch.here[TASK].rate) == (5, 2.5)


@pytest.mark.parametrize("event", [InstanceEvent.PAUSE, InstanceEvent.FAILURE])
def test_of_what_does_not_run_the_state_says_it_all(lab: Lab, event: InstanceEvent) -> None:
    lab.board.put(TASK, event, "boom" if event is InstanceEvent.FAILURE else None)
    before = len(lab.store.written)
    lab.look(TaskFacts("poll()", NOW))
    assert len(lab.store.written) == before
    assert TASK not in lab.watch.here


def test_a_task_that_is_another_workers_by_now_is_not_spoken_for(lab: Lab) -> None:
    lab.store.put(TASK, Status(State.RUNNING, "other:8083"))
    lab.store.written.clear()
    lab.look(TaskFacts("poll()", NOW))
    assert lab.store.written == []


def test_a_task_that_went_and_came_back_is_told_of_anew(lab: Lab) -> None:
    lab.board.put(TASK, InstanceEvent.STARTUP)
    lab.look(TaskFacts("poll()", NOW))
    lab.tasks.known = {}
    lab.watch.look()
    assert lab.watch.here == {}
    lab.store.written.clear()
    lab.look(TaskFacts("poll()", NOW))
    assert len(lab.store.written) == 1


@pytest.mark.parametrize(("took", "again"), [(0.001, 1.0), (0.01, 2.0), (0.02, 4.0), (1.0, 5.0)])
def test_what_takes_long_is_looked_at_less_often(lab: Lab, took: float, again: float) -> None:
    lab.moments = iter([100.0, 100.0 + took])
    assert lab.watch.look() == pytest.approx(again)


def test_a_secret_in_an_error_is_not_shown(lab: Lab) -> None:
    hide(["s3cret-of-the-watch"])
    lab.board.put(TASK, InstanceEvent.STARTUP)
    lab.look(TaskFacts("put()", NOW, trouble="login s3cret-of-the-watch", last_error="login s3cret-of-the-watch"))
    for shown in (lab.watch.here[TASK], lab.store.written[-1].health):
        assert shown is not None
        assert "s3cret" not in f"{shown.reason}{shown.last_error}"
