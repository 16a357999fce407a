"""A sink task that is far behind: what it does with what executors have read, and what makes it stop them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from fakes import RangeReader, StatementRunner, chain_spec, done, errors_config, failed
from sink_bench import P0, P1, SinkBench, values

from headgate.api import FrameSinkTask, RetriableError, SinkTask, TableSinkTask
from headgate.model import (
    ConnectorType,
    EngineUnavailable,
    PluginRef,
    PluginSpec,
    RangeUnread,
    StepSpec,
    TopicPartition,
)
from headgate.pipeline import blob
from headgate.tasks.control import Stopped
from headgate.tasks.ports import Ranges
from headgate.tasks.sink import catch_up
from headgate.tasks.sink.state import SinkStep


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is 20 records behind is far behind; executors read 8 at once."""
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 20)
    monkeypatch.setattr(catch_up, "_TOGETHER", 5)


def reader(bench: SinkBench) -> RangeReader:
    assert bench.engine.reader is not None
    return bench.engine.reader


def answers(bench: SinkBench, *given: Callable[[], Future[Any]] | None) -> None:
    """What becomes of the ranges that executors are to read."""
    bench.on_start = [lambda: reader(bench).answers.extend(given)]


def test_a_task_that_is_not_far_behind_reads_for_itself() -> None:
    bench = SinkBench({P0: 19})
    bench.run()
    assert reader(bench).asked == []
    assert bench.put == values(P0, 0, 19)
    assert bench.metrics.partitions == 1


@pytest.mark.parametrize("kind", [SinkTask, TableSinkTask, FrameSinkTask])
def test_a_task_that_is_far_behind_lets_executors_read(kind: type) -> None:
    bench = SinkBench({P0: 35, P1: 8}, kind, most=5)
    bench.run()
    # The first fetch was full, so it looked how far behind it is.
    assert reader(bench).asked == [
        {P0: (5, 13)},
        {P1: (0, 8)},
        {P0: (13, 21)},
        {P0: (21, 29)},
        {P0: (29, 35)},
    ]
    assert bench.puts[:3] == [values(P0, 0, 5), values(P0, 5, 13), values(P1, 0, 8)]
    assert sorted(bench.put) == sorted(values(P0, 0, 35) + values(P1, 0, 8))
    assert bench.consumer.committed == {P0: 35, P1: 8}
    assert (bench.metrics.read.total, bench.metrics.sent.total, bench.metrics.active) == (43, 43, 0)
    assert bench.listener.topics == ["t"] * 6
    assert reader(bench).frames is (kind is FrameSinkTask)
    assert reader(bench).cancelled == 0


def test_the_consumer_goes_on_after_what_was_read() -> None:
    bench = SinkBench({P0: 30}, most=5)
    bench.on_put = [None, None, lambda _: bench.consumer.topics.update({P0: 40})]  # more arrives meanwhile
    bench.run()
    assert reader(bench).asked[-1] == {P0: (29, 30)}
    assert bench.put == values(P0, 0, 40)
    assert bench.consumer.committed == {P0: 40}


def test_what_retention_has_taken_is_not_asked_for() -> None:
    bench = SinkBench({P0: 40}, most=5)
    bench.then(lambda: bench.consumer.low.update({P0: 33}))
    bench.consumer.known_lag = 0
    bench.on_put = [
        lambda _: setattr(bench.consumer, "known_lag", 20),
        lambda _: setattr(bench.consumer, "known_lag", 0),
    ]
    bench.run()
    assert reader(bench).asked == [{P0: (33, 40)}]
    assert bench.put == values(P0, 0, 10) + values(P0, 33, 40)
    assert bench.consumer.committed == {P0: 40}


def test_what_the_engine_has_is_put_before_ranges_are_read() -> None:
    bench = SinkBench({P0: 40}, most=5)
    bench.consumer.known_lag = 0
    bench.then(lambda: setattr(bench.consumer, "known_lag", 20), lambda: None)
    bench.on_put = [None, lambda _: setattr(bench.consumer, "known_lag", 0)]
    bench.run()
    assert bench.puts[:3] == [values(P0, 0, 5), values(P0, 5, 10), values(P0, 10, 18)]


