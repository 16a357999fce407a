"""Records and offsets in one transaction: whatever happens, readers of committed records see each exactly once."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from exactly_once_support import Bench, CountingTask, TellingTask, metrics
from harness import await_

from headgate.api import SourceRecord
from headgate.model import Boundary, PluginRef, PluginSpec, StepSpec, TargetState
from headgate.pipeline.blob import Packed
from headgate.storage.merged_offsets import MergedOffsets

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL])
@pytest.mark.parametrize("columns", [False, True], ids=["records", "columns"])
def test_everything_arrives_once_with_its_offset(bench: Bench, boundary: Boundary, columns: bool) -> None:
    bench.script.released, bench.script.per_poll, bench.script.columns = 10_000, 70, columns
    running = bench.start(bench.spec(boundary, 200))
    running.await_event("running")
    bench.check(10_000)
    bench.script.released = 10_005
    bench.check(10_005)
    running.stop()
    assert running.desk.events == ["fencing", "confirmed", "running", "stopped"]
    assert bench.script.starts == [0]


# --- Spark fails ------------------------------------------------------------------------------------------------------


def test_a_python_worker_that_dies_in_a_batch_doubles_nothing(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    bench.script.released, bench.script.per_poll = 2_000, 100
    step = StepSpec("mortal", PluginSpec(PluginRef("faulty", "MortalTransform"), {"lives": str(tmp_path)}))
    running = bench.start(bench.spec(steps=[step]))
    bench.check(2_000)
    assert list(tmp_path.iterdir()) == [], "nothing died"
    running.stop()
    assert bench.script.starts == [0]


def test_a_job_that_fails_for_good_commits_nothing_of_its_batch(bench: Bench) -> None:
    """The rest of its transaction goes with it."""
    bench.script.released, bench.script.per_poll = 50, 50
    step = StepSpec("crash", PluginSpec(PluginRef("faulty", "CrashingTransform"), {}))
    running = bench.start(bench.spec(Boundary.INTERVAL, steps=[step]))
    running.await_event("running")
    await_(lambda: metrics(running).active == 50, "the first batch polled")
    bench.script.value = lambda number: "crash" if number == 60 else str(number)
    bench.script.released = 100
    assert "77" in running.await_failure(120) or "crash" in (running.desk.trace or "").lower()
    bench.check(0)
    bench.script.value = str
    again = bench.start()
    bench.check(100)
    again.stop()


def test_a_bad_record_fails_the_task_and_leaves_no_transaction_open(bench: Bench) -> None:
    bench.script.value = lambda number: "bad" if number == 15 else str(number)
    bench.script.released = 10
    step = StepSpec("fails", PluginSpec(PluginRef("faulty", "FailingTransform"), {}))
    running = bench.start(bench.spec(steps=[step]))
    bench.check(10)
    bench.script.released = 20
    assert "this value is bad" in running.await_failure()
    bench.check(10)


# --- where transactions end -------------------------------------------------------------------------------------------


def test_with_the_boundary_poll_a_poll_is_never_split(bench: Bench) -> None:
    """Several may share a transaction, which nobody can tell from a quicker one after the other."""
    bench.script.released, bench.script.per_poll = 700, 7
    running = bench.start()
    bench.check(700)
    sizes = metrics(running).transaction_size
    running.stop()
    assert sizes is not None
    assert sizes.minimum % 7 == 0
    assert sizes.maximum % 7 == 0


def test_under_load_polls_share_a_transaction_and_it_waits_a_second_for_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.tasks.source.pump._BATCH_BYTES", 1)  # so every poll is a full batch
    submit, jobs = bench.worker.engine.submit, itertools.count()
    all_polled, go_on = threading.Event(), threading.Event()
    gates = {0: all_polled, 5: go_on}

    def held(*arguments: Any) -> Future[list[Packed]]:
        done, gate = submit(*arguments), gates.get(next(jobs))

        def late() -> list[Packed]:
            assert gate is None or gate.wait(60)
            return done.result()

        return done if gate is None else ThreadPoolExecutor(1).submit(late)

    monkeypatch.setattr(bench.worker.engine, "submit", held)
    bench.script.released, bench.script.per_poll = 100, 10
    running = bench.start()
    await_(lambda: metrics(running).polled.total == 100, "polled")
    all_polled.set()
    await_(lambda: bench.offset() == 50, "committed, though Spark still has the sixth")
    assert metrics(running).commits <= 3, "only the first two may have come before there was more"
    go_on.set()
    bench.check(100)
    running.stop()


def test_with_the_boundary_interval_it_is_committed_when_the_time_is_over(bench: Bench) -> None:
    bench.script.released = 10
    running = bench.start(bench.spec(Boundary.INTERVAL, 3_000))
    await_(lambda: metrics(running).polled.total == 10, "polled")
    bench.script.released = 20
    await_(lambda: metrics(running).polled.total == 20, "polled")
    assert bench.offset() == 0
    bench.check(20)
    assert metrics(running).commits == 1
    running.stop()


def at(*numbers: int, commit: bool = True) -> Callable[[CountingTask, Sequence[SourceRecord]], object]:
    """Ends a transaction with each record of these numbers."""

    def ask(task: CountingTask, records: Sequence[SourceRecord]) -> None:
        context = task.context.transaction_context
        assert context is not None
        for record in records:
            if int(record.value) in numbers:
                (context.commit_transaction if commit else context.abort_transaction)(record)

    return ask


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_a_task_may_commit_behind_a_record(bench: Bench) -> None:
    bench.script.asks = at(3, 4, 24)
    bench.script.released = 30
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    await_(lambda: bench.offset() == 25, "the last offset", 60)
    counted = metrics(running)
    running.stop()
    bench.check(25)
    sizes = counted.transaction_size
    assert sizes is not None
    assert (counted.commits, sizes.minimum, sizes.maximum) == (3, 1, 20)


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_a_task_may_commit_behind_a_batch(bench: Bench) -> None:
    def ask(task: CountingTask, records: Sequence[SourceRecord]) -> None:
        assert task.context.transaction_context is not None
        if records[-1].value == "19":
            task.context.transaction_context.commit_transaction()

    bench.script.asks, bench.script.released = ask, 30
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    await_(lambda: bench.offset() == 20, "the last offset", 60)
    running.stop()
    bench.check(20)


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_a_task_may_end_what_it_polled_before_with_an_empty_batch(bench: Bench) -> None:
    class Late(CountingTask):
        def poll(self) -> Any:
            found = super().poll()
            if found is None and self.next == 30 and self.script.commits == 0:
                assert self.context.transaction_context is not None
                self.context.transaction_context.commit_transaction()
                return []
            return found

    bench.script.released = 30
    running = bench.start(bench.spec(Boundary.CONNECTOR, task=Late))
    bench.check(30)
    running.stop()


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_what_a_task_aborts_is_dropped_and_does_not_come_again(bench: Bench) -> None:
    def ask(task: CountingTask, records: Sequence[SourceRecord]) -> None:
        at(4, 29)(task, records)
        at(14, commit=False)(task, records)

    bench.script.asks, bench.script.released = ask, 30
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    await_(lambda: bench.offset() == 30, "the last offset", 60)
    assert bench.written() == [str(number) for number in range(30) if not 5 <= number < 15]
    running.stop()
    bench.script.asks, bench.script.released = lambda *_: None, 31
    again = bench.start()
    await_(lambda: bench.offset() == 31, "the next one")
    again.stop()
    assert bench.script.starts == [0, 30]


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_the_offsets_of_an_abort_count_at_once(bench: Bench) -> None:
    bench.script.asks = at(9, commit=False)
    bench.script.released = 10
    running = bench.start(bench.spec(Boundary.CONNECTOR, task=TellingTask))
    await_(lambda: bench.offset() == 10, "the offset", 60)
    assert bench.written() == []
    await_(lambda: len(bench.script.told) == 10, "told")
    running.stop()


def test_a_task_that_wants_both_fails(bench: Bench) -> None:
    def both(task: CountingTask, records: Sequence[SourceRecord]) -> None:
        at(5)(task, records)
        at(5, commit=False)(task, records)

    bench.script.asks, bench.script.released = both, 10
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    assert "Connector requested both commit and abort of same record against topic" in running.await_failure()
    bench.check(0)


def test_only_a_task_that_ends_its_transactions_can_ask_for_it(bench: Bench) -> None:
    seen: list[object] = []
    bench.script.asks = lambda task, _: seen.append(task.context.transaction_context)
    bench.script.released = 10
    running = bench.start()
    bench.check(10)
    running.stop()
    assert seen == [None]


# --- records that never get to Kafka ----------------------------------------------------------------------------------


def test_the_offsets_of_filtered_records_count(bench: Bench) -> None:
    bench.script.released = 40
    step = StepSpec("drop", PluginSpec(PluginRef("headgate.pipeline.transforms.filter", "Filter"), {}))
    running = bench.start(bench.spec(steps=[step]))
    await_(lambda: bench.offset() == 40, "the last offset", 60)
    assert bench.written() == []
    running.stop()


def test_the_offsets_of_records_that_were_left_out_as_bad_count(bench: Bench) -> None:
    bench.script.value = lambda number: "bad" if number % 2 else str(number)
    bench.script.released = 40
    step = StepSpec("fails", PluginSpec(PluginRef("faulty", "FailingTransform"), {}))
    running = bench.start(bench.spec(steps=[step], errors={"errors.tolerance": "all"}))
    await_(lambda: bench.offset() == 40, "the last offset", 60)
    assert bench.written() == [str(number) for number in range(0, 40, 2)]
    running.stop()


# --- pause, stop, give up ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL])
def test_pause_and_stop_commit_what_was_polled(bench: Bench, boundary: Boundary) -> None:
    bench.script.released = 100
    running = bench.start(bench.spec(boundary))
    await_(lambda: metrics(running).polled.total == 100, "polled")
    running.thread.pause()
    running.await_event("paused")
    assert bench.offset() == 100
    bench.check(100)
    bench.script.released = 150
    running.thread.resume()
    running.await_event("running", 2)
    await_(lambda: metrics(running).polled.total == 150, "polled")
    running.stop()
    bench.check(150)
    assert bench.script.starts == [0]


def test_a_pause_does_not_end_a_transaction_in_the_place_of_its_task(bench: Bench) -> None:
    """What the task has left open is dropped, and polled again after the pause."""
    bench.script.asks = at(9, 39)
    bench.script.released = 30
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    await_(lambda: metrics(running).polled.total == 30, "polled")
    running.thread.pause()
    running.await_event("paused")
    bench.check(10)
    bench.script.released = 40
    running.thread.resume()
    bench.check(40)
    running.await_event("running", 2)
    running.stop()
    assert bench.script.starts == [0, 10]


def test_a_stop_does_not_end_a_transaction_in_the_place_of_its_task_either(bench: Bench) -> None:
    bench.script.asks = at(9)
    bench.script.released = 30
    running = bench.start(bench.spec(Boundary.CONNECTOR))
    await_(lambda: metrics(running).polled.total == 30, "polled")
    running.stop()
    bench.check(10)


def test_a_task_that_starts_paused_takes_nothing_before_it_is_resumed(bench: Bench) -> None:
    bench.script.released = 10
    running = bench.start(bench.spec(state=TargetState.PAUSED))
    running.await_event("paused")
    assert running.desk.events == ["paused"]
    running.thread.resume()
    bench.check(10)
    running.stop()


def test_a_task_that_was_given_up_on_never_commits(bench: Bench) -> None:
    """Its successor takes over, whatever it had open."""
    bench.script.released = 100
    hanging = threading.Event()

    def hang(*_: object) -> None:
        if bench.script.starts == [0] and bench.script.released > 100:
            hanging.set()
            time.sleep(5)

    bench.script.asks = hang
    running = bench.start(bench.spec(Boundary.INTERVAL, 60_000))
    await_(lambda: metrics(running).polled.total == 100, "polled")
    bench.script.released = 200
    assert hanging.wait(20)
    running.thread.stop()
    running.thread.cancel()
    again = bench.start()
    bench.check(200)
    again.stop()
    assert bench.script.starts == [0, 0]


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_a_topic_of_its_own_has_the_offsets_and_the_workers_has_a_copy(bench: Bench) -> None:
    own = f"{bench.name}-own"
    bench.create(own, **{"cleanup.policy": "compact"})
    merged = MergedOffsets(bench.offset_log(own), bench.log)
    bench.script.released = 50
    running = bench.start(offsets=lambda _: merged)
    await_(lambda: bench.offset(own) == 50, "the offset", 60)
    await_(lambda: bench.offset() == 50, "its copy")
    bench.check(50)
    running.stop()
    assert bench.script.starts == [0]


def test_an_offset_of_the_workers_topic_is_where_a_topic_of_its_own_begins(bench: Bench) -> None:
    bench.script.released = 10
    bench.start().stop()
    running = bench.start()
    bench.check(10)
    running.stop()
    own = f"{bench.name}-own"
    bench.create(own, **{"cleanup.policy": "compact"})
    merged = MergedOffsets(bench.offset_log(own), bench.log)
    bench.script.released = 20
    again = bench.start(offsets=lambda _: merged)
    bench.check(20)
    again.stop()
    assert bench.script.starts[-1] == 10
