"""Frames that a source task polls: sent by executors, in their turn, and their offsets stored when Kafka has them."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from typing import Any

import pytest
from fakes import StatementRunner, errors_config
from source_fakes import (
    STUBBORN,
    TOLERANT,
    Refused,
    RefusedMessage,
    ScriptedTask,
    Source,
    Stubborn,
    records,
    source_frame,
)

from headgate.api import ConnectError, SourceFrame
from headgate.model import Boundary, EngineUnavailable, TopicGroup
from headgate.pipeline.blob import JobFailed
from headgate.pipeline.frame_report import FrameReport
from headgate.tasks.control import Stopped
from headgate.tasks.source.refusals import RecordRefused

TWO = FrameReport(rows=3, sent=Counter(t=1, u=1), errors=1, by_records=Counter(why=2))


@pytest.fixture
def source() -> Source:
    Stubborn.failures.clear()
    return Source()


class Resigned(ScriptedTask):
    """Gives what was in a frame in another way."""

    def frame_failed(self, frame: SourceFrame, error: Exception) -> None:
        self.script.calls.append(f"frame failed: {error}")


def test_a_frame_is_sent_behind_what_was_polled_before_and_its_offset_stored_behind_it(source: Source) -> None:
    def send() -> FrameReport:
        assert (source.sender.values, source.sender.unanswered) == (["1", "2"], 0)
        assert source.offsets.at_zero() == {"n": 2}
        assert source.metrics.active == 1, "something is under way, and it is not known how much"
        return TWO

    source.engine.sender.reports += [send]
    source.script.give(records(1, 2), source_frame(5), records(6))
    with source.run(source.spec(errors=TOLERANT)) as thread:
        source.script.calls.await_item("poll", 3)
        assert source.offsets.at_zero() == {"n": 5}, "it is stored before more is polled"
        assert "commit" in source.script.calls
        source.script.calls.await_item("poll", 4)
        assert thread.stopped() is None
    assert source.sender.values == ["1", "2", "6"]
    assert source.offsets.at_zero() == {"n": 6}
    metrics = source.metrics
    assert (metrics.polled.total, metrics.written.total, metrics.active) == (6, 5, 0)
    assert (metrics.errors.errors, metrics.errors.skipped) == (1, 1)
    assert metrics.by_records == Counter(why=2)
    assert set(source.listener.topics) == {"t", "u"}
    assert source.engine.sender.closed == 1


def test_kafka_must_have_what_was_polled_before(source: Source) -> None:
    """However long it takes: what is asked for in time is not there."""
    source.sender.at("flush", False, False)
    source.engine.sender.reports += [lambda: FrameReport(rows=source.sender.arrived)]
    source.script.give(records(1, 2), source_frame(5))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert source.metrics.polled.total == 4


def test_the_topic_is_created_first(source: Source) -> None:
    source.engine.sender.reports += [lambda: FrameReport(rows=len(source.admin.made))]
    source.script.give(source_frame(5))
    groups = (TopicGroup("default", ".*", "", 1, 3),)
    with source.run(source.spec(topic_groups=groups)) as thread:
        source.script.calls.await_item("poll", 2)
        assert thread.stopped() is None
    assert [each.name for each in source.admin.made] == ["t"]
    assert source.metrics.polled.total == 1


def test_a_frame_is_sent_again_by_the_next_engine(source: Source) -> None:
    source.engine.sender.reports += [EngineUnavailable("the driver died"), TWO]
    source.script.give(source_frame(5))
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 2)
        assert thread.stopped() is None
    assert len(source.frames) == 2
    assert source.offsets.at_zero() == {"n": 5}


REFUSED = Refused(RefusedMessage(0, "t", b"12345"))


@pytest.mark.parametrize(
    ("report", "kind", "said"),
    [
        (FrameReport(failed=JobFailed("the trace"), errors=1), JobFailed, "the trace"),
        (FrameReport(refused=REFUSED, errors=1), RecordRefused, "too large, record of 5 bytes for topic t"),
        (FrameReport(unread="a bad file"), ConnectError, "a bad file"),
        (ValueError("no such column"), ValueError, "no such column"),
    ],
)
def test_what_fails_a_task(source: Source, report: Any, kind: type[Exception], said: str) -> None:
    source.engine.sender.reports += [report]
    source.script.give(source_frame(5))
    with source.run(source.spec()) as thread:
        error = thread.ended()
    assert isinstance(error, kind)
    assert said in str(error)
    assert source.offsets.at_zero() is None
    assert source.metrics.errors.errors == getattr(report, "errors", 0)
    assert source.metrics.errors.skipped == 0


@pytest.mark.parametrize("report", [FrameReport(rows=1, unread="a bad file"), ValueError("a bad file")])
def test_a_task_may_give_otherwise_what_could_not_be_read(source: Source, report: Any) -> None:
    source.engine.sender.reports += [report]
    source.script.give(source_frame(5), records(4))
    with source.run(source.spec(base=Resigned)) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert "frame failed: a bad file" in source.script.calls
    assert source.offsets.at_zero() == {"n": 4}


def test_a_stop_waits_for_the_frame(source: Source) -> None:
    report: Future[FrameReport] = Future()
    source.engine.sender.reports += [report]
    source.script.give(source_frame(5))
    with source.run(source.spec()) as thread:
        source.frames.await_that(len)
        thread.stop()
        report.set_result(TWO)
        assert thread.ended() is None
    assert source.offsets.at_zero() == {"n": 5}


def test_a_task_that_is_given_up_on_stores_nothing_and_cancels(source: Source) -> None:
    source.engine.sender.reports += [Future()]
    source.script.give(source_frame(5))
    with source.run(source.spec()) as thread:
        source.frames.await_that(len)
        thread.cancel()
        assert isinstance(thread.ended(), Stopped)
    assert source.offsets.at_zero() is None
    assert source.engine.sender.closed == 1


GROUPS = (TopicGroup("default", ".*", "", 1, 3),)


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({}, True),
        ({"errors": TOLERANT, "steps": [STUBBORN]}, True),
        ({"boundary": Boundary.POLL}, False),
        ({"errors": errors_config(retry_timeout="1000")}, False),
        ({"errors": errors_config(log_enable="true")}, False),
        ({"errors": errors_config(tolerance="all", deadletterqueue_topic_name="dead")}, False),
        ({"steps": [STUBBORN], "topic_groups": GROUPS}, False),
    ],
)
def test_frames_are_taken_where_nobody_needs_to_see_each_record(
    source: Source, more: dict[str, Any], taken: bool
) -> None:
    with source.run(source.spec(**more)) as thread:
        source.script.calls.await_item("poll")
        assert source.script.instances[0].context.takes_frames is taken
        assert thread.stopped() is None
    assert source.engine.asked_sender == taken


def test_frames_are_not_taken_with_statements_and_one_that_comes_all_the_same_fails_the_task(source: Source) -> None:
    source.engine.runner = StatementRunner(source.spec().chain, lambda tables: [])
    source.script.give(source_frame(5))
    with source.run(source.spec()) as thread:
        error = thread.ended()
    assert isinstance(error, ConnectError)
    assert "context.takes_frames" in str(error)