def test_how_far_behind_is_looked_at_every_five_seconds_and_asked_when_no_records_tell_it() -> None:
    bench = SinkBench({P0: 3})
    seen: list[int | None] = []

    def look() -> None:
        seen.append(bench.metrics.lag)
        bench.consumer.known_lag = (bench.consumer.known_lag or 0) + 1
        bench.clock.move(2.5)

    bench.then(lambda: None, *[look] * 6)
    bench.run()
    assert seen == [3, 1, 1, 3, 3, 5], "and sooner while something is under way"
    assert bench.consumer.asked_lag[:3] == [False, True, True]


def test_a_lag_that_nobody_knows_is_not_told() -> None:
    """The broker goes away: what it said last is not true for long."""
    bench = SinkBench({P0: 3})
    seen: list[int | None] = []

    def look() -> None:
        seen.append(bench.metrics.lag)
        bench.consumer.away = True
        bench.clock.move(6)

    bench.then(lambda: None, look, lambda: None, look)
    bench.run()
    assert seen == [3, None]
    assert bench.metrics.lag is None


def test_while_nothing_is_fetched_the_lag_is_still_looked_at() -> None:
    bench = SinkBench({P0: 3})
    bench.then(lambda: None, lambda: bench.control.pause(True))

    def more_comes() -> None:
        bench.consumer.topics[P0] = 8
        bench.clock.move(6)

    def look() -> None:
        assert bench.metrics.lag == 5
        bench.control.stop()

    bench.control.while_waiting = [more_comes, lambda: None, look]
    bench.run()
    assert bench.consumer.asked_lag[-1]


def test_how_far_behind_is_looked_at_at_once_when_partitions_come() -> None:
    bench = SinkBench({P0: 3, P1: 0})
    bench.consumer.within_fetch = [lambda: bench.consumer.assign(P0), *[lambda: None] * 3]
    bench.then(lambda: bench.consumer.assign(P1))
    seen: list[int] = []
    bench.on_open = [None, lambda _: seen.append(bench.metrics.partitions)]
    bench.run()
    assert (seen, bench.metrics.partitions) == ([1], 2)


def test_offsets_are_committed_between_two_pieces() -> None:
    bench = SinkBench({P0: 30}, most=5)
    bench.on_put = [None, lambda _: bench.clock.move(60)]
    bench.run()
    assert [entry[1] for entry in bench.of("commit")] == [{P0: 13}, {P0: 30}]
    assert bench.put == values(P0, 0, 30)


def test_a_commit_that_the_task_asks_for_comes_after_the_piece() -> None:
    bench = SinkBench({P0: 30}, most=5)
    bench.on_put = [None, lambda _: bench.context.request_commit()]
    bench.run()
    assert [entry[1] for entry in bench.of("commit")] == [{P0: 13}, {P0: 30}]
    assert bench.put == values(P0, 0, 30)


@pytest.mark.parametrize("errors", [{}, errors_config(tolerance="all")])
@pytest.mark.parametrize(
    "steps", [[], [StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "Append"), {"suffix": ""}))]]
)
def test_frames_are_for_chains_that_cannot_fail_or_may_fail_as_a_whole(
    errors: dict[str, str], steps: list[StepSpec]
) -> None:
    """A frame cannot tell of single records that failed."""
    bench = SinkBench({P0: 30}, FrameSinkTask, most=5, errors=errors, steps=steps)
    bench.run()
    assert reader(bench).frames is (not errors)
    assert bench.put == values(P0, 0, 30)


def test_less_is_read_at_once_for_a_statement_which_wants_to_see_it_all() -> None:
    sql = PluginSpec(PluginRef("headgate.pipeline.transforms.sql", "Sql"), {"statement": "SELECT * FROM records"})
    bench = SinkBench({P0: 28}, FrameSinkTask, most=5)
    first = chain_spec(ConnectorType.SINK, [StepSpec("sql", sql)])
    bench.engine.runner = StatementRunner(first, lambda _: [])
    bench.run()
    assert not reader(bench).frames
    assert [end - start for each in reader(bench).asked for start, end in each.values()] == [5, 5, 5, 5, 3]
    assert bench.engine.runner.asked == [5, 5, 5, 5, 5, 3]


