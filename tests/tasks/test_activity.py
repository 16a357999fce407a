"""What tasks let know of themselves: the call that they are in, and what is in their way."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fakes import TopicAdmin
from sink_bench import P0, SinkBench
from source_fakes import Source, batch_of, made_table, records

from headgate.api import RetriableError
from headgate.metrics import Activity, SinkMetrics
from headgate.tasks.source import at_least_once
from headgate.tasks.source.at_least_once import AtLeastOnce

# --- Activity ---------------------------------------------------------------------------------------------------------


def test_what_fails_first_is_told_until_it_goes() -> None:
    activity = Activity()
    activity.fails("put()", "locked")
    activity.fails("the commit of offsets", "refused")
    assert activity.trouble == "put(): locked"
    activity.goes("put()")
    assert activity.trouble == "the commit of offsets: refused"
    activity.goes("the commit of offsets")
    assert activity.trouble is None
    assert activity.last_error == "the commit of offsets: refused"


def test_witnesses_are_asked_when_nothing_fails() -> None:
    activity, said = Activity(), ["127.0.0.1:9092: Connection refused", None]
    activity.witnesses["Kafka"] = lambda: said[0]
    assert activity.trouble == activity.last_error == "Kafka: 127.0.0.1:9092: Connection refused"
    activity.fails("poll()", "first")
    assert activity.trouble == "poll(): first"
    activity.goes("poll()")
    said.pop(0)
    assert activity.trouble is None


def test_a_wait_that_is_entered_again_and_again_is_one() -> None:
    activity = Activity()
    activity.stay("the wait for records")
    began = activity.since
    activity.stay("the wait for records")
    assert activity.since == began
    activity.enter("put()")
    activity.enter("put()")
    assert activity.since > began


# --- sinks ------------------------------------------------------------------------------------------------------------


def trouble(metrics: SinkMetrics) -> tuple[str, str | None]:
    return metrics.activity.call, metrics.activity.trouble


def test_a_put_that_is_tried_again_is_seen_while_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = SinkBench({P0: 1})
    seen: list[Any] = []
    bench.on_put = [RetriableError("not now"), lambda *_: seen.append(trouble(bench.metrics))]
    bench.run()
    assert seen == [("put()", "put(): RetriableError: not now")]
    assert bench.metrics.activity.trouble is None
    assert bench.metrics.activity.last_error == "put(): RetriableError: not now"


def test_a_refused_commit_is_seen_until_one_goes() -> None:
    bench = SinkBench({P0: 1}, flush_interval_ms=0)
    seen: list[Any] = []
    bench.on_pre_commit = [RetriableError("not now"), lambda *_: seen.append(trouble(bench.metrics))]
    bench.run()
    assert seen == [("pre_commit()", "pre_commit(): RetriableError: not now")]
    assert bench.metrics.activity.trouble is None


def test_offsets_that_kafka_does_not_take_are_seen() -> None:
    bench = SinkBench({P0: 1})
    bench.consumer.commit_errors = [ValueError("the group is away")]
    bench.run()
    assert bench.metrics.activity.trouble == "the commit of offsets: ValueError: the group is away"


def test_a_task_without_partitions_says_whose_it_waits_for() -> None:
    bench = SinkBench({P0: 1}, connector_config={"topics": "orders, bills"})
    bench.consumer.within_fetch = []
    bench.run()
    assert bench.metrics.activity.call == "the wait for partitions of orders, bills"


def test_consumer_and_engine_are_witnesses() -> None:
    bench = SinkBench({P0: 1})
    bench.run()
    bench.engine.in_the_way = "the Python worker has died"
    assert bench.metrics.activity.trouble == "Spark: the Python worker has died"
    bench.consumer.in_the_way = "127.0.0.1:9092: Connection refused"
    assert bench.metrics.activity.trouble == "Kafka: 127.0.0.1:9092: Connection refused"


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_poll_that_is_tried_again_is_seen_while_it_is() -> None:
    source = Source()
    seen: list[Any] = []

    def look(_: object) -> None:
        seen.append((source.metrics.activity.call, source.metrics.activity.trouble))

    source.script.give(RetriableError("not now"), look)
    with source.run(source.spec()) as thread:
        source.script.calls.await_item("poll", 3)
        assert thread.stopped() is None
    assert seen == [("poll()", "poll(): RetriableError: not now")]
    assert source.metrics.activity.trouble is None


@pytest.fixture
def sent() -> Source:
    """A source whose record is on its way, and Kafka says nothing."""
    source = Source(admin=TopicAdmin("dead"))
    spec = source.spec(None, producer={"bootstrap.servers": "broker-1:9092"})
    reporter = source.reporter(spec)
    task = spec.task_class()
    made = AtLeastOnce(spec, source.control, source.ports, source.offsets, source.metrics, task, reporter)
    batch = batch_of(records(1))
    made.add((made_table("1"), batch.record))
    made.end(batch)
    return source


def test_kafka_that_is_silent_is_in_the_way_after_a_while(sent: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent.metrics.activity.trouble is None, "it may be on its way"
    monkeypatch.setattr(at_least_once, "_SLOW_S", -1.0)
    assert sent.metrics.activity.trouble == "Kafka: 1 records are not acknowledged: broker-1:9092"
    sent.sender.in_the_way = "broker-1:9092: Connection refused"
    assert sent.metrics.activity.trouble == "Kafka: 1 records are not acknowledged: broker-1:9092: Connection refused"


def test_kafka_that_has_answered_is_not(sent: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_least_once, "_SLOW_S", -1.0)
    sent.metrics.unacknowledged = 0
    assert sent.metrics.activity.trouble is None


def test_the_time_counts_from_what_was_sent(sent: Source) -> None:
    sent.metrics.written.last = time.monotonic() - 3600
    assert sent.metrics.activity.trouble is None
