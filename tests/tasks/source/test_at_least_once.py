"""At least once: offsets are stored only behind records that Kafka has answered for, and at the intervals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from fakes import TopicAdmin, errors_config
from source_fakes import (
    TOLERANT,
    ScriptedTask,
    Source,
    ToldTask,
    batch_of,
    made_table,
    record,
    records,
    source_table,
)

from headgate.tasks.control import Stopped
from headgate.tasks.source import refusals
from headgate.tasks.source.at_least_once import AtLeastOnce
from headgate.tasks.source.batch import Batch
from headgate.tasks.source.refusals import RecordRefused

DEAD_LETTERS = errors_config(tolerance="all", deadletterqueue_topic_name="dead")


@pytest.fixture
def source() -> Source:
    return Source(admin=TopicAdmin("dead"))


def outlet(source: Source, base: type[ScriptedTask] = ScriptedTask, **more: Any) -> AtLeastOnce:
    spec = source.spec(None, base, **more)
    task = spec.task_class()
    return AtLeastOnce(spec, source.control, source.ports, source.offsets, source.metrics, task, source.reporter(spec))


def pass_on(made: AtLeastOnce, batch: Batch, table: pa.Table | None = None) -> None:
    """All of a batch; `table`: what the chain made of it."""
    values = [batch.record(row).value for row in range(sum(batch.rows))]
    made.add((made_table(*values) if table is None else table, batch.record))
    made.end(batch)


# --- when offsets are stored ------------------------------------------------------------------------------------------


def test_offsets_are_stored_at_the_interval_behind_what_kafka_has(source: Source) -> None:
    made = outlet(source)
    assert made.due() == pytest.approx(30.0), "there is nothing to store: the client may rest then"
    pass_on(made, batch_of(records(1, 2)))
    assert source.sender.values == ["1", "2"]
    assert made.due() == pytest.approx(0.5), "whether Kafka has them is looked at more often"
    source.clock.move(59.0)
    made.commit_if_due()
    assert source.offsets.calls == []
    assert made.due() == pytest.approx(1.0)
    source.clock.move(2.0)
    assert made.due() == 0.0
    at_put: list[int] = []
    source.offsets.at("put", lambda: at_put.append(source.sender.arrived))
    made.commit_if_due()
    assert at_put == [2], "Kafka has answered for both before"
    assert source.offsets.at_zero() == {"n": 2}
    assert source.script.calls == ["commit"]
    assert made.due() is None


def test_settling_does_not_wait_for_the_interval_and_begins_another(source: Source) -> None:
    made = outlet(source, flush_interval_ms=20_000)
    pass_on(made, batch_of(records(1)))
    source.clock.move(15.0)
    made.settle()
    assert source.offsets.at_zero() == {"n": 1}
    pass_on(made, batch_of(records(2)))
    made.commit_if_due()
    assert made.due() == pytest.approx(20.0)


def test_with_nothing_to_store_nobody_is_asked(source: Source) -> None:
    made = outlet(source)
    made.settle()
    pass_on(made, batch_of([record("without an offset")]))
    made.settle()
    assert (source.sender.calls, source.offsets.calls, source.script.calls) == (["send"], [], [])


def test_each_partition_is_stored_where_it_is_now(source: Source) -> None:
    made = outlet(source)
    other = record("x", 5).replace(source_partition={"p": 1})
    pass_on(made, batch_of(records(1), [other], records(2), source_table(3)))
    made.settle()
    assert source.offsets.stored == {'{"p": 0}': {"n": 3}, '{"p": 1}': {"n": 5}}
    assert source.offsets.calls == ["put"]


def test_a_table_without_rows_moves_the_offset(source: Source) -> None:
    made = outlet(source)
    made.end(batch_of(source_table(offset=9)))
    made.settle()
    assert (source.sender.values, source.offsets.at_zero()) == ([], {"n": 9})


# --- when there is nothing to send ------------------------------------------------------------------------------------


def test_a_client_rests_once_after_half_a_minute_and_again_after_what_wakes_it(source: Source) -> None:
    made = outlet(source, flush_interval_ms=5_000)
    pass_on(made, batch_of(records(1)))
    made.settle()
    source.clock.move(29.0)
    made.commit_if_due()
    assert made.due() == pytest.approx(1.0)
    assert "rest" not in source.sender.calls
    source.clock.move(1.0)
    made.commit_if_due()
    assert source.sender.calls[-1] == "rest"
    assert made.due() is None
    source.clock.move(100.0)
    made.commit_if_due()
    pass_on(made, batch_of(records(2)))
    made.settle()
    source.clock.move(31.0)
    made.commit_if_due()
    assert source.sender.calls.count("rest") == 2


def test_a_client_that_kafka_has_not_answered_does_not_rest(source: Source) -> None:
    made = outlet(source)
    pass_on(made, batch_of(records(1)))
    source.sender.at("look", lambda: False)
    source.clock.move(45.0)
    made.commit_if_due()
    assert "rest" not in source.sender.calls
    assert made.due() == pytest.approx(0.5)


# --- when they are not ------------------------------------------------------------------------------------------------


def test_a_flush_that_does_not_finish_in_time_stores_nothing_until_the_next_interval(source: Source) -> None:
    made = outlet(source)
    pass_on(made, batch_of(records(1)))
    source.sender.at("flush", False)
    source.clock.move(60.0)
    made.commit_if_due()
    assert (source.offsets.calls, source.script.calls) == ([], [])
    assert (source.metrics.commits, source.metrics.commit_failures) == (0, 1)
    made.commit_if_due()
    assert made.due() == pytest.approx(60.0), "not again and again"
    assert source.offsets.calls == []
    source.clock.move(60.0)
    made.commit_if_due()
    assert source.offsets.at_zero() == {"n": 1}
    assert (source.metrics.commits, source.metrics.commit_failures) == (1, 1)


def test_a_dead_letter_that_has_not_arrived_holds_the_offsets_back(source: Source) -> None:
    made = outlet(source, errors=DEAD_LETTERS)
    source.sender.refuses = {"1"}
    source.letters.slow = True
    pass_on(made, batch_of(records(1)))
    made.settle()
    assert source.offsets.calls == []
    (letter,) = source.letters.futures
    letter.set_result(None)
    made.settle()
    assert source.offsets.at_zero() == {"n": 1}


def test_who_was_given_up_on_stores_nothing_even_if_kafka_has_all(source: Source) -> None:
    """Another worker may have the task by now, and be further."""
    made = outlet(source)
    pass_on(made, batch_of(records(1)))
    source.sender.at("flush", source.control.cancel)
    made.settle()
    assert (source.offsets.calls, source.script.calls) == ([], [])


def test_a_store_that_fails_is_tried_again_at_the_next_interval(source: Source) -> None:
    made = outlet(source)
    pass_on(made, batch_of(records(1)))
    source.offsets.at("put", OSError("disk full"))
    made.settle()
    assert (source.offsets.at_zero(), source.script.calls) == (None, [])
    assert (source.metrics.commits, source.metrics.commit_failures) == (0, 1)
    pass_on(made, batch_of(records(2)))
    source.clock.move(60.0)
    made.commit_if_due()
    assert source.offsets.at_zero() == {"n": 2}
    assert source.script.calls == ["commit"]


# --- what Kafka refuses -----------------------------------------------------------------------------------------------


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_a_refused_record_fails_the_task_and_no_offset_passes_it(source: Source) -> None:
    made = outlet(source)
    source.sender.refuses = {"2"}
    pass_on(made, batch_of(records(1, 2)))
    with pytest.raises(RecordRefused, match="too large, record of 1 bytes for topic t"):
        made.settle()
    assert source.offsets.calls == []
    assert source.metrics.written.total == 0, "nobody has asked any more whether the other one arrived"
    assert source.metrics.errors.errors == 1


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_a_refused_record_is_left_out_where_that_is_tolerated(source: Source) -> None:
    made = outlet(source, errors=DEAD_LETTERS)
    source.sender.refuses = {"2", "5"}
    pass_on(made, batch_of(records(1, 2)))
    pass_on(made, batch_of(records(3, 4, 5)), made_table("5"))
    made.settle()
    assert source.offsets.at_zero() == {"n": 5}
    assert [value for _, value, *_ in source.letters.sent] == [b"2", b"5"]
    assert source.metrics.written.total == 1
    assert source.metrics.errors.skipped == 2


def test_what_may_still_be_refused_is_remembered_only_up_to_a_limit(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "_MOST_BYTES", 30)
    made = outlet(source, errors=TOLERANT)
    pass_on(made, batch_of([record("x" * 10, 1)]))
    assert source.sender.calls == ["send"]
    pass_on(made, batch_of([record("x" * 20, 2)]))
    assert source.sender.calls == ["send", "send", "flush"]
    pass_on(made, batch_of([record("x" * 10, 3)]))
    assert source.sender.calls[-1] == "send", "what was answered for is forgotten"
    assert source.offsets.calls == []


# --- a task that wants to know of each record -------------------------------------------------------------------------


def test_a_task_is_told_of_each_record_when_kafka_has_answered(source: Source) -> None:
    made = outlet(source, ToldTask)
    told_too_early: list[Any] = []
    source.sender.at("flush", False, lambda: told_too_early.extend(source.script.acknowledged))
    pass_on(made, batch_of(records(1, 2), source_table(3), records(4)))
    assert source.sender.calls == ["send", "flush", "flush"]
    assert told_too_early == []
    assert source.script.acknowledged == ["1", "2", "4"], "rows of a table are not told"


def test_a_task_that_is_told_waits_for_kafka_until_it_is_given_up_on(source: Source) -> None:
    made = outlet(source, ToldTask)

    def give_up() -> bool:
        source.control.cancel()
        return False

    source.sender.at("flush", False, give_up)
    with pytest.raises(Stopped, match="given up on while Kafka was slow"):
        pass_on(made, batch_of(records(1)))
    assert source.script.acknowledged == []


def test_a_task_that_is_told_does_not_wait_on_when_it_has_failed(source: Source) -> None:
    made = outlet(source, ToldTask)
    source.control.fail(ZeroDivisionError())
    source.sender.at("flush", False)
    with pytest.raises(ZeroDivisionError):
        pass_on(made, batch_of(records(1)))


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_what_is_under_way_is_counted(source: Source) -> None:
    made = outlet(source)
    source.metrics.taken = 5
    pass_on(made, batch_of(records(1, 2), source_table(3)), made_table("1", "3"))
    assert (source.metrics.active, source.metrics.unacknowledged) == (4, 2), "a transform has dropped one"
    made.settle()
    assert (source.metrics.active, source.metrics.written.total) == (2, 2)


def test_written_is_what_kafka_has_acknowledged(source: Source) -> None:
    """A broker that is away: nothing is written, all of it is under way, and the last success grows old."""
    made = outlet(source)
    source.metrics.taken = 5
    source.sender.at("look", False, None, False)
    source.sender.at("flush", False)
    pass_on(made, batch_of(records(1, 2, 3)))
    made.commit_if_due()
    metrics = source.metrics
    assert (metrics.written.total, metrics.active, metrics.written.last) == (0, 5, None)
    made.commit_if_due()
    then = metrics.written.last
    assert (metrics.written.total, metrics.active) == (3, 2)
    assert then is not None
    pass_on(made, batch_of(records(4, 5)))
    made.commit_if_due()
    source.clock.move(60.0)
    made.commit_if_due()
    assert (metrics.written.total, metrics.active, metrics.commit_failures) == (3, 2, 1)
    assert metrics.written.last == then, "nothing has got there since"


def test_while_the_sender_waits_for_kafka_what_arrived_is_counted(source: Source) -> None:
    outlet(source)
    assert source.sender.may_go_on is not None
    source.sender.send(made_table("1", "2", "3"))
    source.sender.arrived = 1
    assert source.sender.may_go_on()
    assert (source.metrics.written.total, source.metrics.unacknowledged) == (1, 2)


def test_the_sender_may_wait_until_the_task_is_given_up_on(source: Source) -> None:
    made = outlet(source)
    assert source.sender.may_go_on is not None
    source.control.stop()
    assert source.sender.may_go_on(), "what was polled still gets there"
    source.control.cancel()
    assert not source.sender.may_go_on()
    made.close()
    assert source.sender.closed


def test_the_task_fails_with_what_the_pump_failed_with(source: Source) -> None:
    made, error = outlet(source), ValueError()
    assert made.failed(error) is error
    assert made.forbidden is None