def test_its_room_bounds_what_is_fetched_ahead_and_what_is_read_at_once() -> None:
    bench = SinkBench({P0: 30}, most=5, buffer_bytes=20)
    bench.run()
    assert bench.consumer.buffer_bytes == 20
    sizes = [end - start for each in reader(bench).asked for start, end in each.values()]
    assert sizes == [1] * 25, "eight of records that have room"
    assert bench.put == values(P0, 0, 30)


# --- what ends it early -----------------------------------------------------------------------------------------------


def during(bench: SinkBench, act: Callable[[], object], piece: Ranges | None = None) -> None:
    """While the second piece is read: 5 records were fetched and put, then 8 read, and 8 more are under way."""
    slow: Future[Any] = Future()

    def then() -> None:
        act()
        slow.set_result(reader(bench).content(piece or {P0: (13, 21)}))

    answers(bench, None, lambda: slow)
    bench.consumer.within_keep_alive = [then]


def no_longer_behind(bench: SinkBench) -> None:
    bench.consumer.known_lag = 0


def test_a_pause_ends_it_and_what_was_read_ahead_comes_again() -> None:
    bench = SinkBench({P0: 35}, most=5)

    def pause() -> None:
        bench.control.pause(True)
        no_longer_behind(bench)

    during(bench, pause)
    bench.listener.when_paused = lambda: bench.consumer.within_keep_alive.append(lambda: bench.control.pause(False))
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.of("commit")[0] == ("commit", {P0: 13})
    assert bench.put == values(P0, 0, 35)


def test_a_stop_ends_it_after_what_was_put() -> None:
    bench = SinkBench({P0: 35}, most=5)
    during(bench, bench.control.stop)
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.put == values(P0, 0, 13)
    assert bench.consumer.committed == {P0: 13}


def test_who_is_given_up_on_does_not_wait_for_what_is_read() -> None:
    bench = SinkBench({P0: 35}, most=5)
    answers(bench, None, Future)
    bench.consumer.within_keep_alive = [bench.control.cancel]
    with pytest.raises(Stopped, match="given up on while Spark worked"):
        bench.run()
    assert bench.put == values(P0, 0, 13)
    assert bench.of("commit") == []


@pytest.mark.parametrize(("how", "commit"), [("revoke", {P0: 13}), ("lose", {P1: 7})], ids=["revoked", "lost"])
def test_partitions_that_go_end_it(how: str, commit: dict[TopicPartition, int]) -> None:
    bench = SinkBench({P0: 40, P1: 7}, most=5)

    def go() -> None:
        no_longer_behind(bench)
        getattr(bench.consumer, how)(P0)

    during(bench, go, {P1: (0, 7), P0: (13, 14)})
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.put == values(P0, 0, 13) + values(P1, 0, 7)
    assert bench.of("commit")[0] == ("commit", commit)


def test_partitions_that_go_and_come_back_begin_where_the_group_is() -> None:
    bench = SinkBench({P0: 40}, most=5)

    def go() -> None:
        no_longer_behind(bench)
        bench.on_pre_commit = [lambda _: {P0: 10}]
        bench.consumer.revoke(P0)
        bench.consumer.assign(P0)

    during(bench, go)
    bench.run()
    assert bench.put == values(P0, 0, 13) + values(P0, 10, 40)


def test_partitions_that_go_while_a_piece_is_tried_again_end_it() -> None:
    bench = SinkBench({P0: 40, P1: 7}, most=5)
    bench.on_put = [None, None, RetriableError("busy")]

    def go() -> None:
        no_longer_behind(bench)
        bench.consumer.revoke(P0)

    bench.consumer.within_keep_alive = [go]
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.of("put in vain", "put", "close", "open")[2:7] == [
        ("put", values(P0, 5, 13)),
        ("put in vain", values(P0, 13, 14) + values(P1, 0, 7)),
        ("close", [P0]),
        ("close", [P1]),
        ("open", [P1]),
    ]
    assert bench.put == values(P0, 0, 13) + values(P1, 0, 7)


