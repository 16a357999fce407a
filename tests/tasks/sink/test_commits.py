"""Commits: what is committed, and where a sink task goes back to when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes import TASK, Clock, Consumer, Engine, QuickControl, task_spec

from headgate.api import ConnectError, RetriableError, SinkRecord, SinkTask
from headgate.metrics import SinkMetrics
from headgate.model import TopicPartition
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.sink.commits import Commits
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.sink.state import SinkState

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Task(SinkTask):
    answer: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]] = staticmethod(lambda given: given)
    asked = 0

    def put(self, records: Sequence[SinkRecord]) -> None: ...

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.asked += 1
        return self.answer(offsets)


class Reporter:
    """Says how often the dead letters have not arrived yet."""

    late = 0
    waited = 0.0

    def flush(self, seconds: float) -> bool:
        self.late -= 1
        self.waited = seconds
        return self.late < 0


class Bench:
    """A task that has put records up to `positions`, and let pass those up to `committed`."""

    def __init__(
        self, positions: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int] | None = None
    ) -> None:
        before = committed or dict.fromkeys(positions, 0)
        self.state = SinkState(dict(positions), dict(before), dict(before))
        self.task, self.reporter, self.metrics, self.clock = Task(), Reporter(), SinkMetrics(), Clock()
        self.consumer = Consumer(dict.fromkeys(positions, 99), [])
        self.consumer.positions = dict(positions)
        self.session = BorrowedSession(Engine(), TASK, QuickControl(self.clock))
        self.context = RuntimeSinkContext({}, lambda: self.state.assigned, self.session)
        self.task.context = self.context
        reporter: Any = self.reporter
        spec = task_spec(Task, flush_interval_ms=10_000, flush_timeout_ms=3_000)
        self.commits = Commits(spec, self.task, self.context, self.consumer, reporter, self.metrics, self.clock)

    def commit(self, closing: Sequence[TopicPartition] = ()) -> bool:
        self.state, willing = self.commits.commit(self.state, closing)
        return willing

    @property
    def committed(self) -> list[dict[TopicPartition, int]]:
        """What Kafka was given, by each commit that it took."""
        return [offsets for _, offsets in self.consumer.journal]

    def refuse(self, _: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        raise OSError("the warehouse is closed")


def test_what_was_put_is_committed_once() -> None:
    bench = Bench({P0: 5, P1: 0})
    assert bench.commit()
    assert bench.commit()
    assert bench.committed == [{P0: 5}]
    assert bench.metrics.commit_skips == 1


@pytest.mark.parametrize(
    ("answer", "expected", "complaint"),
    [
        ({}, [], False),
        ({P0: 3}, [{P0: 3}], False),
        ({P0: 6}, [], True),
        ({TopicPartition("t", 9): 1, P0: 5}, [{P0: 5}], True),
    ],
)
def test_the_task_decides_but_only_about_what_it_was_given(
    answer: dict[TopicPartition, int],
    expected: list[dict[TopicPartition, int]],
    complaint: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench({P0: 5})
    bench.task.answer = lambda _: answer
    assert bench.commit()
    assert bench.committed == expected
    assert ("which are ignored" in caplog.text) is complaint


def test_a_task_that_refuses_gets_all_again_since_it_let_offsets_pass() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 7})
    bench.task.answer = bench.refuse
    assert not bench.commit()
    assert bench.state.positions == bench.consumer.positions == {P0: 2, P1: 7}
    assert bench.committed == []


def test_what_it_let_pass_counts_also_when_kafka_did_not_take_it() -> None:
    """The sink has it: going back behind that would double it there."""
    bench = Bench({P0: 5})
    bench.consumer.commit_errors = [OSError("no broker")]
    assert bench.commit()
    bench.state = replace(bench.state, positions={P0: 9})
    bench.task.answer = bench.refuse
    assert not bench.commit()
    assert bench.state.positions == bench.consumer.positions == {P0: 5}
    bench.task.answer = lambda given: given
    assert bench.commit()
    assert bench.committed == [{P0: 5}]


def test_where_the_task_says_that_it_is_wins_when_it_refuses() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 3})

    def refuse(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        bench.context.offset(P0, 4)
        return bench.refuse(given)

    bench.task.answer = refuse
    assert not bench.commit()
    assert bench.state.positions == bench.state.safe == bench.consumer.positions == {P0: 4, P1: 3}
    assert bench.context.wished == {}


def test_partitions_that_go_are_not_gone_back_to() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 3})
    bench.task.answer = bench.refuse
    assert not bench.commit(closing=[P0])
    assert bench.state.positions == bench.consumer.positions == {P0: 5, P1: 3}


def test_what_the_task_wants_to_get_again_is_not_committed() -> None:
    bench = Bench({P0: 5, P1: 7})
    bench.context.offset(P0, 3)
    assert bench.commit()
    assert bench.committed == [{P0: 3, P1: 7}]


def test_the_group_hears_of_an_offset_that_the_task_had_already() -> None:
    """So that users see it, and a reset concerns this partition too."""
    bench = Bench({P0: 5}, {P0: 0})
    bench.state = bench.state.allowed({P0: 5})
    assert bench.commit()
    assert bench.committed == [{P0: 5}]


def test_a_task_is_not_asked_before_its_dead_letters_have_arrived() -> None:
    """What it writes to its own system may be final, and the letter would be missing."""
    bench = Bench({P0: 5})
    bench.reporter.late = 1
    assert bench.commit()
    assert (bench.task.asked, bench.committed) == (0, [])
    assert bench.commit()
    assert (bench.task.asked, bench.committed) == (1, [{P0: 5}])


def test_letters_that_the_task_sends_when_it_is_asked_are_waited_for_too() -> None:
    bench = Bench({P0: 5})

    def report(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        bench.reporter.late = 1
        return given

    bench.task.answer = report
    assert bench.commit()
    assert bench.committed == []
    bench.task.answer = lambda given: given
    assert bench.commit()
    assert bench.committed == [{P0: 5}]


def test_nothing_is_asked_of_a_task_without_partitions() -> None:
    bench = Bench({})
    assert bench.commit()
    assert bench.task.asked == 0


# --- a task that refuses, again and again -----------------------------------------------------------------------------


def refusing(bench: Bench, *errors: Exception | None) -> None:
    """Raises these one after the other; None: it lets all pass."""
    script = list(errors)

    def answer(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        error = script.pop(0)
        if error is not None:
            raise error
        return given

    bench.task.answer = answer


def test_what_is_retriable_is_tried_for_ever_less_and_less_often() -> None:
    bench = Bench({P0: 5})
    refusing(bench, *[RetriableError("the warehouse is full")] * 8)
    pauses = []
    for _ in range(8):
        bench.state = replace(bench.state, positions={P0: 5})
        assert not bench.commit()
        pauses.append(bench.commits.pause_s())
    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10]
    counted = bench.metrics.errors
    assert (counted.failures, counted.retries, counted.errors) == (8, 8, 0)
    assert counted.last_error_ms > 0
    assert bench.metrics.commit_failures == 8


@pytest.mark.parametrize("used", [True, False])
def test_the_end_of_a_session_is_tried_for_ever_too_where_the_task_uses_it(used: bool) -> None:
    bench = Bench({P0: 5}, {P0: 2})
    bench.session.used = used
    refusing(bench, *[ConnectionError("reset by peer")] * 3)
    for _ in range(3):
        assert not bench.commit()
    if used:
        assert bench.commits.pause_s() == 4
    else:
        with pytest.raises(ConnectError, match="3 times in a row"):
            bench.commits.pause_s()


def test_the_third_unexpected_error_in_a_row_is_the_last(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench({P0: 5}, {P0: 2})
    closed = OSError("the warehouse is closed")
    refusing(bench, closed, RetriableError("wait"), closed, closed)
    for pause in (1, 2, 4):
        assert not bench.commit()
        assert bench.commits.pause_s() == pause
    assert not bench.commit()
    with pytest.raises(ConnectError) as raised:
        bench.commits.pause_s()
    assert str(raised.value) == (
        "pre_commit() failed 4 times in a row, without a commit in between: OSError: the warehouse is closed"
    )
    assert raised.value.__cause__ is closed
    assert bench.state.positions == {P0: 2}, "what is asked when it closes may not be more than it let pass"
    assert (bench.metrics.errors.failures, bench.metrics.errors.retries) == (4, 3)
    assert caplog.messages[-1].endswith("OSError: the warehouse is closed")


@pytest.mark.parametrize(
    ("between", "goes_on"),
    [
        ({P0: 9}, True),  # committed
        ({P0: 5}, True),  # there was nothing new, and the task was content
        ({P0: 2}, False),  # what it refused has not come again yet: nobody knows
    ],
)
def test_only_what_was_refused_ends_the_row(between: dict[TopicPartition, int], goes_on: bool) -> None:
    bench = Bench({P0: 5}, {P0: 5 if between == {P0: 5} else 2})
    closed = OSError("the warehouse is closed")
    refusing(bench, closed, closed, None, closed)
    for positions in ({P0: 5}, {P0: 5}, between, {P0: 9}):
        bench.state = replace(bench.state, positions=positions)
        bench.commit()
    if goes_on:
        assert bench.commits.pause_s() == 1
    else:
        with pytest.raises(ConnectError, match="3 times in a row"):
            bench.commits.pause_s()


def test_what_the_task_holds_back_does_not_end_the_row() -> None:
    """It gathers what it refused, and has not tried to write it again."""
    bench = Bench({P0: 5}, {P0: 2})
    closed = OSError("the warehouse is closed")
    script = [closed, closed, None, closed]

    def answer(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        error = script.pop(0)
        if error is not None:
            raise error
        return {P0: 2}

    bench.task.answer = answer
    for _ in range(4):
        bench.state = replace(bench.state, positions={P0: 5})
        bench.commit()
    with pytest.raises(ConnectError, match="3 times in a row"):
        bench.commits.pause_s()


# --- when, and how it is counted --------------------------------------------------------------------------------------


def test_it_is_time_again_an_interval_after_the_last_time() -> None:
    bench = Bench({P0: 5})
    for _ in range(2):
        bench.clock.move(9.9)
        assert not bench.commits.take_due()
        bench.clock.move(3)
        assert bench.commits.take_due()
        bench.commit()
        assert not bench.commits.take_due()


def test_it_is_time_once_when_the_task_asks_for_it() -> None:
    bench = Bench({P0: 5})
    bench.context.request_commit()
    assert bench.commits.take_due()
    assert not bench.commits.take_due()


def test_what_fails_is_tried_again_at_the_next_interval_not_at_once() -> None:
    bench = Bench({P0: 5})
    bench.clock.move(10)
    bench.consumer.commit_errors = [OSError("no broker")]
    bench.commit()
    assert not bench.commits.take_due()


def test_what_keeps_failing_is_warned_of_once_until_it_goes_again(caplog: pytest.LogCaptureFixture) -> None:
    """A partition that was deleted cannot be committed at any interval."""
    bench = Bench({P0: 5})
    gone, away = OSError("t-0: Unknown topic or partition"), OSError("no broker")
    bench.consumer.commit_errors = [gone, gone, gone, away, away]
    for _ in range(6):
        bench.commit()
    bench.consumer.commit_errors = [gone]
    bench.state = replace(bench.state, positions={P0: 9})
    bench.commit()
    assert [message.rpartition(": ")[2] for message in caplog.messages] == [
        "Unknown topic or partition",
        "no broker",
        "Unknown topic or partition",
    ]


def test_dead_letters_are_waited_for_as_long_as_the_worker_says() -> None:
    bench = Bench({P0: 5})
    bench.commit()
    assert bench.reporter.waited == 3.0


def _kafka_is_away(bench: Bench) -> None:
    bench.consumer.commit_errors = [OSError("no broker")]


def _task_refuses(bench: Bench) -> None:
    bench.task.answer = bench.refuse


def _letters_are_late(bench: Bench) -> None:
    bench.reporter.late = 1


@pytest.mark.parametrize("trouble", [_kafka_is_away, _task_refuses, _letters_are_late])
def test_what_was_not_committed_is_counted(trouble: Callable[[Bench], None]) -> None:
    bench = Bench({P0: 5})
    trouble(bench)
    bench.commit()
    assert (bench.metrics.commits, bench.metrics.commit_failures, bench.metrics.commit_seq) == (0, 1, 0)
    assert bench.committed == []
    bench.task.answer = lambda given: given
    bench.state = replace(bench.state, positions={P0: 6})
    bench.commit()
    assert (bench.metrics.commits, bench.metrics.commit_failures, bench.metrics.commit_seq) == (1, 1, 1)
    assert bench.committed == [{P0: 6}]
