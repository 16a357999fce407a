"""Exactly once: where transactions end, by boundary; what is in them; who is told when."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import Letters, TopicAdmin, errors_config
from source_fakes import (
    OFFSETS_TOPIC,
    ScriptedTask,
    Source,
    ToldTask,
    batch_of,
    made_table,
    record,
    records,
    source_table,
)

from headgate.api import Consumed
from headgate.model import Boundary, TopicPartition
from headgate.producer.errors import CommitFailedError, TopicAuthorizationError, TransactionAbortableError
from headgate.producer.states import State
from headgate.tasks.control import Rewind, Stopped
from headgate.tasks.source.batch import Batch
from headgate.tasks.source.exactly_once import ExactlyOnce
from headgate.tasks.source.polled import End
from headgate.tasks.source.transaction_errors import TransactionFailed
from headgate.tasks.source.transactions import Transactions

pytestmark = pytest.mark.kip(618, "records and offsets are one transaction")

COMMITTED = ["begin", "send", "send", "flush", "commit"]
"""The calls for one table and one offset."""
DEAD_LETTERS = errors_config(tolerance="all", deadletterqueue_topic_name="dead")


class SlowLetters(Letters):
    """Has answers for all letters only after some flushes; `meanwhile` happens at the first."""

    def __init__(self, flushes: int, meanwhile: Any = None) -> None:
        super().__init__()
        self._left = flushes
        self._meanwhile = meanwhile

    def flush(self, seconds: float) -> bool:
        super().flush(seconds)
        if self._meanwhile is not None:
            self._meanwhile()
        self._left -= 1
        return self._left < 0


@pytest.fixture
def source() -> Source:
    return Source(admin=TopicAdmin("dead"))


def outlet(
    source: Source, boundary: Boundary = Boundary.POLL, base: type[ScriptedTask] = ScriptedTask, **more: Any
) -> ExactlyOnce:
    spec = source.spec(boundary, base, **more)
    transactions = Transactions(spec, source.control, source.listener, source.ports)
    transactions.open()
    source.transactional.calls.clear()
    reporter = source.reporter(spec)
    task = spec.task_class()
    return ExactlyOnce(spec, source.control, source.clock, source.offsets, source.metrics, task, reporter, transactions)


def pass_on(made: ExactlyOnce, batch: Batch) -> None:
    """All of a batch, as the chain left it."""
    values = [batch.record(row).value for row in range(sum(batch.rows))]
    if values:
        made.add((made_table(*values), batch.record))
    made.end(batch)


# --- by poll ----------------------------------------------------------------------------------------------------------


def test_each_batch_is_a_transaction_with_its_offsets(source: Source) -> None:
    made = outlet(source)
    pass_on(made, batch_of(records(1, 2)))
    assert source.transactional.calls == COMMITTED
    assert source.offsets.at_zero() == {"n": 2}
    pass_on(made, batch_of(records(3), source_table(4)))
    assert source.transactional.committed == [["1", "2"], ["3", "4"]]
    assert source.offsets.at_zero() == {"n": 4}
    assert source.offsets.copied == [({"p": 0}, {"n": 2}), ({"p": 0}, {"n": 4})]


def test_nothing_is_sent_before_all_of_the_batch_is_there(source: Source) -> None:
    """A record may be tried again for minutes: no transaction stays open for it."""
    made = outlet(source)
    batch = batch_of(records(1, 2))
    made.add((made_table("1"), batch.record))
    made.add((made_table("2"), batch.record))
    assert source.transactional.calls == []
    made.end(batch)
    assert source.transactional.committed == [["1", "2"]]


def test_under_load_batches_share_a_transaction_for_a_second(source: Source) -> None:
    made = outlet(source)
    assert made.due() is None
    pass_on(made, batch_of(records(1), more=True))
    assert source.transactional.committed == []
    assert made.due() == pytest.approx(1.0)
    source.clock.move(0.9)
    made.commit_if_due()
    pass_on(made, batch_of(records(2), more=True))
    assert source.transactional.committed == []
    source.clock.move(0.2)
    made.commit_if_due()
    assert source.transactional.committed == [["1", "2"]]
    pass_on(made, batch_of(records(3), more=True))
    pass_on(made, batch_of(records(4)))
    assert source.transactional.committed == [["1", "2"], ["3", "4"]]
    assert made.due() is None


def test_a_batch_of_which_nothing_is_left_still_moves_the_offset(source: Source) -> None:
    made = outlet(source)
    batch = batch_of(records(1, 2))
    made.add((made_table(), batch.record))
    made.end(batch)
    made.end(batch_of(source_table(offset=7)))
    assert source.transactional.committed == [[], []]
    assert source.offsets.at_zero() == {"n": 7}


def test_what_has_neither_rows_nor_offsets_is_no_transaction(source: Source) -> None:
    made = outlet(source)
    made.end(batch_of([record("dropped")]))
    assert source.transactional.calls == []
    assert source.metrics.commits == 0
    pass_on(made, batch_of([record("without an offset")]))
    assert source.transactional.committed == [["without an offset"]]
    assert source.offsets.copied == []
    assert source.script.consumed_of == [], "a task is asked about offsets only"


# --- by interval ------------------------------------------------------------------------------------------------------


def test_a_transaction_lasts_for_the_interval(source: Source) -> None:
    made = outlet(source, Boundary.INTERVAL)
    source.clock.move(100.0)
    pass_on(made, batch_of(records(1)))
    source.clock.move(4.0)
    pass_on(made, batch_of(records(2)))
    assert made.due() == pytest.approx(6.0), "from its first batch on"
    made.commit_if_due()
    assert source.transactional.committed == []
    source.clock.move(6.0)
    made.commit_if_due()
    assert source.transactional.committed == [["1", "2"]]
    made.commit_if_due()
    assert source.transactional.calls.count("commit") == 1


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL])
def test_a_transaction_never_lasts_longer_than_half_of_what_the_broker_gives(
    source: Source, boundary: Boundary
) -> None:
    source.transactional.timeout = 1.0
    made = outlet(source, boundary)
    pass_on(made, batch_of(records(1), more=True))
    assert made.due() == pytest.approx(0.5)


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL])
def test_settling_commits_what_is_open(source: Source, boundary: Boundary) -> None:
    made = outlet(source, boundary)
    made.settle()
    assert source.transactional.calls == []
    pass_on(made, batch_of(records(1), more=True))
    made.settle()
    assert source.transactional.committed == [["1"]]
    assert made.due() is None


# --- by the connector -------------------------------------------------------------------------------------------------


def test_the_task_says_where_a_transaction_ends(source: Source) -> None:
    made = outlet(source, Boundary.CONNECTOR)
    pass_on(made, batch_of(records(1)))
    source.clock.move(1000.0)
    made.commit_if_due()
    assert made.due() is None, "however long it takes"
    pass_on(made, batch_of(records(2)))
    assert source.transactional.committed == []
    pass_on(made, batch_of(records(3), end=End.COMMIT))
    assert source.transactional.committed == [["1", "2", "3"]]
    assert source.offsets.at_zero() == {"n": 3}


def test_an_abort_drops_the_records_and_moves_the_offsets(source: Source) -> None:
    """As Apache does it: the task wants them gone, not once more."""
    made = outlet(source, Boundary.CONNECTOR)
    pass_on(made, batch_of(records(1)))
    source.transactional.calls.clear()
    pass_on(made, batch_of(records(2), end=End.ABORT))
    assert source.transactional.calls == ["abort", "begin", "send", "flush", "commit"]
    assert source.transactional.committed == [[]]
    assert source.offsets.at_zero() == {"n": 2}
    pass_on(made, batch_of(records(3), end=End.COMMIT))
    assert source.transactional.committed == [[], ["3"]]


def test_an_abort_of_nothing_is_nothing(source: Source) -> None:
    made = outlet(source, Boundary.CONNECTOR)
    pass_on(made, batch_of([], end=End.ABORT))
    assert source.transactional.calls == []
    made.settle()


def test_an_empty_poll_may_end_what_was_open(source: Source) -> None:
    made = outlet(source, Boundary.CONNECTOR)
    pass_on(made, batch_of(records(1)))
    pass_on(made, batch_of([], end=End.COMMIT))
    assert source.transactional.committed == [["1"]]


def test_settling_aborts_what_the_task_has_not_ended_and_it_is_polled_once_more(source: Source) -> None:
    made = outlet(source, Boundary.CONNECTOR)
    made.settle()
    pass_on(made, batch_of(records(1), end=End.COMMIT))
    made.settle()
    pass_on(made, batch_of(records(2)))
    with pytest.raises(Rewind) as caught:
        made.settle()
    assert caught.value.error is None
    assert source.transactional.calls[-1] == "abort"
    assert source.offsets.at_zero() == {"n": 1}


# --- what goes with it, and who is told -------------------------------------------------------------------------------


def test_what_a_group_has_consumed_goes_with_the_offsets(source: Source) -> None:
    source.script.consumed = Consumed({TopicPartition("in", 0): 3}, b"group")
    pass_on(outlet(source), batch_of(records(1, 2)))
    assert source.transactional.consumed == [({TopicPartition("in", 0): 3}, b"group")]
    assert source.script.consumed_of == [({"p": 0}, {"n": 2})]


def test_the_task_is_told_when_it_is_committed(source: Source) -> None:
    made = outlet(source, base=ToldTask)
    too_early: list[Any] = []
    source.transactional.at("commit", lambda: too_early.extend(source.script.calls))
    pass_on(made, batch_of(records(1, 2), source_table(3), records(4)))
    assert too_early == []
    assert source.script.acknowledged == ["1", "2", "4"], "rows of a table are not told"
    assert source.script.calls == [*["commit record"] * 3, "commit"]
    pass_on(made, batch_of(records(5)))
    assert source.script.acknowledged == ["1", "2", "4", "5"]


def test_an_offset_is_part_of_one_transaction_only(source: Source) -> None:
    made = outlet(source)
    other = record("x", 5).replace(source_partition={"p": 1})
    pass_on(made, batch_of(records(1), [other]))
    pass_on(made, batch_of(records(2)))
    assert source.offsets.copied == [({"p": 0}, {"n": 1}), ({"p": 1}, {"n": 5}), ({"p": 0}, {"n": 2})]


def test_a_copy_of_the_offsets_is_made_behind_the_commit(source: Source) -> None:
    made = outlet(source)
    source.transactional.at("commit", CommitFailedError("lost"))
    with pytest.raises(CommitFailedError):
        pass_on(made, batch_of(records(1)))
    assert source.offsets.copied == []
    assert source.script.calls == []


def test_what_was_committed_is_counted(source: Source) -> None:
    made = outlet(source)
    source.metrics.taken = 3
    pass_on(made, batch_of(records(1, 2), more=True))
    assert (source.metrics.active, source.metrics.written.total) == (3, 0)
    pass_on(made, batch_of(records(3)))
    assert (source.metrics.active, source.metrics.written.total, source.metrics.commits) == (0, 3, 1)
    assert source.metrics.transaction_size is not None
    assert source.metrics.transaction_size.maximum == 3


def test_an_offset_that_cannot_be_written_comes_out_before_anything_else_is_sent(source: Source) -> None:
    made = outlet(source)
    source.offsets.at("entries", ValueError("no JSON"))
    with pytest.raises(ValueError, match="no JSON"):
        pass_on(made, batch_of(records(1)))
    assert "commit" not in source.transactional.calls


def test_the_offsets_topic_is_not_the_tasks_to_write_to(source: Source) -> None:
    assert outlet(source).forbidden == OFFSETS_TOPIC


# --- dead letters -----------------------------------------------------------------------------------------------------


def test_a_commit_waits_until_dead_letters_have_arrived() -> None:
    source = Source(admin=TopicAdmin("dead"), letters=SlowLetters(2))
    pass_on(outlet(source, errors=DEAD_LETTERS), batch_of(records(1)))
    assert len(source.letters.flushes) == 3
    assert source.transactional.committed == [["1"]]


def test_a_task_that_is_given_up_on_does_not_wait_for_dead_letters_nor_commits() -> None:
    source = Source(admin=TopicAdmin("dead"))
    source.letters = SlowLetters(5, source.control.cancel)
    made = outlet(source, errors=DEAD_LETTERS)
    with pytest.raises(Stopped, match="slow to take dead letters"):
        pass_on(made, batch_of(records(1)))
    assert "commit" not in source.transactional.calls


def test_a_task_that_has_failed_does_not_wait_for_dead_letters() -> None:
    source = Source(admin=TopicAdmin("dead"))
    source.letters = SlowLetters(5, lambda: source.control.fail(ZeroDivisionError()))
    made = outlet(source, errors=DEAD_LETTERS)
    with pytest.raises(ZeroDivisionError):
        pass_on(made, batch_of(records(1)))
    assert "commit" not in source.transactional.calls


# --- when it goes wrong -----------------------------------------------------------------------------------------------


def test_who_is_given_up_on_sends_nothing_more(source: Source) -> None:
    made = outlet(source)
    batch = batch_of(records(1))
    made.add((made_table("1"), batch.record))
    source.control.cancel()
    with pytest.raises(Stopped, match="before its records were sent"):
        made.end(batch)
    assert source.transactional.calls == []


def test_who_is_given_up_on_while_it_sends_does_not_commit(source: Source) -> None:
    made = outlet(source)
    source.transactional.at("send", source.control.cancel)
    with pytest.raises(Stopped, match="before its transaction was committed"):
        pass_on(made, batch_of(records(1)))
    assert source.transactional.committed == []


def test_transactions_outlive_an_instance_that_is_rewound(source: Source) -> None:
    made = outlet(source)
    error = TransactionAbortableError("lost")
    source.transactional.at("flush", error)
    with pytest.raises(TransactionAbortableError):
        pass_on(made, batch_of(records(1)))
    rewind = made.failed(error)
    assert isinstance(rewind, Rewind)
    assert source.metrics.commit_failures == 1
    made.close()
    assert source.transactional.state is State.READY


def test_transactions_end_with_an_instance_that_fails_or_stops(source: Source) -> None:
    made = outlet(source)
    error = TopicAuthorizationError("no")
    assert isinstance(made.failed(error), TransactionFailed)
    made.close()
    assert source.transactional.state is State.CLOSED
    other = Source()
    made = outlet(other)
    assert isinstance(made.failed(ValueError()), ValueError)
    assert other.metrics.commit_failures == 0, "that was no commit"
    made.close()
    assert other.transactional.state is State.CLOSED