def test_a_piece_that_is_tried_again_does_not_end_it() -> None:
    """And the consumer stays paused while the next one is read."""
    bench = SinkBench({P0: 40}, most=5)
    slow: Future[Any] = Future()

    def give() -> None:
        slow.set_result(reader(bench).content({P0: (13, 21)}))

    answers(bench, None, lambda: slow)
    bench.on_put = [None, RetriableError("busy"), lambda _: bench.consumer.within_keep_alive.append(give)]
    bench.run()
    assert bench.put == values(P0, 0, 40)
    assert reader(bench).cancelled == 0


def test_a_wish_ends_it() -> None:
    bench = SinkBench({P0: 35}, most=5)

    def wish(_: Any) -> None:
        no_longer_behind(bench)
        bench.context.offset(P0, 2)

    bench.on_put = [None, wish]
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.put == values(P0, 0, 13) + values(P0, 2, 35)


def test_a_task_that_refuses_ends_it() -> None:
    bench = SinkBench({P0: 35}, most=5)

    def late(_: Any) -> None:
        no_longer_behind(bench)
        bench.clock.move(60)

    bench.on_put = [None, late]
    bench.on_pre_commit = [OSError("the warehouse is closed")]
    bench.run()
    assert reader(bench).cancelled == 1
    assert bench.put == values(P0, 0, 13) + values(P0, 0, 35)


def test_a_lost_engine_ends_it_and_the_consumer_goes_on() -> None:
    bench = SinkBench({P0: 35}, most=5)

    def lost() -> Future[Any]:
        no_longer_behind(bench)
        return failed(EngineUnavailable("the driver died"))

    answers(bench, None, lost)
    bench.run()
    assert bench.engine.asked_ready == 2
    assert bench.put == values(P0, 0, 35)
    assert bench.of("open") == [("open", [P0])]
    assert bench.consumer.committed == {P0: 35}


def test_what_executors_cannot_read_the_consumer_does_and_they_are_not_asked_again_at_once() -> None:
    bench = SinkBench({P0: 200}, most=5)
    answers(bench, None, lambda: failed(RangeUnread("t-0 from offset 13 on: gave nothing for 15 s")))
    bench.on_put = [*[None] * 6, lambda _: bench.clock.move(60)]
    bench.run()
    assert bench.put == values(P0, 0, 200)
    assert reader(bench).asked[:4] == [{P0: (5, 13)}, {P0: (13, 21)}, {P0: (21, 29)}, {P0: (43, 51)}]
    assert bench.of("open") == [("open", [P0])]
    assert bench.consumer.committed == {P0: 200}


def test_where_only_the_consumer_can_read_it_does() -> None:
    bench = SinkBench({P0: 200}, most=5)
    bench.engine.reads_ranges = False
    bench.run()
    assert bench.engine.reader is None
    assert bench.put == values(P0, 0, 200)


def test_an_engine_that_does_not_come_back_fails_the_task() -> None:
    bench = SinkBench({P0: 35}, most=5)
    bench.engine.readiness = [None, EngineUnavailable("it keeps dying")]
    answers(bench, None, lambda: failed(EngineUnavailable("the driver died")))
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        bench.run()
    assert bench.consumer.committed == {P0: 13}


def test_an_engine_that_is_lost_while_a_piece_is_put_fails_the_task_as_it_does_for_any_batch() -> None:
    """Half of it may have been put: it is not just read again."""
    from pipeline_plugins import FailTimes

    FailTimes.seen.clear()
    step = StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "FailTimes"), {"value": "0:8", "times": "1"}))
    bench = SinkBench({P0: 35}, most=5, steps=[step], errors=errors_config(retry_timeout="60000"))
    bench.engine.failures = [None, EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        bench.run()
    assert bench.put == values(P0, 0, 8)
    assert bench.loop.state.step is not SinkStep.NONE
    assert bench.consumer.committed == {P0: 5}
    FailTimes.seen.clear()


def test_what_cannot_be_unpacked_fails_the_task() -> None:
    bench = SinkBench({P0: 35}, most=5)
    answers(bench, lambda: done([blob.run(b"nothing that was ever packed")]))
    with pytest.raises(blob.JobFailed):
        bench.run()
    assert bench.consumer.committed == {P0: 5}
