"""The pump: what was polled, through the chain, to its outlet, in order; and how it ends. Its thread is a real one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes import StatementRunner, TopicAdmin, errors_config
from source_fakes import (
    OFFSETS_TOPIC,
    STUBBORN,
    TOLERANT,
    WAIT_S,
    Outlet,
    Source,
    Stubborn,
    record,
    records,
    source_table,
)

from headgate.api import ConnectError, SourceTable
from headgate.model import EngineUnavailable, NewTopic, TopicGroup
from headgate.pipeline.blob import JobFailed, source_records_job
from headgate.pipeline.failure import Failure
from headgate.tasks.control import Rewind, Stopped
from headgate.tasks.reporter import Reporter
from headgate.tasks.source import pump as pump_module
from headgate.tasks.source.polled import End, Polled
from headgate.tasks.source.pump import Pump

AGAIN = errors_config(retry_timeout="60000")


class Pumping:
    """A pump, its outlet, and all that it uses; ended behind the test."""

    def __init__(self, source: Source, **more: Any) -> None:
        self.source = source
        self.outlet = Outlet()
        self.reported: list[Failure] = []
        spec = source.spec(**more)
        self.pump = Pump(
            spec, source.control, source.listener, source.ports, source.metrics, spec.task_class(), self._made
        )

    def _made(self, reporter: Reporter) -> Outlet:
        tell = reporter.failed

        def failed(failure: Failure) -> Any:
            self.reported.append(failure)
            return tell(failure)

        reporter.failed = failed  # type: ignore[method-assign]
        return self.outlet

    def put(self, *contents: Any) -> None:
        for each in contents:
            self.pump.put(each if isinstance(each, Polled) else Polled.of(each))

    def thread(self) -> threading.Thread:
        return self.pump._thread

    def ended(self) -> BaseException | None:
        """Waits for the end of its thread: what it failed with."""
        self.thread().join(WAIT_S)
        assert not self.thread().is_alive()
        return self.outlet.failure


Start = Callable[..., Pumping]


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def make(source: Source) -> Iterator[Start]:
    """Makes a pump that is not started yet."""
    made: list[Pumping] = []

    def new(**more: Any) -> Pumping:
        made.append(Pumping(source, **more))
        return made[-1]

    Stubborn.failures.clear()
    yield new
    source.control.cancel()
    for each in made:
        each.pump.abandon()
        if each.thread().ident is not None:
            each.thread().join(WAIT_S)
            assert not each.thread().is_alive(), "the pump does not end"


def concurrently(function: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    """In another thread; what it raised, if anything, is in the list."""
    raised: list[Any] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


# --- in order ---------------------------------------------------------------------------------------------------------


def test_what_was_polled_goes_through_the_chain_to_the_outlet(make: Start, source: Source) -> None:
    pumping = make(steps=[STUBBORN])
    pumping.put([record("a", 1), record("dropped", 2), record("b", 3)], source_table(4, 5))
    pumping.pump.start()
    pumping.pump.drain()
    assert pumping.outlet.added == [("a", "a"), ("b", "b"), ("4", "4"), ("5", "5")]
    assert [polled.offsets[0][1]["n"] for batch in pumping.outlet.batches for polled in batch.polled] == [3, 5]
    assert source.metrics.active == 5, "the outlet says when they are not any more"


def test_what_waits_together_travels_together(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(records(1), records(2), records(3))
    pumping.pump.start()
    pumping.pump.drain()
    assert [len(each.blobs) for each in source.engine.submissions] == [1]
    (batch,) = pumping.outlet.batches
    assert (batch.rows, batch.more) == ([3], False)


def test_the_order_of_batches_is_kept_when_results_come_out_of_order(make: Start, source: Source) -> None:
    pumping = make()
    source.engine.busy = True
    pumping.outlet.at("commit if due", lambda: pumping.put(records(2)))  # while the first one is under way
    pumping.put(records(1))
    pumping.pump.start()
    source.await_under_way(2)
    source.engine.waiting[1].run()
    assert pumping.outlet.values == []
    source.engine.waiting[0].run()
    source.engine.waiting.clear()
    pumping.pump.drain()
    assert pumping.outlet.values == ["1", "2"]
    assert len(pumping.outlet.batches) == 2


def test_a_batch_ends_where_its_task_ends_a_transaction(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(records(1), Polled.of(records(2), End.COMMIT), Polled.of(records(3), End.ABORT), records(4))
    pumping.pump.start()
    pumping.pump.drain()
    assert [(batch.end, batch.rows) for batch in pumping.outlet.batches] == [
        (End.COMMIT, [2]),
        (End.ABORT, [1]),
        (None, [1]),
    ]
    assert pumping.outlet.values == ["1", "2", "3", "4"]
    assert [len(each.blobs) for each in source.engine.submissions] == [3], "one job for all"


def test_more_than_a_batch_waits_for_the_next(make: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump_module, "_BATCH_BYTES", 600)  # a record counts as 500
    pumping = make()
    pumping.put(records(1), records(2), records(3))
    pumping.pump.start()
    pumping.pump.drain()
    assert [(batch.rows, batch.more) for batch in pumping.outlet.batches] == [([2], True), ([1], False)]


def test_a_table_without_rows_reaches_the_outlet_and_not_the_chain(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(source_table(offset=9))
    pumping.pump.start()
    pumping.pump.drain()
    assert source.engine.submissions[0].blobs == []
    (batch,) = pumping.outlet.batches
    assert (batch.rows, batch.polled[0].offsets) == ([], (({"p": 0}, {"n": 9}),))
    assert "add" not in pumping.outlet.calls


def test_large_tables_lie_on_a_shelf_until_they_are_handed_over(make: Start, source: Source, tmp_path: Path) -> None:
    source.engine.shelf_folder = str(tmp_path)
    source.engine.busy = True
    pumping = make()
    left: list[list[str]] = []
    pumping.outlet.at("settle", lambda: left.append(os.listdir(source.engine.shelves[0].folder)))
    large = pa.table({"value": ["x" * 100_000]})
    pumping.put(SourceTable(topic="t", table=large, source_partition=None, source_offset=None))
    pumping.pump.start()
    source.await_under_way(1)
    assert len(os.listdir(source.engine.shelves[0].folder)) == 1
    source.engine.run_all()
    pumping.pump.finish()
    assert left == [[]]
    assert len(pumping.outlet.values[0]) == 100_000
    assert pumping.ended() is None
    assert os.listdir(tmp_path) == []


def test_the_outlet_commits_when_it_is_due_though_nothing_is_polled(make: Start) -> None:
    pumping = make()
    pumping.outlet.at("due", None, 0.0, 0.0)
    pumping.pump.start()
    pumping.pump.drain()
    pumping.outlet.calls.await_item("commit if due", 2)


def test_the_outlet_may_commit_while_the_engine_works(make: Start, source: Source) -> None:
    pumping = make()
    source.engine.busy = True
    pumping.put(records(1))
    pumping.pump.start()
    pumping.outlet.calls.await_item("commit if due", 5)
    source.engine.run_all()
    pumping.pump.drain()
    assert pumping.outlet.values == ["1"]


# --- topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.kip(158, "topics are created before the first record gets there")
def test_a_topic_exists_before_its_first_record_is_sent_and_is_told(make: Start, source: Source) -> None:
    pumping = make(topic_groups=(TopicGroup("default", ".*", "", 1, 2),))
    source.admin.existing.add("u")
    at_add: list[list[str]] = []
    pumping.outlet.at("add", lambda: at_add.append([each.name for each in source.admin.made]))
    pumping.put(records(1), records(2, topic="u"))
    pumping.pump.start()
    pumping.pump.drain()
    pumping.put(records(3))
    pumping.pump.drain()
    assert at_add == [["t"]]
    assert source.admin.made == [NewTopic("t", 2, 1, {})]
    assert source.admin.asked == ["t", "u"]
    assert source.listener.topics == ["t", "u", "t"], "with every batch: they may have been reset since"


def test_a_topic_that_cannot_be_made_fails_the_task(make: Start, source: Source) -> None:
    source.admin = TopicAdmin(error=RuntimeError("not authorized"))
    pumping = make(topic_groups=(TopicGroup("default", ".*", "", 1, 2),))
    pumping.put(records(1))
    pumping.pump.start()
    assert isinstance(pumping.ended(), ConnectError)
    assert source.listener.topics == []
    assert pumping.outlet.values == []


def test_the_offsets_topic_of_transactions_is_forbidden(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(records(1, topic=OFFSETS_TOPIC))
    pumping.pump.start()
    failure = pumping.ended()
    assert isinstance(failure, ConnectError)
    assert "may not produce to their own offsets topics" in str(failure)
    assert (pumping.outlet.values, source.listener.topics) == ([], [])


# --- records that fail ------------------------------------------------------------------------------------------------


def test_a_record_is_tried_again_and_those_before_it_go_ahead(make: Start, source: Source) -> None:
    Stubborn.failures["again"] = 2
    pumping = make(steps=[STUBBORN], errors=AGAIN)
    at_pause: list[list[str]] = []
    source.control.while_waiting = [lambda: at_pause.append(pumping.outlet.values)] * 2
    pumping.put([record("a", 1), record("again", 2), record("b", 3)], source_table(4))
    pumping.pump.start()
    pumping.pump.drain()
    assert pumping.outlet.added == [("a", "a"), ("again", "again"), ("b", "b"), ("4", "4")]
    assert at_pause == [["a"], ["a"]]
    assert source.metrics.errors.retries == 2
    assert len(pumping.outlet.batches) == 1
    assert sum(source.control.waits) == pytest.approx(0.9), "300 ms, then twice as long"


def test_meanwhile_the_outlet_commits_when_it_is_due(make: Start, source: Source) -> None:
    Stubborn.failures["again"] = 1
    pumping = make(steps=[STUBBORN], errors=AGAIN)
    counts: list[int] = []
    source.control.while_waiting = [lambda: counts.append(pumping.outlet.calls.count("commit if due"))]
    pumping.put([record("again", 1)])
    pumping.pump.start()
    pumping.pump.drain()
    assert pumping.outlet.calls.count("commit if due") > counts[0]


def test_who_shall_stop_does_not_try_again_and_settles_what_was_sent(make: Start, source: Source) -> None:
    Stubborn.failures["again"] = 1_000
    pumping = make(steps=[STUBBORN], errors=AGAIN)
    source.control.while_waiting = [source.control.stop]
    pumping.put([record("a", 1)])
    pumping.pump.start()
    pumping.pump.drain()
    pumping.outlet.calls.clear()
    pumping.put([record("again", 2)])
    assert isinstance(pumping.ended(), Stopped)
    assert pumping.outlet.calls.count("settle") == 1
    assert len(pumping.outlet.batches) == 1, "its batch has not ended"


def test_a_bad_record_is_left_out_where_that_is_tolerated_and_told_with_its_place(make: Start, source: Source) -> None:
    pumping = make(steps=[STUBBORN], errors=TOLERANT)
    bad = pa.table({"value": ["c", "bad", "d"]})
    pumping.put(
        [record("a", 1), record("bad", 2), record("b", 3)],
        SourceTable(topic="t", table=bad, source_partition={"p": 1}, source_offset={"n": 9}),
    )
    pumping.pump.start()
    pumping.pump.drain()
    assert pumping.outlet.added == [(value, value) for value in ("a", "b", "c", "d")]
    places = [(each.record.source_partition, each.record.source_offset) for each in pumping.reported]  # type: ignore[union-attr]
    assert places == [({"p": 0}, {"n": 2}), ({"p": 1}, {"n": 9})]
    assert source.metrics.errors.skipped == 2


def test_a_bad_record_fails_the_task_where_it_is_not_and_is_told_all_the_same(make: Start) -> None:
    pumping = make(steps=[STUBBORN])
    pumping.put([record("a", 1), record("bad", 2)])
    pumping.pump.start()
    failure = pumping.ended()
    assert isinstance(failure, JobFailed)
    assert "a bad record" in str(failure)
    assert len(pumping.reported) == 1
    assert (pumping.outlet.values, pumping.outlet.batches) == ([], [])


# --- statements -------------------------------------------------------------------------------------------------------


def with_statement(source: Source, **more: Any) -> StatementRunner:
    """One that makes a record of all values; the chain runs before and behind it."""
    from headgate.pipeline.blob import pack_spec

    chain = source.spec(**more).chain

    def select(tables: Any) -> Any:
        values = [value.decode() for table in tables for value in table["value"].to_pylist()]
        return [source_records_job(pack_spec(chain), [record("+".join(values))])]

    source.engine.runner = StatementRunner(chain, select)
    return source.engine.runner


def test_what_a_statement_makes_stands_for_the_whole_batch(make: Start, source: Source) -> None:
    runner = with_statement(source)
    pumping = make()
    pumping.put(records(1, 2), source_table(3))
    pumping.pump.start()
    pumping.pump.finish()
    assert pumping.outlet.added == [("1+2+3", "3")]
    assert runner.asked == [3]
    pumping.pump.abandon()
    assert runner.closed


def test_a_statement_goes_again_when_the_engine_was_lost_under_way(make: Start, source: Source) -> None:
    runner = with_statement(source)
    runner.lost = 2
    pumping = make()
    pumping.put(records(1))
    pumping.pump.start()
    pumping.pump.drain()
    assert runner.asked == [1, 1, 1]
    assert source.engine.asked_ready == 2
    assert pumping.outlet.values == ["1"]


def test_a_batch_without_rows_is_not_asked_about(make: Start, source: Source) -> None:
    runner = with_statement(source)
    pumping = make()
    pumping.put(source_table(offset=3))
    pumping.pump.start()
    pumping.pump.drain()
    assert runner.asked == []
    assert len(pumping.outlet.batches) == 1


# --- no room ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(make: Start, source: Source) -> Pumping:
    """A pump whose buffer is full, while one batch is under way in the engine."""
    source.engine.busy = True
    pumping = make(buffer_bytes=600)  # a record counts as 500
    pumping.put(records(1))
    pumping.pump.start()
    source.await_under_way(1)
    pumping.outlet.calls.await_item("commit if due", 2)  # it waits for the engine, and takes nothing more
    pumping.put(records(2), records(3))
    return pumping


def test_put_waits_for_room(full: Pumping, source: Source) -> None:
    putting, raised = concurrently(lambda: full.put(records(4)))
    looks = full.outlet.calls.count("commit if due")
    full.outlet.calls.await_item("commit if due", looks + 5)
    assert putting.is_alive()
    source.engine.busy = False
    source.engine.run_all()
    putting.join(WAIT_S)
    assert (putting.is_alive(), raised) == (False, [])
    full.pump.drain()
    assert full.outlet.values == ["1", "2", "3", "4"]


def test_put_that_waits_comes_out_with_what_the_pump_failed_with(full: Pumping, source: Source) -> None:
    putting, raised = concurrently(lambda: full.put(records(4)))
    error = EngineUnavailable("the driver died")
    source.engine.waiting.pop().future.set_exception(error)
    putting.join(WAIT_S)
    assert raised == [error]


def test_put_that_waits_comes_out_when_the_task_is_given_up_on(full: Pumping, source: Source) -> None:
    putting, raised = concurrently(lambda: full.put(records(4)))
    source.control.cancel()
    putting.join(WAIT_S)
    assert not putting.is_alive()
    assert [type(each) for each in raised] in ([], [Stopped])
    assert isinstance(full.ended(), Stopped)


# --- how it ends ------------------------------------------------------------------------------------------------------


def test_drain_returns_when_all_was_settled_and_the_pump_goes_on(make: Start, source: Source) -> None:
    source.engine.busy = True
    pumping = make()
    at_settle: list[list[str]] = []
    pumping.outlet.at("settle", *[lambda: at_settle.append(pumping.outlet.values)] * 2)
    pumping.put(records(1))
    pumping.pump.start()
    pumping.put(records(2))
    draining, raised = concurrently(pumping.pump.drain)
    source.await_under_way(1)
    source.engine.busy = False
    assert pumping.outlet.calls.count("settle") == 0
    source.engine.run_all()
    draining.join(WAIT_S)
    assert (draining.is_alive(), raised, at_settle) == (False, [], [["1", "2"]])
    pumping.put(records(3))
    pumping.pump.drain()
    assert at_settle[1] == ["1", "2", "3"]


@pytest.mark.parametrize("call", ["add", "end", "settle"])
def test_drain_comes_out_with_what_the_outlet_raised(make: Start, call: str) -> None:
    pumping = make()
    error = ValueError(call)
    pumping.outlet.at(call, error)
    pumping.put(records(1))
    pumping.pump.start()
    with pytest.raises(ValueError, match=call):
        pumping.pump.drain()
    assert pumping.ended() is error


def test_finish_drains_and_ends(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(records(1))
    pumping.pump.start()
    pumping.pump.finish()
    assert pumping.ended() is None
    assert pumping.outlet.values == ["1"]
    assert [each for each in pumping.outlet.calls if each in ("end", "settle", "close")] == ["end", "settle", "close"]
    assert source.script.calls == []


def test_abandon_before_start_closes_what_the_thread_would_have_closed(make: Start, source: Source) -> None:
    pumping = make()
    pumping.put(records(1))
    pumping.pump.abandon()
    assert pumping.thread().ident is None
    assert pumping.outlet.calls == ["close"]
    assert source.engine.runner is not None
    assert source.engine.runner.closed
    assert source.engine.submissions == []


def test_abandon_drops_what_has_not_been_submitted_and_settles_nothing(make: Start, source: Source) -> None:
    source.engine.busy = True
    pumping = make()
    pumping.outlet.at("commit if due", lambda: pumping.put(records(2)))  # while the first one is under way
    pumping.put(records(1))
    pumping.pump.start()
    source.await_under_way(2)
    pumping.outlet.calls.await_item("commit if due", 3)  # it waits for the first result
    pumping.put(records(3))
    pumping.pump.abandon()
    source.engine.busy = False
    source.engine.run_all()
    pumping.pump.join()
    assert pumping.outlet.values == ["1", "2"]
    assert "settle" not in pumping.outlet.calls
    assert pumping.outlet.calls[-1] == "close"


def test_a_dead_letter_queue_that_has_failed_for_good_keeps_nothing_open(make: Start, source: Source) -> None:
    source.admin.existing.add("dead")
    pumping = make(steps=[STUBBORN], errors=errors_config(tolerance="all", deadletterqueue_topic_name="dead"))
    source.letters.failure = "fenced"
    pumping.put([record("bad", 1)])
    pumping.pump.start()
    failure = pumping.ended()
    assert isinstance(failure, ConnectError)
    assert "The dead letter producer failed for good: fenced" in str(failure)
    assert source.letters.closed
    assert pumping.outlet.calls[-1] == "close"


def test_the_engines_end_is_the_tasks_and_nothing_is_handed_over(make: Start, source: Source) -> None:
    """An engine says so only when it cannot go again by itself."""
    error = EngineUnavailable("keeps dying")
    source.engine.failures = [error]
    pumping = make()
    pumping.put(records(1))
    pumping.pump.start()
    assert pumping.ended() is error
    assert pumping.outlet.batches == []
    with pytest.raises(EngineUnavailable):
        pumping.pump.check()


def test_a_task_that_is_given_up_on_does_not_wait_for_the_engine(make: Start, source: Source) -> None:
    source.engine.busy = True
    pumping = make()
    pumping.put(records(1))
    pumping.pump.start()
    source.await_under_way(1)
    source.control.stop()
    pumping.outlet.calls.await_item("commit if due", 5)  # a stop alone still wants the result
    source.control.cancel()
    assert isinstance(pumping.ended(), Stopped)


def test_a_failure_is_told_to_the_task_at_once_though_it_sits_in_a_poll(make: Start, source: Source) -> None:
    pumping = make()
    error = ValueError("a bug")
    pumping.outlet.at("end", error)
    pumping.pump.start()
    pumping.put(records(1))
    source.script.calls.await_item("stop requested")
    with pytest.raises(ValueError, match="a bug"):
        source.control.check()
    with pytest.raises(ValueError, match="a bug"):
        pumping.pump.check()
    with pytest.raises(ValueError, match="a bug"):
        pumping.put(records(2))
    assert pumping.ended() is error
    assert pumping.outlet.calls[-1] == "close"


def test_the_task_fails_with_what_the_outlet_makes_of_it(make: Start, source: Source) -> None:
    pumping = make()
    pumping.outlet.turned_into = ConnectError("in other words")
    pumping.outlet.at("end", ValueError("a bug"))
    pumping.put(records(1))
    pumping.pump.start()
    pumping.ended()
    with pytest.raises(ConnectError, match="in other words"):
        source.control.check()


def test_a_rewind_wakes_the_task_up_and_does_not_fail_it(make: Start, source: Source) -> None:
    pumping = make()
    pumping.outlet.turned_into = Rewind()
    pumping.outlet.at("end", ValueError("a bug"))
    pumping.put(records(1))
    pumping.pump.start()
    pumping.pump.join()
    source.script.calls.await_item("stop requested")
    source.control.check()
    with pytest.raises(Rewind):
        pumping.pump.check()
