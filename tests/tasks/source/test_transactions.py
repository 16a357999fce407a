"""Transactions of a source task: every error at every step, and what is made of it. The fake holds them to the
producer's state table: an abort after a commit that timed out, say, would be ProducerStateError."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from source_fakes import OFFSETS_TOPIC, Source, made_table, reassigned

from headgate.api import Consumed
from headgate.model import Boundary, TopicPartition
from headgate.producer.errors import (
    AuthenticationError,
    CommitFailedError,
    CommitTimeoutError,
    FailureType,
    FatalProducerError,
    GroupFencedError,
    OperationTimeoutError,
    ProducerError,
    ProducerFencedError,
    ProducerStateError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionStateError,
    TransactionTimedOutError,
)
from headgate.producer.states import State
from headgate.tasks.control import Reassigned, Rewind, Stopped
from headgate.tasks.source.transaction_errors import TransactionFailed
from headgate.tasks.source.transactions import Transactions

pytestmark = pytest.mark.kip(691, "a transaction that fails")

CONSUMED = Consumed({TopicPartition("t", 0): 7}, b"group")
ENTRIES = [(b'{"p": 0}', b'{"n": 3}')]
WHOLE = ["begin", "send", "send", "send_offsets", "flush", "commit"]
"""The calls of a transaction with one table, one offset, and what a group has consumed."""
PLACES = [("begin", 0), ("send", 0), ("send", 1), ("send_offsets", 0), ("flush", 0), ("commit", 0)]
"""Each call, and which of its kind."""
AT_EVERY_STEP = pytest.mark.parametrize(
    ("call", "index"), PLACES, ids=["begin", "records", "offsets", "send_offsets", "flush", "commit"]
)


@pytest.fixture
def source() -> Source:
    return Source()


def opened(source: Source) -> Transactions:
    transactions = Transactions(source.spec(Boundary.POLL), source.control, source.listener, source.ports)
    transactions.open()
    source.transactional.calls.clear()
    return transactions


def whole(transactions: Transactions) -> int:
    transactions.send(made_table("a", "b"))
    return transactions.commit(OFFSETS_TOPIC, ENTRIES, CONSUMED)


def failed_with(source: Source, transactions: Transactions, call: str, index: int, error: Exception) -> BaseException:
    """A transaction in which this call raises this error: what is made of it. The calls after that one are left."""
    source.transactional.at(call, *[None] * index, error)
    with pytest.raises(type(error)) as caught:
        whole(transactions)
    assert caught.value is error
    source.transactional.calls.clear()
    return transactions.give_up(error)


# --- the id -----------------------------------------------------------------------------------------------------------


def test_the_id_is_taken_when_all_others_were_fenced_and_the_start_is_confirmed_behind_it(source: Source) -> None:
    at_init: list[str] = []
    source.transactional.at("init", lambda: at_init.extend(source.listener.events))
    opened(source)
    assert at_init == ["await fencing"]
    assert source.listener.events == ["await fencing", "confirm start"]
    assert source.transactional.config["transactional.id"] == "the-id"
    assert source.transactional.state is State.READY


def test_a_task_that_may_not_begin_does_not_take_the_id(source: Source) -> None:
    source.listener.fencing = reassigned()
    with pytest.raises(type(source.listener.fencing), match="another worker has it"):
        opened(source)
    assert "init" not in source.transactional.calls


@pytest.mark.parametrize(
    "kind", [TransactionAbortableError, AuthenticationError, ProducerFencedError, TransactionStateError]
)
def test_whatever_the_broker_says_to_the_first_init_fails_the_task(source: Source, kind: type[ProducerError]) -> None:
    error = kind("init: no")
    source.transactional.at("init", error)
    with pytest.raises(TransactionFailed) as caught:
        opened(source)
    assert caught.value.__cause__ is error
    assert source.listener.events == ["await fencing"], "the start is not confirmed"


def test_without_a_producer_the_task_fails_in_the_same_words(source: Source) -> None:
    source.transactional.at("create", AuthenticationError("create: no"))
    with pytest.raises(TransactionFailed, match=r"create: no. Correct the login"):
        opened(source)


def test_an_init_that_takes_long_is_repeated_until_the_task_shall_stop(source: Source) -> None:
    late = OperationTimeoutError("init: late")
    source.transactional.at("init", late, late)
    opened(source)
    assert source.transactional.state is State.READY

    other = Source()
    other.transactional.at("init", late, _then(other.control.stop, late))
    with pytest.raises(Stopped, match="before it had its transactional id"):
        opened(other)
    assert other.transactional.calls.count("init") == 2


def _then(first: Callable[[], object], error: Exception) -> Callable[[], object]:
    def both() -> object:
        first()
        raise error

    return both


# --- a transaction ----------------------------------------------------------------------------------------------------


def test_records_and_offsets_are_one_transaction(source: Source) -> None:
    transactions = opened(source)
    assert whole(transactions) == 2
    assert source.transactional.calls == WHOLE
    assert source.transactional.committed == [["a", "b"]]
    assert source.offsets.at_zero() == {"n": 3}
    assert source.transactional.consumed == [(CONSUMED.offsets, b"group")]
    assert (transactions.is_open, transactions.size) == (False, 0)


def test_several_tables_join_one_transaction_and_the_next_is_another(source: Source) -> None:
    transactions = opened(source)
    transactions.send(made_table("a"))
    transactions.send(made_table("b", "c"))
    assert (transactions.is_open, transactions.size) == (True, 3)
    assert transactions.commit(OFFSETS_TOPIC, ENTRIES) == 3
    assert transactions.commit(OFFSETS_TOPIC, ENTRIES) == 0, "offsets alone are a transaction, too"
    assert source.transactional.committed == [["a", "b", "c"], []]
    assert source.transactional.consumed == []


def test_an_abort_drops_what_is_open_and_is_nothing_without(source: Source) -> None:
    transactions = opened(source)
    transactions.abort()
    assert source.transactional.calls == []
    transactions.send(made_table("a"))
    transactions.abort()
    assert source.transactional.calls == ["begin", "send", "abort"]
    assert (transactions.is_open, transactions.size) == (False, 0)
    assert whole(transactions) == 2
    assert source.transactional.committed == [["a", "b"]]


def test_its_time_is_what_the_broker_gives_and_its_end_closes_the_producer(source: Source) -> None:
    source.transactional.timeout = 7.0
    transactions = opened(source)
    assert transactions.timeout == 7.0
    transactions.close()
    assert source.transactional.state is State.CLOSED


# --- time-outs: only repeated -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "late"),
    [
        ("begin", OperationTimeoutError("begin: late")),
        ("flush", OperationTimeoutError("flush: late")),
        ("commit", CommitTimeoutError("commit: late", outcome_unknown=True)),
    ],
)
def test_what_did_not_answer_in_time_is_repeated_and_nothing_else_is_asked(
    source: Source, call: str, late: ProducerError
) -> None:
    transactions = opened(source)
    source.transactional.at(call, late, late)
    whole(transactions)
    position = WHOLE.index(call)
    assert source.transactional.calls == [*WHOLE[:position], call, call, *WHOLE[position:]]
    assert source.transactional.committed == [["a", "b"]]


def test_what_is_sent_piece_by_piece_is_waited_for_in_between(source: Source) -> None:
    source.transactional.one_by_one = True
    transactions = opened(source)
    source.transactional.at("flush", None, OperationTimeoutError("flush: late"))
    transactions.send(made_table("a", "b"))
    assert source.transactional.calls == ["begin", "send", "flush", "send", "flush", "flush"]
    assert transactions.size == 2


def test_an_abort_that_takes_long_is_repeated(source: Source) -> None:
    transactions = opened(source)
    transactions.send(made_table("a"))
    source.transactional.at("abort", OperationTimeoutError("abort: late"))
    transactions.abort()
    assert source.transactional.calls == ["begin", "send", "abort", "abort"]


@pytest.mark.parametrize("call", ["begin", "flush", "commit", "abort"])
def test_a_task_that_was_given_up_on_repeats_nothing(source: Source, call: str) -> None:
    transactions = opened(source)
    late = CommitTimeoutError("late") if call == "commit" else OperationTimeoutError("late")
    source.transactional.at(call, _then(source.control.cancel, late))
    if call == "abort":
        transactions.send(made_table("a"))
    with pytest.raises(Stopped, match="given up on while Kafka was slow") as caught:
        transactions.abort() if call == "abort" else whole(transactions)
    assert source.transactional.calls[-1] == call
    source.transactional.calls.clear()
    assert transactions.give_up(caught.value) is caught.value
    assert source.transactional.calls == [], "least of all an abort behind a commit"


def test_a_commit_that_was_not_answered_is_not_aborted_even_if_the_task_fails_meanwhile(source: Source) -> None:
    transactions = opened(source)
    failure = ZeroDivisionError()
    late = CommitTimeoutError("commit: late", outcome_unknown=True)
    source.transactional.at("commit", _then(lambda: source.control.fail(failure), late))
    with pytest.raises(ZeroDivisionError):
        whole(transactions)
    assert transactions.give_up(failure) is failure
    assert source.transactional.calls == WHOLE
    transactions.close()
    assert source.transactional.state is State.CLOSED


def test_a_task_that_shall_stop_still_waits_for_its_commit(source: Source) -> None:
    transactions = opened(source)
    source.transactional.at("commit", _then(source.control.stop, CommitTimeoutError("commit: late")))
    whole(transactions)
    assert source.transactional.committed == [["a", "b"]]


# --- errors at every step ---------------------------------------------------------------------------------------------


@AT_EVERY_STEP
def test_a_transaction_that_is_lost_is_aborted_and_a_new_producer_goes_on(
    source: Source, call: str, index: int
) -> None:
    transactions = opened(source)
    error = (CommitFailedError if call == "commit" else TransactionAbortableError)(f"{call}: lost")
    rewind = failed_with(source, transactions, call, index, error)
    assert isinstance(rewind, Rewind)
    assert rewind.error is error
    assert source.transactional.calls == ["abort", "renew", "init"]
    assert (transactions.is_open, transactions.size) == (False, 0)
    assert (source.transactional.committed, source.offsets.stored) == ([], {})
    whole(transactions)
    assert source.transactional.committed == [["a", "b"]]


@AT_EVERY_STEP
def test_where_client_and_broker_disagree_a_new_producer_settles_it_without_an_abort(
    source: Source, call: str, index: int
) -> None:
    transactions = opened(source)
    error = TransactionStateError(f"{call}: what?")
    rewind = failed_with(source, transactions, call, index, error)
    assert isinstance(rewind, Rewind)
    assert rewind.error is error
    assert source.transactional.calls == ["renew", "init"]
    whole(transactions)
    assert source.transactional.committed == [["a", "b"]]


@AT_EVERY_STEP
@pytest.mark.parametrize("kind", [TopicAuthorizationError, TransactionTimedOutError, GroupFencedError])
def test_what_an_abort_does_not_put_right_fails_the_task(
    source: Source, call: str, index: int, kind: type[FatalProducerError]
) -> None:
    transactions = opened(source)
    error = kind(f"{call}: no", operation=call)
    failure = failed_with(source, transactions, call, index, error)
    assert isinstance(failure, TransactionFailed)
    assert failure.__cause__ is error
    assert source.transactional.calls == []
    assert source.transactional.committed == []


@AT_EVERY_STEP
def test_who_is_fenced_while_the_task_is_its_own_fails(source: Source, call: str, index: int) -> None:
    transactions = opened(source)
    failure = failed_with(source, transactions, call, index, ProducerFencedError("fenced"))
    assert isinstance(failure, TransactionFailed)
    assert "Something else took the transactional id" in str(failure)
    assert source.transactional.calls == []


@AT_EVERY_STEP
@pytest.mark.parametrize("kind", [ProducerFencedError, TransactionTimedOutError])
def test_who_is_fenced_because_another_worker_has_the_task_ends_without_a_word(
    source: Source, call: str, index: int, kind: type[ProducerError]
) -> None:
    """In time or late: of who was late nobody can tell whether that is why."""
    transactions = opened(source)
    source.listener.refusal = reassigned()
    assert isinstance(failed_with(source, transactions, call, index, kind("fenced")), Reassigned)
    assert source.transactional.calls == []


def test_who_is_fenced_and_cannot_find_out_by_whom_fails(source: Source) -> None:
    transactions = opened(source)
    source.listener.refusal = TimeoutError("the leader is away")
    failure = failed_with(source, transactions, "commit", 0, ProducerFencedError("fenced"))
    assert isinstance(failure, TransactionFailed)


def test_a_failed_commit_that_was_none_is_found_out_by_its_abort(source: Source) -> None:
    transactions = opened(source)
    error = CommitFailedError("commit: lost", outcome_unknown=True)
    rewind = failed_with(source, transactions, "commit", 0, error)
    assert isinstance(rewind, Rewind)
    assert isinstance(rewind.error, TransactionStateError)
    assert source.transactional.calls == ["abort", "renew", "init"]
    assert source.transactional.committed == [["a", "b"]]
    assert source.offsets.at_zero() == {"n": 3}, "who goes on there does not repeat it"


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), Stopped("given up on"), ProducerStateError("a bug")],
    ids=lambda each: type(each).__name__,
)
def test_what_is_no_error_of_kafka_comes_out_as_it_is_and_touches_nothing(source: Source, error: Exception) -> None:
    transactions = opened(source)
    transactions.send(made_table("a"))
    source.transactional.calls.clear()
    assert transactions.give_up(error) is error
    assert source.transactional.calls == []


def test_a_rewind_that_nothing_was_wrong_with_starts_over_all_the_same(source: Source) -> None:
    transactions, rewind = opened(source), Rewind()
    assert transactions.give_up(rewind) is rewind
    assert source.transactional.calls == ["renew", "init"]


# --- errors while it is given up --------------------------------------------------------------------------------------


def test_who_does_not_have_the_task_any_more_does_not_start_over(source: Source) -> None:
    """Its init would fence the producer of the worker that has it now."""
    transactions = opened(source)
    source.listener.refusal = reassigned()
    gone = failed_with(source, transactions, "flush", 0, TransactionAbortableError("lost"))
    assert isinstance(gone, Reassigned)
    assert "init" not in source.transactional.calls


@pytest.mark.parametrize(("meanwhile", "calls"), [("renew", ["abort", "renew"]), ("init", ["abort", "renew", "init"])])
def test_who_loses_the_task_while_it_starts_over_does_not_go_on(
    source: Source, meanwhile: str, calls: list[str]
) -> None:
    transactions = opened(source)
    source.transactional.at(meanwhile, lambda: setattr(source.listener, "refusal", reassigned()))
    gone = failed_with(source, transactions, "flush", 0, TransactionAbortableError("lost"))
    assert isinstance(gone, Reassigned)
    assert source.transactional.calls == calls


def test_who_cannot_find_out_whether_the_task_is_its_own_fails_and_does_not_start_over(source: Source) -> None:
    transactions = opened(source)
    source.listener.refusal = TimeoutError("the leader is away")
    failure = failed_with(source, transactions, "flush", 0, TransactionAbortableError("lost"))
    assert failure is source.listener.refusal
    assert "init" not in source.transactional.calls


@pytest.mark.parametrize(
    ("worse", "expected", "calls"),
    [
        (TransactionAbortableError("abort: lost"), TransactionFailed, ["abort"]),
        (TopicAuthorizationError("abort: no"), TransactionFailed, ["abort"]),
        (ProducerFencedError("abort: fenced"), TransactionFailed, ["abort"]),
        (TransactionStateError("abort: what?"), Rewind, ["abort", "renew", "init"]),
        (ValueError("a bug"), ValueError, ["abort"]),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_abort_that_fails_itself_is_taken_for_what_it_says(
    source: Source, worse: Exception, expected: type[BaseException], calls: list[str]
) -> None:
    transactions = opened(source)
    source.transactional.at("abort", worse)
    made = failed_with(source, transactions, "send", 0, TransactionAbortableError("send: lost"))
    assert isinstance(made, expected)
    assert source.transactional.calls == calls
    assert worse in (made, made.__cause__, getattr(made, "error", None))


def test_an_abort_that_is_fenced_by_the_worker_that_has_the_task_now_ends_it_without_a_word(source: Source) -> None:
    transactions = opened(source)
    source.listener.refusal = reassigned()
    source.transactional.at("abort", ProducerFencedError("abort: fenced"))
    assert isinstance(failed_with(source, transactions, "send", 0, TransactionAbortableError("lost")), Reassigned)


def test_an_abort_that_is_late_is_repeated_while_a_transaction_is_given_up(source: Source) -> None:
    transactions = opened(source)
    late = OperationTimeoutError("abort: late")
    source.transactional.at("abort", late, late)
    assert isinstance(failed_with(source, transactions, "send", 0, TransactionAbortableError("lost")), Rewind)
    assert source.transactional.calls == ["abort", "abort", "abort", "renew", "init"]


@pytest.mark.parametrize(
    ("worse", "expected"),
    [
        (AuthenticationError("init: no"), TransactionFailed),
        (ProducerFencedError("init: fenced"), TransactionFailed),
        (OperationTimeoutError("init: late"), Rewind),
        (TransactionStateError("init: what?"), Rewind),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_init_that_fails_while_it_starts_over_is_taken_for_what_it_says(
    source: Source, worse: ProducerError, expected: type[BaseException]
) -> None:
    transactions = opened(source)
    source.transactional.at("init", worse)
    made = failed_with(source, transactions, "flush", 0, TransactionAbortableError("lost"))
    assert isinstance(made, expected)
    if expected is Rewind:
        whole(transactions)
        assert source.transactional.committed == [["a", "b"]]


def test_who_shall_stop_does_not_wait_for_the_id_again(source: Source) -> None:
    transactions = opened(source)
    source.control.stop()
    assert isinstance(failed_with(source, transactions, "flush", 0, TransactionAbortableError("lost")), Stopped)
    assert source.transactional.calls == ["abort", "renew"]


# --- how often, and how long in between -------------------------------------------------------------------------------


def lost(failure_type: FailureType | None = None) -> Rewind:
    return Rewind(TransactionAbortableError("lost", failure_type=failure_type))


def test_failures_in_a_row_are_followed_by_longer_pauses_and_the_tenth_fails_the_task(source: Source) -> None:
    transactions = opened(source)
    pauses = [transactions.retry_delay(lost()) for _ in range(9)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0])
    last = lost()
    with pytest.raises(TransactionFailed) as caught:
        transactions.retry_delay(last)
    assert caught.value.__cause__ is last.error


def test_a_record_that_kafka_does_not_take_is_tried_less_often(source: Source) -> None:
    transactions = opened(source)
    for _ in range(2):
        transactions.retry_delay(lost(FailureType.MESSAGE_REJECTED))
    with pytest.raises(TransactionFailed):
        transactions.retry_delay(lost(FailureType.MESSAGE_REJECTED))


def test_a_commit_in_between_makes_the_next_failure_the_first(source: Source) -> None:
    transactions = opened(source)
    for _ in range(9):
        transactions.retry_delay(lost())
    transactions.abort()
    whole(transactions)
    assert transactions.retry_delay(lost()) == pytest.approx(0.1)


def test_what_is_no_failure_is_not_counted(source: Source) -> None:
    transactions = opened(source)
    together = lost()
    assert isinstance(together.error, ProducerError)
    source.transactional.shrinking.append(together.error)
    for _ in range(20):
        assert transactions.retry_delay(Rewind()) == 0.0
        assert transactions.retry_delay(together) == 0.0, "smaller pieces will do"
    assert transactions.retry_delay(lost()) == pytest.approx(0.1)
