"""TaskRunner: a thread for each task, and what is told of how it ends."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakes import TASK, Clock, Consumer, Engine, Listener, make_ports, task_spec

from headgate.api import ConnectError, SinkTask
from headgate.backoff import Backoff
from headgate.metrics import SinkMetrics, SourceMetrics, Window
from headgate.model import ConnectorType, EngineUnavailable, TargetState, TaskSpec, TransactionSpec
from headgate.tasks import runner as module
from headgate.tasks.control import Control, Rebalanced, Stopped
from headgate.tasks.runner import TaskThread, ThreadRunner

LONG_S = 10.0


class Loop:
    """Runs until it is told to go on; then it ends, or fails."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.running, self.go_on = threading.Event(), threading.Event()
        self.error = error
        self.woken = 0

    def run(self) -> None:
        self.running.set()
        assert self.go_on.wait(LONG_S)
        if self.error is not None:
            raise self.error

    def wake(self) -> None:
        self.woken += 1
        self.go_on.set()


class Bench:
    def __init__(self, error: BaseException | None = None) -> None:
        self.loop, self.control, self.listener, self.engine = Loop(error), Control(False), Listener(), Engine()
        loop: Any = self.loop
        self.metrics = SinkMetrics()
        self.task = TaskThread(task_spec(SinkTask), self.control, loop, self.listener, self.engine, self.metrics)
        self.ended = threading.Event()
        self.task.when_ended(self.ended.set)

    def start(self) -> None:
        self.task.start()
        assert self.loop.running.wait(LONG_S)

    def run(self, *before: Callable[[], object]) -> None:
        """Until it has ended. `before`: what happens while it runs."""
        self.start()
        for act in before:
            act()
        self.loop.go_on.set()
        assert self.ended.wait(LONG_S)


# --- one task ---------------------------------------------------------------------------------------------------------


def test_a_task_that_ends_by_itself_has_stopped() -> None:
    bench = Bench()
    bench.run()
    assert bench.listener.events == ["stopped"]


def test_a_task_that_fails_says_so_with_its_trace() -> None:
    bench = Bench(ZeroDivisionError("by nothing"))
    bench.run()
    assert bench.listener.events == ["failed"]
    (trace,) = bench.listener.traces
    assert trace.startswith("ZeroDivisionError: by nothing\nTraceback (most recent call last):\n")
    assert trace.endswith("ZeroDivisionError: by nothing")
    assert "in run" in trace


def test_an_engine_that_cannot_be_had_is_told_without_a_trace() -> None:
    """It would only show where the task waited."""
    bench = Bench(EngineUnavailable("Java was not found"))
    bench.run()
    assert bench.listener.traces == ["headgate.model.EngineUnavailable: Java was not found"]


def test_even_what_is_no_exception_fails_a_task() -> None:
    bench = Bench(SystemExit(3))
    bench.run()
    assert bench.listener.events == ["failed"]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (None, None),
        (Stopped("asked to stop"), logging.INFO),
        (Rebalanced("partitions went"), logging.INFO),
        (EngineUnavailable("The worker is shutting down"), logging.INFO),
        (ZeroDivisionError(), logging.WARNING),
    ],
)
def test_whatever_happens_while_a_task_stops_it_has_stopped(
    error: Exception | None, level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(error)
    with caplog.at_level(logging.INFO, logger="headgate.tasks.runner"):
        bench.run(bench.task.stop)
    assert bench.listener.events == ["stopped"]
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])


def test_pause_and_resume_are_for_the_loop_to_see() -> None:
    bench = Bench()
    bench.start()
    bench.task.pause()
    assert bench.control.paused
    bench.task.resume()
    assert not bench.control.paused
    assert bench.loop.woken == 0
    bench.loop.go_on.set()
    assert bench.ended.wait(LONG_S)


def test_a_task_that_is_stopped_is_woken_and_keeps_what_the_engine_has() -> None:
    bench = Bench()
    bench.run(bench.task.stop)
    assert (bench.control.stopping, bench.control.cancelled) == (True, False)
    assert (bench.loop.woken, bench.engine.cancelled) == (1, [])


def test_a_task_that_is_given_up_on_gives_up_what_the_engine_has() -> None:
    bench = Bench()
    bench.run(bench.task.cancel)
    assert bench.control.cancelled
    assert (bench.loop.woken, bench.engine.cancelled) == (1, [TASK])


def test_who_asks_late_for_the_end_is_told_at_once() -> None:
    bench = Bench(ZeroDivisionError())
    bench.run()
    told: list[str] = []
    bench.task.when_ended(lambda: told.append("ended"))
    assert told == ["ended"]


