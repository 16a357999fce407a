"""The loop of a source task, from start to stop, in its threads: it polls, pauses, stops at every step, is rewound."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from fakes import Letters, TopicAdmin, errors_config
from source_fakes import (
    OFFSETS_TOPIC,
    PARTITION,
    STUBBORN,
    TOLERANT,
    WAIT_S,
    CountingTask,
    LoopThread,
    OneByOneTask,
    ScriptedTask,
    Source,
    Stubborn,
    ToldTask,
    after,
    reassigned,
    record,
    records,
    source_table,
)

from headgate.api import ConnectError, RetriableError, SourceTable
from headgate.model import Boundary, EngineUnavailable
from headgate.producer.errors import (
    CommitFailedError,
    CommitTimeoutError,
    OperationTimeoutError,
    ProducerError,
    ProducerFencedError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionStateError,
)
from headgate.producer.states import State
from headgate.tasks.control import Stopped
from headgate.tasks.source import loop
from headgate.tasks.source.refusals import RecordRefused
from headgate.tasks.source.transaction_errors import TransactionFailed


@pytest.fixture
def source() -> Source:
    Stubborn.failures.clear()
    return Source()


def await_stored(source: Source, number: int) -> None:
    """Until the task was told that this offset of PARTITION is stored."""
    source.script.calls.await_that(lambda _: (source.offsets.at_zero() or {}).get("n") == number)


# --- from start to stop -----------------------------------------------------------------------------------------------


def test_a_task_polls_until_it_is_stopped_and_its_offsets_are_stored(source: Source) -> None:
    source.script.give(records(1, 2), None, [], records(3))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 5)
        assert thread.stopped() is None
    assert source.sender.values == ["1", "2", "3"]
    assert source.offsets.at_zero() == {"n": 3}
    assert source.events == ["running"]
    assert source.script.calls.count("stop") == 1
    assert source.sender.closed
    assert source.offsets.calls[-1] == "close"
    assert source.metrics.polled.total == 3
    assert source.metrics.batch_size.maximum == 2


def test_what_a_task_is_given(source: Source) -> None:
    source.offsets.stored['{"p": 0}'] = {"n": 7}
    with source.run(source.spec(config={"file": "a"}, cluster={"bootstrap.servers": "here"})) as thread:
        source.script.calls.await_item("poll")
        (task,) = source.script.instances
        context = task.context
        assert (context.config, context.cluster) == ({"file": "a"}, {"bootstrap.servers": "here"})
        assert context.offset_reader.offsets([PARTITION, {"p": 9}]) == [{"n": 7}, None]
        assert context.transaction_context is None
        assert thread.stopped() is None
    assert source.script.begun_at == [{"n": 7}]


def test_offsets_are_read_when_what_others_left_open_is_settled(source: Source) -> None:
    before: list[str] = []
    source.offsets.at("get", lambda: before.extend(source.transactional.calls))
    with source.run(source.spec(Boundary.POLL)) as thread:
        source.script.calls.await_item("poll")
        assert thread.stopped() is None
    assert before == ["create", "init"]
    assert source.transactional.state is State.CLOSED


def test_a_table_without_rows_only_moves_the_offset(source: Source) -> None:
    nothing = SourceTable(topic="t", table=pa.table({"value": []}), source_partition=None, source_offset=None)
    source.script.give(nothing, source_table(offset=4))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert source.offsets.at_zero() == {"n": 4}
    assert (source.sender.values, source.metrics.polled.total) == ([], 0)
    assert len(source.engine.submissions) == 1, "what says nothing goes nowhere"


def test_offsets_are_stored_at_the_interval_while_it_runs(source: Source) -> None:
    def later(_: ScriptedTask) -> Any:
        source.sender.calls.await_item("send")
        source.clock.move(61.0)
        return records(2)

    source.script.give(records(1), later)
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("commit")
        assert source.offsets.at_zero() in ({"n": 1}, {"n": 2})
        assert thread.stopped() is None
    assert source.offsets.at_zero() == {"n": 2}


# --- when it fails ----------------------------------------------------------------------------------------------------


def test_what_passes_by_itself_is_polled_again_after_a_second(source: Source) -> None:
    source.script.give(RetriableError("not now"), records(1))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert source.control.waits == [1.0]
    assert source.sender.values == ["1"]


def test_a_task_that_lost_its_session_is_polled_again_with_the_next(source: Source) -> None:
    source.script.at("start", lambda: source.script.instances[-1].context.spark())
    source.script.give(ConnectionError("reset by peer"), records(1))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert source.engine.asked_ready == 2
    assert source.sender.values == ["1"]


@pytest.mark.parametrize("call", ["start", "poll"])
@pytest.mark.parametrize("boundary", [None, Boundary.POLL])
def test_whatever_else_a_task_raises_fails_it(source: Source, boundary: Boundary | None, call: str) -> None:
    error = ValueError("a bug")
    source.script.at(call, error)
    with source.run(source.spec(boundary)) as thread:
        assert thread.ended() is error
    assert source.script.calls.count("stop") == 1, "also after a failure"
    assert source.events.count("running") == (call == "poll")
    source.offsets.calls.await_item("close")
    closed = source.sender.calls if boundary is None else source.transactional.calls
    closed.await_item("close")


def test_a_task_that_cannot_even_be_stopped_fails_of_what_was_wrong_first(
    source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("a bug")
    source.script.at("poll", error)
    source.script.at("stop", RuntimeError("another"))
    with source.run(source.spec()) as thread:
        assert thread.ended() is error
    assert "The task could not be stopped: RuntimeError: another" in caplog.text


def test_what_was_polled_before_a_failure_arrives_and_its_offsets_are_stored(source: Source) -> None:
    error = ValueError("a bug")
    source.script.give(records(1, 2), records(3), error)
    with source.run(source.spec()) as thread:
        assert thread.ended() is error
    assert source.sender.values == ["1", "2", "3"]
    assert source.offsets.at_zero() == {"n": 3}


def test_a_failure_does_not_wait_for_ever_for_what_was_polled_before(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_LAST_S", 0.05)
    error, answered = ValueError("a bug"), threading.Event()
    source.sender.at("flush", lambda: answered.wait(WAIT_S) and False)
    source.script.give(records(1), error)
    with source.run(source.spec()) as thread:
        assert thread.ended() is error
        assert not answered.is_set()
        answered.set()
        source.sender.calls.await_item("close")
    assert source.sender.values == ["1"]
    assert source.offsets.at_zero() is None


def test_without_an_engine_there_is_no_task(source: Source) -> None:
    source.engine.readiness = [EngineUnavailable("did not start")]
    with source.run(source.spec()) as thread:
        assert isinstance(thread.ended(), EngineUnavailable)
    assert (source.script.instances, source.offsets.calls, source.events) == ([], [], [])


def test_an_engine_that_is_gone_for_good_fails_the_task_and_no_offset_passes_the_batch(source: Source) -> None:
    source.engine.failures = [None, EngineUnavailable("keeps dying")]
    source.script.give(records(1), after(source.sender.calls, "send", records(2)))
    with source.run(source.spec()) as thread:
        assert isinstance(thread.ended(), EngineUnavailable)
    assert source.sender.values == ["1"]
    assert source.offsets.calls == ["get", "close"]


def test_a_refused_record_fails_the_task_though_it_sits_in_a_poll(source: Source) -> None:
    source.sender.refuses = {"1"}
    source.script.give(records(1))
    with source.run(source.spec(None, ToldTask)) as thread:
        assert isinstance(thread.ended(), RecordRefused)
    assert source.script.acknowledged == []
    assert source.offsets.at_zero() is None


def test_a_refused_record_is_left_out_where_that_is_tolerated(source: Source) -> None:
    source.sender.refuses = {"1"}
    source.script.give(records(1, 2))
    with source.run(source.spec(None, ToldTask, errors=TOLERANT)) as thread:
        source.script.calls.await_item("commit record", 2)
        assert thread.stopped() is None
    assert source.offsets.at_zero() == {"n": 2}
    assert source.metrics.errors.skipped == 1


def test_records_that_are_tried_again_keep_their_order(source: Source) -> None:
    Stubborn.failures["1"] = 3
    source.script.give(records(1, 2), records(3))
    spec = source.spec(Boundary.POLL, steps=[STUBBORN], errors={"errors.retry.timeout": "-1"})
    with source.run(spec) as thread:
        await_stored(source, 3)
        assert thread.stopped() is None
    assert source.transactional.values == ["1", "2", "3"]
    assert source.metrics.errors.retries == 3


def test_the_offsets_topic_is_forbidden_to_a_task_with_transactions(source: Source) -> None:
    source.script.give(records(1, topic=OFFSETS_TOPIC))
    with source.run(source.spec(Boundary.POLL)) as thread:
        error = thread.ended()
    assert isinstance(error, ConnectError)
    assert "their own offsets topics" in str(error)
    assert source.transactional.committed == []
    other = Source()
    other.script.give(records(1, topic=OFFSETS_TOPIC))
    with other.run(other.spec()) as thread:
        other.script.calls.await_item("poll", 2)
        assert thread.stopped() is None, "without transactions it is a topic as any other"


# --- paused -----------------------------------------------------------------------------------------------------------


def test_a_task_that_begins_paused_does_nothing_until_it_is_resumed(source: Source) -> None:
    source.control.pause(True)
    with source.run(source.spec()) as thread:
        source.events.await_item("paused")
        assert (source.engine.asked_ready, source.script.instances) == (0, [])
        source.control.pause(False)
        source.events.await_item("running")
        assert thread.stopped() is None
    assert source.events == ["paused", "running"]


def test_a_task_that_is_stopped_while_it_is_paused_was_never_started(source: Source) -> None:
    source.control.pause(True)
    with source.run(source.spec(Boundary.POLL)) as thread:
        source.events.await_item("paused")
        assert thread.stopped() is None
    assert (source.script.instances, source.offsets.calls, source.transactional.calls) == ([], [], [])


def paused(source: Source) -> None:
    """The task is asked to pause, and polls once more."""
    source.control.pause(True)
    source.script.give(None)


@pytest.mark.parametrize("boundary", [None, Boundary.POLL, Boundary.INTERVAL])
def test_what_is_called_paused_has_its_offsets_stored(source: Source, boundary: Boundary | None) -> None:
    source.script.give(records(1))
    with source.run(source.spec(boundary)) as thread:
        source.script.calls.await_item("poll", 2)
        paused(source)
        source.events.await_item("paused")
        assert source.offsets.at_zero() == {"n": 1}
        polls = source.script.calls.count("poll")
        source.control.pause(False)
        source.script.give(records(2))
        source.script.calls.await_item("poll", polls + 2)
        assert thread.stopped() is None
    assert [each for each in source.events if each in ("running", "paused")] == [
        "running",
        "paused",
        "running",
    ]
    assert source.offsets.at_zero() == {"n": 2}
    assert len(source.script.instances) == 1


def test_a_pause_waits_for_what_is_under_way_in_the_engine(source: Source) -> None:
    source.engine.busy = True
    source.script.give(records(1))
    with source.run(source.spec()) as thread:
        source.await_under_way(1)
        paused(source)
        source.script.calls.await_item("poll", 2)
        assert "paused" not in source.events
        source.engine.run_all()
        source.events.await_item("paused")
        assert source.offsets.at_zero() == {"n": 1}
        assert thread.stopped() is None
    assert source.events == ["running", "paused"]


def test_a_pause_does_not_wait_for_a_flush_longer_than_its_time(source: Source) -> None:
    source.sender.at("flush", False)
    source.script.give(records(1))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 2)
        paused(source)
        source.events.await_item("paused")
        assert source.offsets.at_zero() is None
        assert thread.stopped() is None
    assert source.offsets.at_zero() == {"n": 1}, "it is tried again at the end"


# --- stopped, or given up on, at every step ---------------------------------------------------------------------------


Step = Callable[[Source, Callable[[], None]], None]


def in_a_poll(source: Source, end: Callable[[], None]) -> None:
    source.script.give(records(1), lambda _: end())


def in_the_engine(source: Source, end: Callable[[], None]) -> None:
    def answer(_: ScriptedTask) -> None:
        source.await_under_way(1)
        end()
        source.engine.busy = False
        source.engine.run_all()

    source.engine.busy = True
    source.script.give(records(1), answer)


def while_it_sends(source: Source, end: Callable[[], None]) -> None:
    source.sender.at("send", end)
    source.transactional.at("send", end)
    source.script.give(records(1))


def while_it_flushes(source: Source, end: Callable[[], None]) -> None:
    source.sender.at("flush", end)
    source.transactional.at("flush", end)
    source.script.give(records(1), lambda _: source.clock.move(61.0))


STEPS = [in_a_poll, in_the_engine, while_it_sends, while_it_flushes]


def at_step(source: Source, step: Step, boundary: Boundary | None, end: str) -> BaseException | None:
    """Ends the task there, by `stop` or `cancel`: what it ended with."""
    threads: list[LoopThread] = []
    step(source, lambda: getattr(threads[0], end)())
    thread = source.run(source.spec(boundary))
    threads.append(thread)
    with thread:
        if step is while_it_flushes and boundary is None:
            source.script.calls.await_item("poll", 3)
            paused(source)  # so that there is a flush
        return thread.ended()


@pytest.mark.parametrize("boundary", [None, Boundary.POLL, Boundary.INTERVAL])
@pytest.mark.parametrize("step", STEPS)
def test_a_task_that_is_stopped_stores_what_it_has_polled(
    source: Source, step: Step, boundary: Boundary | None
) -> None:
    if step is while_it_flushes and boundary is Boundary.INTERVAL:
        source.transactional.timeout = 0.0  # then it flushes at once
    assert at_step(source, step, boundary, "stop") is None
    assert source.offsets.at_zero() == {"n": 1}
    sent = source.sender.values if boundary is None else source.transactional.values
    assert sent == ["1"]
    assert source.script.calls.count("stop") == 1


@pytest.mark.parametrize("boundary", [None, Boundary.POLL])
@pytest.mark.parametrize("step", [in_the_engine, while_it_sends, while_it_flushes])
def test_a_task_that_is_given_up_on_stores_nothing(source: Source, step: Step, boundary: Boundary | None) -> None:
    error = at_step(source, step, boundary, "cancel")
    assert error is None or isinstance(error, Stopped)
    assert source.offsets.at_zero() is None
    assert source.transactional.committed == []
    assert source.script.calls.count("stop") == 1


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_a_task_that_waits_for_room_ends_too(source: Source, end: str) -> None:
    source.engine.busy = True
    source.script.give(*[records(number) for number in range(1, 5)])
    with source.run(source.spec(buffer_bytes=400)) as thread:  # a record counts as 500
        source.await_under_way(1)
        source.script.calls.await_item("poll", 3)  # at most one more is under way and one in the buffer
        getattr(thread, end)()
        if end == "stop":
            source.engine.busy = False
            source.engine.run_all()
        error = thread.ended()
    if end == "stop":
        assert error is None
        assert source.sender.values == ["1", "2", "3", "4"][: source.metrics.polled.total]
        assert source.offsets.at_zero() == {"n": source.metrics.polled.total}
    else:
        assert error is None or isinstance(error, Stopped)
        assert (source.sender.values, source.offsets.at_zero()) == ([], None)


def test_a_stop_does_not_wait_for_a_flush_longer_than_its_time(source: Source) -> None:
    source.sender.at("flush", False)
    source.script.give(records(1))
    with source.run(source.spec()) as thread:
        source.sender.calls.await_item("send")
        assert thread.stopped() is None
    assert source.offsets.at_zero() is None
    assert source.metrics.commit_failures == 1


def test_a_task_that_is_stopped_before_it_begins_does_nothing(source: Source) -> None:
    thread = source.run(source.spec(Boundary.POLL))
    thread.stop()  # there is no task to be woken up
    with thread:
        assert thread.ended() is None
    assert (source.engine.asked_ready, source.script.calls, source.transactional.calls) == (0, [], [])


# --- exactly once, whatever happens -----------------------------------------------------------------------------------


def late(call: str) -> ProducerError:
    return CommitTimeoutError("late", outcome_unknown=True) if call == "commit" else OperationTimeoutError("late")


def lost(call: str) -> ProducerError:
    return (CommitFailedError if call == "commit" else TransactionAbortableError)(f"{call}: lost")


def unknown(call: str) -> ProducerError:
    return CommitFailedError("lost?", outcome_unknown=True)


TROUBLES: list[tuple[Callable[[str], ProducerError], str, int]] = [
    *[(lost, call, index) for call in ("begin", "send", "flush", "commit") for index in range(3)],
    *[(late, call, index) for call in ("begin", "flush", "commit") for index in range(3)],
    *[(TransactionStateError, call, index) for call in ("begin", "send", "flush", "commit") for index in range(3)],
    *[(unknown, "commit", index) for index in range(3)],
    (late, "init", 0),
]


@pytest.mark.kip(618, "no record twice, none left out")
@pytest.mark.parametrize(
    ("error", "call", "index"), TROUBLES, ids=[f"{error.__name__}-{call}-{index}" for error, call, index in TROUBLES]
)
def test_every_record_is_committed_once(
    source: Source, error: Callable[[str], ProducerError], call: str, index: int
) -> None:
    source.script.numbers, source.script.together = 6, 2
    source.transactional.at(call, *[None] * index, error(call))
    with source.run(source.spec(Boundary.POLL, OneByOneTask)) as thread:
        await_stored(source, 6)
        assert thread.stopped() is None
    assert source.transactional.has_happened(call)
    assert source.transactional.committed == [["1", "2"], ["3", "4"], ["5", "6"]]
    assert source.events.count("running") == 1, "a rewind is nobody's business"


def test_a_new_instance_goes_on_from_the_committed_offset(source: Source) -> None:
    source.script.numbers = 3
    source.transactional.at("commit", None, lost("commit"))
    with source.run(source.spec(Boundary.POLL, OneByOneTask)) as thread:
        await_stored(source, 3)
        assert thread.stopped() is None
    assert source.script.begun_at == [None, {"n": 1}]
    calls = [each for each in source.script.calls if each in ("start", "stop")]
    assert calls == ["start", "stop", "start", "stop"], "the old one stops before the new one starts"
    assert source.metrics.active == 0, "what the first has polled in vain is not under way"


def test_a_new_instance_begins_when_the_pump_of_the_old_one_has_ended(source: Source) -> None:
    begun = threading.Event()

    class LastLetters(Letters):
        """They take a moment."""

        def flush(self, seconds: float) -> bool:
            begun.wait(0.2)
            return super().flush(seconds)

    pumps: list[str] = []

    def begin() -> None:
        pumps.extend(each.name for each in threading.enumerate() if each.name.startswith("pump-"))
        begun.set()

    source.letters, source.admin = LastLetters(), TopicAdmin("dead")
    source.script.numbers = 1
    source.script.at("start", None, begin)
    source.transactional.at("flush", lost("flush"))
    errors = errors_config(deadletterqueue_topic_name="dead")
    with source.run(source.spec(Boundary.POLL, CountingTask, errors=errors)) as thread:
        await_stored(source, 1)
        assert thread.stopped() is None
    assert begun.is_set()
    assert pumps == []


def test_failures_in_a_row_are_followed_by_longer_pauses_and_then_the_task_fails(source: Source) -> None:
    source.script.numbers = 1
    source.transactional.at("flush", *[lost("flush") for _ in range(10)])
    with source.run(source.spec(Boundary.POLL, CountingTask)) as thread:
        error = thread.ended()
    assert isinstance(error, TransactionFailed)
    assert source.control.waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0])
    assert source.script.begun_at == [None] * 10
    assert source.transactional.committed == []
    assert source.transactional.state is State.CLOSED


def test_what_only_was_too_large_together_goes_on_at_once(source: Source) -> None:
    source.script.numbers = 1
    errors = [lost("flush") for _ in range(20)]
    source.transactional.shrinking += errors
    source.transactional.at("flush", *errors)
    with source.run(source.spec(Boundary.POLL, CountingTask)) as thread:
        await_stored(source, 1)
        assert thread.stopped() is None
    assert source.control.waits == []
    assert len(source.script.instances) == 21


@pytest.mark.parametrize("call", ["begin", "send", "flush", "commit"])
def test_what_an_abort_does_not_put_right_fails_the_task(source: Source, call: str) -> None:
    source.script.numbers = 1
    error = TopicAuthorizationError("no")
    source.transactional.at(call, error)
    with source.run(source.spec(Boundary.POLL, CountingTask)) as thread:
        failure = thread.ended()
    assert isinstance(failure, TransactionFailed)
    assert failure.__cause__ is error
    assert len(source.script.instances) == 1


def test_who_is_fenced_by_another_worker_ends_without_a_word(source: Source) -> None:
    def fence() -> None:
        source.listener.refusal = reassigned()
        raise ProducerFencedError("fenced")

    source.transactional.at("commit", fence)
    source.script.give(records(1))
    with source.run(source.spec(Boundary.POLL)) as thread:
        assert thread.ended() is None
    assert source.script.calls.count("stop") == 1
    assert source.transactional.state is State.CLOSED


def test_a_task_that_may_not_begin_is_not_made(source: Source) -> None:
    source.listener.fencing = reassigned()
    with source.run(source.spec(Boundary.POLL)) as thread:
        assert isinstance(thread.ended(), ConnectError)
    assert (source.script.instances, source.offsets.calls) == ([], [])
    assert source.transactional.state is State.CLOSED


def test_who_is_stopped_while_a_transaction_is_lost_does_not_begin_once_more(source: Source) -> None:
    threads: list[LoopThread] = []

    def fail() -> None:
        threads[0].stop()
        raise lost("commit")

    source.transactional.at("commit", fail)
    source.script.give(records(1))
    thread = source.run(source.spec(Boundary.POLL))
    threads.append(thread)
    with thread:
        error = thread.ended()
    assert error is None or isinstance(error, Stopped)
    assert len(source.script.instances) == 1
    assert source.transactional.committed == []


def test_who_is_stopped_in_the_pause_before_the_next_try_ends_at_once(source: Source) -> None:
    source.script.numbers = 1
    source.transactional.at("flush", lost("flush"))
    source.control.while_waiting = [source.control.stop]
    with source.run(source.spec(Boundary.POLL, CountingTask)) as thread:
        assert thread.ended() is None
    assert len(source.script.instances) == 1


def test_who_is_paused_while_a_transaction_is_lost_goes_on_when_it_is_resumed(source: Source) -> None:
    def fail() -> None:
        source.control.pause(True)
        raise lost("commit")

    source.script.numbers = 1
    source.transactional.at("commit", fail)
    with source.run(source.spec(Boundary.POLL, CountingTask)) as thread:
        source.events.await_item("paused")
        assert len(source.script.instances) == 1
        source.control.pause(False)
        await_stored(source, 1)
        source.events.await_item("running", 2)
        assert thread.stopped() is None
    assert source.control.waits == [], "the pause was long enough"
    assert source.transactional.committed == [["1"]]


# --- boundaries -------------------------------------------------------------------------------------------------------


def test_by_interval_polls_share_a_transaction(source: Source) -> None:
    def wait(_: ScriptedTask) -> Any:
        source.transactional.calls.await_item("send", 2)
        source.clock.move(11.0)
        return records(3)

    source.script.give(records(1), after(source.transactional.calls, "send", records(2)), wait)
    with source.run(source.spec(Boundary.INTERVAL)) as thread:
        source.script.calls.await_item("commit")
        assert thread.stopped() is None
    assert source.transactional.values == ["1", "2", "3"]
    assert source.transactional.committed[0] in (["1", "2"], ["1", "2", "3"])


@pytest.mark.kip(618, "connector-defined transaction boundaries")
def test_the_task_ends_its_transactions_by_records_and_by_batches(source: Source) -> None:
    def by_records(task: ScriptedTask) -> Any:
        context = task.context.transaction_context
        assert context is not None
        found = records(1, 2, 3, 4)
        context.commit_transaction(found[1])
        context.abort_transaction(found[2])
        return found

    def by_batch(task: ScriptedTask) -> Any:
        assert task.context.transaction_context is not None
        task.context.transaction_context.commit_transaction()
        return records(5)

    source.script.give(by_records, by_batch)
    with source.run(source.spec(Boundary.CONNECTOR)) as thread:
        await_stored(source, 5)
        assert thread.stopped() is None
    assert source.transactional.committed == [["1", "2"], [], ["4", "5"]]


def test_who_wants_commit_and_abort_at_once_fails(source: Source) -> None:
    def both(task: ScriptedTask) -> Any:
        assert task.context.transaction_context is not None
        task.context.transaction_context.commit_transaction()
        task.context.transaction_context.abort_transaction()
        return [record("a", 1)]

    source.script.give(both)
    with source.run(source.spec(Boundary.CONNECTOR)) as thread:
        error = thread.ended()
    assert isinstance(error, ConnectError)
    assert "both commit and abort of same transaction" in str(error)


def test_a_pause_in_an_open_transaction_of_the_task_has_it_polled_once_more(source: Source) -> None:
    def ends(task: ScriptedTask) -> Any:
        assert task.context.transaction_context is not None
        task.context.transaction_context.commit_transaction()
        return records(1)

    source.script.give(records(1))
    with source.run(source.spec(Boundary.CONNECTOR)) as thread:
        source.transactional.calls.await_item("send")
        paused(source)
        source.events.await_item("paused")
        assert source.transactional.committed == []
        source.control.pause(False)
        source.script.give(ends, ends)  # one may be taken by what woke the first instance
        await_stored(source, 1)
        assert thread.stopped() is None
    assert source.transactional.committed[0] == ["1"]
    assert len(source.script.instances) == 2
    assert source.control.waits == [], "nothing was wrong"


def test_a_stop_in_an_open_transaction_of_the_task_commits_nothing(source: Source) -> None:
    source.script.give(records(1))
    with source.run(source.spec(Boundary.CONNECTOR)) as thread:
        source.transactional.calls.await_item("send")
        error = thread.stopped()
    assert error is None or isinstance(error, Stopped)
    assert (source.transactional.committed, source.offsets.at_zero()) == ([], None)
    assert "abort" in source.transactional.calls
    assert len(source.script.instances) == 1
