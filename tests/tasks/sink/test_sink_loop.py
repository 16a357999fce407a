"""The loop of a sink task: what is put and committed, what a task may wish, and what fails it. No Kafka, no Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes import StatementRunner, chain_spec, errors_config
from sink_bench import P0, P1, SinkBench, values

from headgate.api import ConnectError, FrameSinkTask, RetriableError, SinkTask, TableSinkTask
from headgate.model import ChainSpec, ConnectorType, EngineUnavailable, PluginRef, PluginSpec, StepSpec, TopicPartition
from headgate.pipeline import blob
from headgate.tasks.control import Stopped

KINDS = [SinkTask, TableSinkTask, FrameSinkTask]


def fails_on(value: str) -> StepSpec:
    return StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "FailOn"), {"value": value}))


# --- from the first record to the last --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_put_in_order_and_the_task_ends_as_it_expects(kind: type) -> None:
    bench = SinkBench({P0: 25, P1: 3}, kind)
    bench.run()
    assert bench.journal == [
        ("start",),
        ("open", [P0, P1]),
        ("put", values(P0, 0, 10)),
        ("put", values(P0, 10, 20)),
        ("put", values(P0, 20, 25) + values(P1, 0, 3)),
        ("pre_commit", {P0: 25, P1: 3}),
        ("commit", {P0: 25, P1: 3}),
        ("close", [P0, P1]),
        ("stop",),
        ("leave group",),
    ]
    assert bench.listener.events == ["running"]
    assert (bench.metrics.read.total, bench.metrics.sent.total, bench.metrics.active) == (28, 28, 0)
    assert bench.engine.runner is not None
    assert bench.engine.reader is not None
    assert (bench.engine.runner.closed, bench.engine.reader.closed) == (True, True)


def test_while_the_engine_has_one_batch_the_next_one_is_fetched() -> None:
    bench = SinkBench({P0: 20})
    bench.engine.busy = True
    seen: list[tuple[int, int]] = []

    def look() -> None:
        seen.append((len(bench.engine.waiting), bench.metrics.active))
        bench.engine.run_all()
        bench.engine.busy = False

    bench.then(look)
    bench.run()
    assert seen == [(1, 10)]
    assert bench.consumer.seconds[:2] == [0.5, 0]  # who has work does not wait for more
    assert bench.puts == [values(P0, 0, 10), values(P0, 10, 20)]


def test_who_had_no_records_for_long_turns_half_as_often() -> None:
    bench = SinkBench({P0: 10})
    bench.then(lambda: None)
    bench.then(lambda: bench.clock.move(5.1))
    bench.then(lambda: None)
    bench.run()
    assert bench.consumer.seconds == [0.5, 0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("config", "subscribed"),
    [
        ({"topics": "a, b,,"}, (["a", "b"], None)),
        ({"topics.regex": "a.*"}, ([], "a.*")),
        ({"topics": "a", "topics.regex": ""}, (["a"], None)),
    ],
)
def test_the_topics_of_the_connector(config: dict[str, str], subscribed: tuple[list[str], str | None]) -> None:
    bench = SinkBench({}, connector_config=config)
    bench.run()
    assert bench.consumer.subscribed == subscribed


@pytest.mark.parametrize(("kind", "most"), [(SinkTask, 5_000), (TableSinkTask, 20_000), (FrameSinkTask, 20_000)])
def test_how_much_is_fetched_at_once(kind: type, most: int) -> None:
    bench = SinkBench({}, kind, consumer={})
    bench.run()
    assert set(bench.consumer.sizes) == {most}


@pytest.mark.kip(558, "a topic that gets records again after a reset is listed again")
def test_topics_are_told_with_every_batch() -> None:
    """Whoever hears of them may have been told to forget them since."""
    other = TopicPartition("u", 0)
    bench = SinkBench({P0: 12, P1: 12, other: 12}, most=12)
    bench.run()
    assert bench.listener.topics == ["t", "t", "u"]


def test_large_batches_go_over_a_shelf_and_leave_nothing_on_it(tmp_path: Path) -> None:
    bench = SinkBench({P0: 9000}, most=4500)
    bench.engine.shelf_folder = str(tmp_path)
    kept: list[int] = []
    bench.on_put = [None, lambda _: kept.append(len(list(Path(bench.engine.shelves[0].folder).iterdir())))]
    bench.run()
    assert bench.put == values(P0, 0, 9000)
    assert kept == [0]  # what was put is not kept
    assert list(tmp_path.iterdir()) == []


# --- what comes before the first record -------------------------------------------------------------------------------


def test_a_task_that_is_to_be_paused_is_not_even_made_before_it_is_resumed() -> None:
    bench = SinkBench({P0: 3}, paused=True)
    seen: list[tuple[list[str], object]] = []
    bench.control.while_waiting = [
        lambda: seen.append((list(bench.listener.events), bench.task)),
        lambda: bench.control.pause(False),
    ]
    bench.run()
    assert seen == [(["paused"], None)]
    assert bench.listener.events == ["paused", "running"]
    assert bench.put == values(P0, 0, 3)


def test_a_task_that_is_stopped_before_it_is_resumed_never_was() -> None:
    bench = SinkBench({P0: 3}, paused=True)
    bench.control.while_waiting = [bench.control.stop]
    bench.run()
    assert (bench.journal, bench.listener.events, bench.engine.asked_ready) == ([], ["paused"], 0)


def test_without_an_engine_there_is_no_task() -> None:
    bench = SinkBench({P0: 3})
    bench.engine.readiness = [EngineUnavailable("Java was not found")]
    with pytest.raises(EngineUnavailable, match="Java was not found"):
        bench.run()
    assert (bench.journal, bench.task) == ([], None)


def test_a_task_that_cannot_start_is_stopped_and_leaves() -> None:
    bench = SinkBench({P0: 3})
    bench.on_start = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal == [("start",), ("stop",), ("leave group",)]
    assert bench.listener.events == []


def test_a_wrong_setting_is_found_before_the_task_joins_its_group() -> None:
    bench = SinkBench({P0: 3}, steps=[StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "FailOn")))])
    with pytest.raises(Exception, match="value"):
        bench.run()
    assert bench.consumer.config == {}
    assert bench.journal == []


# --- commits ----------------------------------------------------------------------------------------------------------


def test_offsets_are_committed_when_it_is_time_after_all_that_is_under_way() -> None:
    bench = SinkBench({P0: 30}, flush_interval_ms=60_000)
    bench.then(lambda: bench.clock.move(59), lambda: bench.clock.move(1))
    bench.run()
    assert bench.of("put", "commit") == [
        ("put", values(P0, 0, 10)),
        ("put", values(P0, 10, 20)),
        ("put", values(P0, 20, 30)),  # fetched in the same turn
        ("commit", {P0: 30}),
    ]
    assert bench.metrics.commits == 1


def test_a_task_may_ask_for_a_commit() -> None:
    bench = SinkBench({P0: 30})
    bench.on_put = [lambda _: bench.context.request_commit()]
    bench.run()
    assert [entry[1] for entry in bench.of("commit")] == [{P0: 20}, {P0: 30}]


def test_what_kafka_does_not_take_is_committed_the_next_time() -> None:
    bench = SinkBench({P0: 30})
    bench.consumer.commit_errors = [OSError("no broker")]
    bench.on_put = [lambda _: bench.context.request_commit()]
    bench.run()
    assert bench.put == values(P0, 0, 30)
    assert [entry[1] for entry in bench.of("pre_commit")] == [{P0: 20}, {P0: 30}]
    assert [entry[1] for entry in bench.of("commit")] == [{P0: 30}]
    assert bench.metrics.commit_failures == 1


def test_a_task_that_refuses_gets_the_same_records_again() -> None:
    bench = SinkBench({P0: 30})
    bench.on_put = [lambda _: bench.context.request_commit(), None, lambda _: bench.context.request_commit()]
    bench.on_pre_commit = [None, OSError("the warehouse is closed")]
    bench.run()
    assert bench.of("put", "pre_commit", "commit", "open", "close") == [
        ("open", [P0]),
        ("put", values(P0, 0, 10)),
        ("put", values(P0, 10, 20)),
        ("pre_commit", {P0: 20}),
        ("commit", {P0: 20}),
        ("put", values(P0, 20, 30)),
        ("pre_commit", {P0: 30}),
        ("put", values(P0, 20, 30)),
        ("pre_commit", {P0: 30}),
        ("commit", {P0: 30}),
        ("close", [P0]),
    ]


def test_a_task_that_refuses_at_the_end_has_committed_nothing() -> None:
    bench = SinkBench({P0: 5})
    bench.on_pre_commit = [OSError("the warehouse is closed")]
    bench.run()
    assert bench.consumer.committed == {}
    assert not any(bench.consumer.sought)  # it is leaving: nobody goes back
    assert bench.journal[-3:] == [("close", [P0]), ("stop",), ("leave group",)]


def commit_after_each_put(bench: SinkBench) -> None:
    bench.on_put = [lambda _: bench.context.request_commit()] * 20


def test_a_task_that_keeps_refusing_gets_its_records_again_after_ever_longer_pauses() -> None:
    bench = SinkBench({P0: 5})
    commit_after_each_put(bench)
    bench.on_pre_commit = [RetriableError("the warehouse is full")] * 4
    began = bench.clock()
    bench.run()
    assert bench.puts == [values(P0, 0, 5)] * 5
    assert bench.clock() - began >= 1 + 2 + 4 + 8
    assert bench.consumer.committed == {P0: 5}
    assert (bench.metrics.errors.retries, bench.metrics.commit_failures) == (4, 4)


def test_a_task_that_refuses_for_no_good_reason_fails_the_third_time() -> None:
    bench = SinkBench({P0: 5})
    commit_after_each_put(bench)
    bench.on_pre_commit = [OSError("the warehouse is closed")] * 3
    with pytest.raises(ConnectError, match="3 times in a row, without a commit in between: OSError: the warehouse is"):
        bench.run()
    assert bench.puts == [values(P0, 0, 5)] * 3
    assert bench.consumer.committed == {}, (
        "what it refused may be lost to it: nothing of it is committed on its way out"
    )
    assert bench.of("pre_commit")[-1] == ("pre_commit", {P0: 0})
    assert bench.journal[-3:] == [("close", [P0]), ("stop",), ("leave group",)]


def test_a_stop_ends_such_a_pause() -> None:
    bench = SinkBench({P0: 5})
    commit_after_each_put(bench)
    bench.on_pre_commit = [RetriableError("the warehouse is full")]
    bench.control.while_waiting = [bench.control.stop]
    with pytest.raises(Stopped):
        bench.run()
    assert bench.puts == [values(P0, 0, 5)]


def test_a_task_that_waits_within_a_put_hears_that_it_shall_stop() -> None:
    bench = SinkBench({P0: 5})

    def wait(_: object) -> None:
        heard: list[str] = []
        bench.task.stop_requested = lambda: heard.append("stop")
        bench.control.stop()
        bench.loop.wake()
        assert heard == ["stop"]
        raise RetriableError("it waited for the warehouse")

    bench.loop.wake()  # before there is a task
    bench.on_put = [wait]
    with pytest.raises(Stopped):
        bench.run()
    assert bench.consumer.committed == {}


def test_offsets_wait_for_dead_letters() -> None:
    errors = errors_config(tolerance="all", deadletterqueue_topic_name="dead")
    bench = SinkBench({P0: 5}, steps=[fails_on("0:3")], errors=errors)
    bench.letters.slow = True
    bench.then(bench.control.stop)
    bench.run()
    assert bench.put == ["0:0", "0:1", "0:2", "0:4"]
    assert bench.letters.sent == [("dead", b"0:3", None, (), 5)]
    assert bench.of("pre_commit", "commit") == []
    assert bench.letters.closed


# --- what a task wishes -----------------------------------------------------------------------------------------------


def test_a_task_that_goes_elsewhere_does_not_get_what_was_fetched_ahead() -> None:
    bench = SinkBench({P0: 30, P1: 5})
    bench.on_put = [lambda _: bench.context.offset(P0, 4)]
    bench.run()
    assert bench.puts[:2] == [values(P0, 0, 10), values(P0, 4, 14)]
    assert bench.put == values(P0, 0, 10) + values(P0, 4, 30) + values(P1, 0, 5)
    assert bench.metrics.active == 0
    assert bench.consumer.committed == {P0: 30, P1: 5}


def test_a_task_that_goes_elsewhere_when_nothing_is_under_way() -> None:
    bench = SinkBench({P0: 4})
    bench.on_put = [lambda _: bench.context.offset(P0, 2)]
    bench.then(lambda: None, lambda: None)
    bench.run()
    assert bench.put == ["0:0", "0:1", "0:2", "0:3", "0:2", "0:3"]


def test_there_is_no_way_back_behind_a_wish_that_was_granted() -> None:
    """Where the task says that it is it really is: a refusal goes back there, not to what it let pass before."""
    bench = SinkBench({P0: 20})
    bench.on_put = [lambda _: bench.context.offset(P0, 5), lambda _: bench.context.request_commit()]
    bench.on_pre_commit = [OSError("the warehouse is closed")]
    bench.run()
    assert bench.put == values(P0, 0, 10) + values(P0, 5, 20) + values(P0, 5, 20)


def test_partitions_that_a_task_pauses_are_not_fetched_until_it_resumes_them() -> None:
    bench = SinkBench({P0: 6, P1: 6}, most=2)
    seen: list[list[str]] = []

    def resume() -> None:
        seen.append(bench.put)
        bench.context.resume(P1)

    bench.on_put = [lambda _: bench.context.pause(P1)]
    bench.then(*[lambda: None] * 8, resume)
    bench.run()
    assert seen == [values(P0, 0, 6)]
    assert bench.put == values(P0, 0, 6) + values(P1, 0, 6)


def test_a_task_that_keeps_its_own_offsets_begins_there_and_the_group_hears_of_it() -> None:
    bench = SinkBench({P0: 8, P1: 2})
    bench.on_open = [lambda _: bench.context.offset(P0, 6)]
    bench.run()
    assert bench.put == values(P0, 6, 8) + values(P1, 0, 2)
    assert bench.consumer.committed == {P0: 8, P1: 2}


def test_a_task_that_lost_its_session_while_it_opens_does_so_again_with_the_next() -> None:
    bench = SinkBench({P0: 8}, TableSinkTask)
    asked: list[str] = []

    def lose(_: object) -> None:
        asked.append(bench.context.spark())
        raise ConnectionError("reset by peer")

    bench.on_open = [lose]
    bench.run()
    assert asked == [f"the session of {bench.spec.id}"]
    assert bench.of("open") == [("open", [P0])] * 2
    assert bench.put == values(P0, 0, 8)


def test_a_connection_that_is_not_sparks_fails_the_task_that_opens() -> None:
    bench = SinkBench({P0: 8}, TableSinkTask)
    bench.on_open = [ConnectionError("the warehouse hung up")]
    with pytest.raises(ConnectionError):
        bench.run()


def test_an_offset_that_the_topic_does_not_have_fails_the_task() -> None:
    bench = SinkBench({P0: 8})
    bench.on_open = [lambda _: bench.context.offset(P0, 9)]
    with pytest.raises(ConnectError, match="the topic ends at 8"):
        bench.run()
    assert bench.journal == [("start",), ("open", [P0]), ("stop",), ("leave group",)]


def test_the_longer_nothing_came_the_longer_a_turn_waits_for_it() -> None:
    bench = SinkBench({P0: 1})
    bench.then(*[partial(bench.clock.move, seconds) for seconds in (4.0, 1.0, 24.0, 1.0, 100.0)], lambda: None)
    bench.run()
    assert bench.consumer.seconds[1:7] == [0.0, 0.5, 1.0, 1.0, 2.0, 2.0]


# --- puts that fail ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_records_come_again_after_a_pause(kind: type) -> None:
    bench = SinkBench({P0: 15}, kind)
    bench.on_put = [RetriableError("busy"), RetriableError("still busy")]
    bench.run()
    assert bench.of("put in vain", "put") == [
        ("put in vain", values(P0, 0, 10)),
        ("put in vain", values(P0, 0, 10)),
        ("put", values(P0, 0, 10)),
        ("put", values(P0, 10, 15)),
    ]
    assert sum(bench.control.waits) == pytest.approx(2.0)
    assert bench.metrics.errors.retries == 2
    assert bench.consumer.committed == {P0: 15}
    assert bench.of("open", "close") == [("open", [P0]), ("close", [P0])]


def test_a_task_says_how_long_to_wait_and_what_it_paused_stays_so() -> None:
    bench = SinkBench({P0: 15, P1: 5}, most=5)
    seen: list[set[TopicPartition]] = []

    def busy(_: Any) -> None:
        bench.context.timeout(250)
        bench.context.pause(P1)
        raise RetriableError("busy")

    bench.on_put = [None, busy, lambda _: seen.append(set(bench.consumer.paused))]
    bench.control.while_waiting = [lambda: seen.append(set(bench.consumer.paused))]
    bench.run()
    assert sum(bench.control.waits) == pytest.approx(0.25)
    assert seen == [{P0, P1}, {P1}]  # while it waits, and when it is tried again
    assert bench.put == values(P0, 0, 15)


def test_anything_else_fails_the_task_and_what_was_put_before_is_committed() -> None:
    bench = SinkBench({P0: 30})
    bench.on_put = [None, ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal[-6:] == [
        ("put in vain", values(P0, 10, 20)),
        ("pre_commit", {P0: 10}),
        ("commit", {P0: 10}),
        ("close", [P0]),
        ("stop",),
        ("leave group",),
    ]


def test_a_record_that_the_chain_does_not_take_fails_the_task() -> None:
    bench = SinkBench({P0: 30}, steps=[fails_on("0:13")])
    with pytest.raises(blob.JobFailed, match="cannot take 0:13"):
        bench.run()
    assert bench.consumer.committed == {P0: 10}
    assert bench.metrics.errors.errors == 1


def test_a_task_that_cannot_even_close_is_stopped_and_leaves(caplog: pytest.LogCaptureFixture) -> None:
    bench = SinkBench({P0: 3})
    bench.on_close = [ZeroDivisionError()]
    bench.run()
    assert "The task could not be closed: ZeroDivisionError" in caplog.text
    assert bench.journal[-3:] == [("close", [P0]), ("stop",), ("leave group",)]


def test_a_task_that_cannot_even_close_fails_of_what_was_wrong_first(caplog: pytest.LogCaptureFixture) -> None:
    bench = SinkBench({P0: 30})
    bench.on_put = [ValueError("a bug")]
    bench.on_close = [ZeroDivisionError("another")]
    with pytest.raises(ValueError, match="a bug"):
        bench.run()
    assert "The task could not be closed: ZeroDivisionError: another" in caplog.text
    assert bench.journal[-2:] == [("stop",), ("leave group",)]


def test_something_that_the_task_depends_on_has_died() -> None:
    bench = SinkBench({P0: 30})
    bench.then(lambda: bench.control.fail(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.consumer.committed == {P0: 10}


# --- an engine that dies ----------------------------------------------------------------------------------------------


def test_an_engine_that_cannot_be_had_any_more_fails_the_task_and_what_was_put_is_committed() -> None:
    """One that can gives batches again by itself, see spark/residents.py."""
    bench = SinkBench({P0: 30})
    bench.engine.failures = [None, EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        bench.run()
    assert bench.put == values(P0, 0, 10)
    assert bench.consumer.committed == {P0: 10}


def test_a_frame_whose_engine_dies_under_the_task_is_made_again() -> None:
    bench = SinkBench({P0: 15}, FrameSinkTask)
    bench.on_put = [ConnectionError("reset by peer")]
    bench.run()
    assert bench.put == values(P0, 0, 15)
    assert (bench.engine.frames, bench.engine.asked_ready) == (3, 2)
    assert bench.consumer.committed == {P0: 15}


def test_a_statement_is_asked_again_when_the_engine_has_died_meanwhile() -> None:
    bench = SinkBench({P0: 15})
    bench.engine.runner = statements = StatementRunner(_cut(), lambda _: [])
    statements.lost = 1
    bench.run()
    assert statements.asked == [10, 10, 5]
    assert bench.engine.asked_ready == 2
    assert bench.put == []
    assert bench.consumer.committed == {P0: 15}


def _cut() -> ChainSpec:
    """A chain up to a statement."""
    sql = PluginSpec(PluginRef("headgate.pipeline.transforms.sql", "Sql"), {"statement": "SELECT * FROM records"})
    return chain_spec(ConnectorType.SINK, [StepSpec("sql", sql)])


def test_who_is_given_up_on_while_the_engine_works_ends_without_its_batch() -> None:
    bench = SinkBench({P0: 5})
    bench.engine.busy = True
    bench.then(bench.control.cancel)
    with pytest.raises(Stopped, match="given up on while Spark worked"):
        bench.run()
    assert bench.of("put", "pre_commit", "commit", "close") == []
    assert bench.journal[-2:] == [("abandon group",), ("stop",)]