def test_the_end_comes_after_what_is_told_of_it() -> None:
    bench = Bench()
    seen: list[list[str]] = []
    bench.task.when_ended(lambda: seen.append(list(bench.listener.events)))
    bench.ended.clear()
    bench.task.when_ended(bench.ended.set)
    bench.run()
    assert seen == [["stopped"]]


class Short(Bench):
    """Whose loop fails, and has another one after that."""

    def __init__(self, error: Exception, *more: Exception) -> None:
        super().__init__(error)
        self.loops = [*(Loop(each) for each in more), Loop()]
        for loop in self.loops:
            loop.go_on.set()
        left: Any = iter(self.loops)
        self.task._again = lambda: (next(left), SinkMetrics())


def _because(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


NO_FILE = OSError(errno.EMFILE, "Too many open files", "/in.txt")
SHORTAGES = [
    NO_FILE,
    OSError(errno.ENFILE, "Too many open files in system"),
    _because(ConnectError("File /in.txt cannot be read"), NO_FILE),
    _because(ConnectError("pre_commit() failed"), _because(ConnectError("Cannot write"), NO_FILE)),
    EngineUnavailable("No Spark task could be started that stays: [Errno 24] Too many open files"),
]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHORTAGE", Backoff(0.001))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("error", SHORTAGES, ids=str)
def test_a_task_for_which_there_was_no_file_begins_anew(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    bench = Short(error, error)
    bench.control.fail(error)  # so says what has a thread of its own
    bench.run()
    assert bench.listener.events == ["stopped"]
    assert [loop.running.is_set() for loop in bench.loops] == [True, True]
    assert all("Too many files are open" in message for message in caplog.messages)


@pytest.mark.usefixtures("at_once")
def test_what_else_goes_wrong_meanwhile_fails_it() -> None:
    bench = Short(NO_FILE, OSError(errno.ENOENT, "No such file or directory"))
    bench.run()
    assert bench.listener.events == ["failed"]


def test_it_hears_that_it_shall_stop_and_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    monkeypatch.setattr(module, "_SHORTAGE", Backoff(1000.0))
    bench = Short(NO_FILE)
    bench.start()
    bench.loop.go_on.set()
    eventually(lambda: bench.task.facts().trouble)
    assert (bench.task.facts().trouble or "").startswith("opening files: OSError: [Errno 24] Too many open files")
    bench.task.stop()
    assert bench.ended.wait(LONG_S)
    assert bench.listener.events == ["stopped"]


# --- the runner -------------------------------------------------------------------------------------------------------


class Sink(SinkTask):
    def put(self, records: Any) -> None: ...


class Runner:
    """Of sinks that wait for records that do not come."""

    def __init__(self) -> None:
        self.engine, self.listener = Engine(), Listener()
        self.runner = ThreadRunner(make_ports(self.engine, Clock(), consumer=self._consumer))
        self.fetching = threading.Event()
        self.tasks: list[TaskThread] = []

    def _consumer(self, config: Any, rebalances: Any, buffer_bytes: int) -> Consumer:
        made = Consumer({}, []).connect(config, rebalances, buffer_bytes)
        made.when_idle = self._idle
        return made

    def _idle(self) -> None:
        self.fetching.set()
        threading.Event().wait(0.02)

    def start(self, spec: TaskSpec) -> tuple[TaskThread, threading.Event]:
        ended = threading.Event()
        task = self.runner.start(spec, self.listener)
        task.when_ended(ended.set)
        self.tasks.append(task)
        return task, ended


@pytest.fixture
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    for task in made.tasks:
        task.stop()
        task._thread.join(LONG_S)


def test_a_task_runs_until_it_is_stopped_and_is_then_forgotten(runner: Runner) -> None:
    task, ended = runner.start(task_spec(Sink))
    assert runner.fetching.wait(LONG_S)
    assert isinstance(runner.runner.metrics[TASK], SinkMetrics)
    assert task._thread.name == "task-orders-2"
    task.stop()
    assert ended.wait(LONG_S)
    assert runner.listener.events == ["running", "stopped"]
    assert (runner.runner.metrics, runner.engine.forgotten) == ({}, [TASK])


class Greedy(Sink):
    """Finds no file when it is first started."""

    files = 0

    def start(self, config: Any) -> None:
        Greedy.files += 1
        if Greedy.files == 1:
            raise NO_FILE


@pytest.mark.usefixtures("at_once")
def test_a_task_that_begins_anew_is_another_one_with_counters_of_its_own(runner: Runner) -> None:
    Greedy.files = 0
    task, ended = runner.start(task_spec(Greedy))
    assert runner.fetching.wait(LONG_S)
    assert (Greedy.files, task.facts().trouble) == (2, None)
    assert runner.runner.metrics[TASK].activity.last_error is None
    task.stop()
    assert ended.wait(LONG_S)
    assert (runner.listener.events, runner.runner.metrics) == (["running", "stopped"], {})


def test_the_counters_of_a_task_that_failed_stay_until_it_is_stopped(runner: Runner) -> None:
    runner.engine.readiness = [EngineUnavailable("Java was not found")]
    task, ended = runner.start(task_spec(Sink))
    assert ended.wait(LONG_S)
    assert runner.listener.events == ["failed"]
    assert isinstance(runner.runner.metrics[TASK], SinkMetrics), "its failures are what somebody wants to see"
    task.stop()
    assert runner.runner.metrics == {}


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_task_that_is_not_to_run_yet_waits(runner: Runner, target: TargetState) -> None:
    paused = threading.Event()
    runner.listener.when_paused = paused.set
    task, ended = runner.start(task_spec(Sink, target_state=target))
    assert paused.wait(LONG_S)
    assert not runner.fetching.is_set()
    task.resume()
    assert runner.fetching.wait(LONG_S)
    assert runner.listener.events == ["paused", "running"]
    task.stop()
    assert ended.wait(LONG_S)


def test_the_counters_of_a_task_that_was_started_anew_are_not_taken_by_the_end_of_the_old_one(runner: Runner) -> None:
    old, ended = runner.start(task_spec(Sink))
    assert runner.fetching.wait(LONG_S)
    runner.start(task_spec(Sink))
    counters = runner.runner.metrics[TASK]
    old.stop()
    assert ended.wait(LONG_S)
    assert runner.runner.metrics[TASK] is counters


@pytest.mark.parametrize(
    ("kind", "transaction", "counters"),
    [
        (ConnectorType.SOURCE, None, SourceMetrics),
        (ConnectorType.SOURCE, TransactionSpec("id"), SourceMetrics),
        (ConnectorType.SINK, None, SinkMetrics),
    ],
)
def test_every_kind_of_task_has_its_loop_and_its_counters(
    kind: ConnectorType, transaction: TransactionSpec | None, counters: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, Any]] = []

    def loop(name: str) -> Callable[..., Loop]:
        def make(spec: object, control: object, listener: object, ports: object, metrics: Any) -> Loop:
            made.append((name, metrics))
            built = Loop()
            built.go_on.set()
            return built

        return make

    monkeypatch.setattr(module, "SourceLoop", loop("source"))
    monkeypatch.setattr(module, "SinkLoop", loop("sink"))
    bench = Runner()
    _, ended = bench.start(task_spec(Sink, kind, transaction=transaction))
    assert ended.wait(LONG_S)
    ((name, metrics),) = made
    assert name == kind.value
    assert type(metrics) is counters
    if isinstance(metrics, SourceMetrics):
        assert isinstance(metrics.transaction_size, Window) is (transaction is not None)


# --- what is known of it ----------------------------------------------------------------------------------------------


def test_what_a_task_is_doing_is_known_from_outside() -> None:
    bench = Bench()
    bench.metrics.activity.enter("put()")
    bench.metrics.activity.fails("put()", "locked")
    found = bench.task.facts()
    assert (found.doing, found.trouble, found.last_error) == ("put()", "put(): locked", "put(): locked")
    assert abs(found.doing_since_ms - time.time() * 1000) < 60_000
    assert (found.under_way_since_ms, found.asked_ms, found.last_progress_ms) == (None, None, None)


def test_records_under_way_are_known_from_when_they_were_first_seen() -> None:
    bench = Bench()
    bench.metrics.active = 3
    first = bench.task.facts().under_way_since_ms
    bench.metrics.active = 1
    assert first is not None
    assert bench.task.facts().under_way_since_ms == pytest.approx(first, abs=5)
    bench.metrics.active = 0
    assert bench.task.facts().under_way_since_ms is None


def test_a_pause_that_the_task_has_not_seen_is_known_until_it_has() -> None:
    bench = Bench()
    bench.control.pause(True)
    assert bench.task.facts().asked_ms is not None
    bench.metrics.pause()
    assert bench.task.facts().asked_ms is None
    bench.control.stop()
    assert bench.task.facts().asked_ms is not None
