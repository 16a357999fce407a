"""The table of codes: total, and what it says of each code in each operation, with librdkafka's flags."""

from __future__ import annotations

import inspect

import pytest

from headgate import producer
from headgate.producer import (
    ApplicationRecoverableError,
    AuthenticationError,
    AuthorizationError,
    ClusterAuthorizationError,
    CommitFailedError,
    CommitTimeoutError,
    FailedRecord,
    FailedRecords,
    FailureType,
    FatalProducerError,
    GroupAuthorizationError,
    GroupFencedError,
    InvalidConfigurationError,
    KafkaErrorInfo,
    Operation,
    OperationTimeoutError,
    ProduceFailedError,
    ProducerError,
    ProducerFencedError,
    ProducerStateError,
    ProtocolBugError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionStateError,
    TransactionTimedOutError,
    UnsupportedFeatureError,
)
from headgate.producer.classify import Situation, as_commit_failed, classify, needs_new_handle, produce_failed
from headgate.producer.codes import meaning, name

pytestmark = pytest.mark.kip(691, "fatal and abortable errors are told apart by class")

EVERY = [*range(-199, 134), 9999]
INSIDE = (Operation.SEND, Operation.SEND_OFFSETS, Operation.FLUSH, Operation.COMMIT)
PUBLIC = {kind for _, kind in inspect.getmembers(producer, inspect.isclass) if issubclass(kind, BaseException)}
FLAGS = [{}, {"fatal": True}, {"requires_abort": True}, {"retriable": True}]


def info(code: int, **flags: bool) -> KafkaErrorInfo:
    return KafkaErrorInfo(code, name(code), "text", **flags)


def kind(code: int, operation: Operation, **flags: bool) -> type[BaseException]:
    return type(classify(info(code, **flags), Situation(operation, "task")))


def produced(code: int, operation: Operation, **flags: bool) -> type[BaseException]:
    """As it is when a record of the transaction was answered with it."""
    return type(classify(info(code, **flags), Situation(operation, "task", failed_codes={code})))


# --- total ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: ",".join(flags) or "none")
@pytest.mark.parametrize("operation", Operation)
def test_case_29_every_code_has_one_class_everywhere(operation: Operation, flags: dict[str, bool]) -> None:
    for code in EVERY:
        error = classify(info(code, **flags), Situation(operation, "task"))
        assert type(error) in PUBLIC | {KeyboardInterrupt}, code
        if isinstance(error, ProducerError):
            assert error.code == code
            assert error.operation == operation
            assert error.__cause__ is not None
            assert error.__cause__.__cause__ is None


def test_case_29_commit_has_one_class_for_what_is_not_fatal() -> None:
    for code in EVERY:
        for flags in FLAGS:
            error = classify(info(code, **flags), Situation(Operation.COMMIT, "task"))
            if isinstance(error, TransactionAbortableError):
                assert type(error) is CommitFailedError, code


def test_case_29_every_code_has_kafkas_name() -> None:
    assert (name(3), name(10), name(17), name(105), name(-1)) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "MESSAGE_TOO_LARGE",
        "INVALID_TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "UNKNOWN_SERVER_ERROR",
    )
    assert (name(-144), name(9999)) == ("_FENCED", "CODE_9999")
    assert not [code for code in range(-1, 134) if name(code).startswith(("ERR", "CODE"))]


# --- by the code ------------------------------------------------------------------------------------------------------

REJECTED, UNDELIVERED, TRANSACTION = FailureType

ABORTABLE = {
    REJECTED: [-190, -188, 10, 17, 18, 21, 32, 44, 76, 87],
    UNDELIVERED: [-192, -166, -184, 2, 3, 5, 6, 7, 8, 9, 13, 19, 20, 56, 74, 75, 100, 103, 45, 59],
    TRANSACTION: [-152, -151, -149, 14, 15, 16, 51, 88, 89, 12, 24, 28, 42, 55, 27, 49, 120],
}
FATAL: dict[type[FatalProducerError], list[int]] = {
    AuthenticationError: [-169, 33, 34, 58],
    TopicAuthorizationError: [29],
    GroupAuthorizationError: [30],
    ClusterAuthorizationError: [31],
    TransactionalIdAuthorizationError: [53],
    UnsupportedFeatureError: [-165, 35, 43, 50],
    GroupFencedError: [22, 25, 82, 110, 113],
    ProducerFencedError: [-144, 47, 90],
    TransactionStateError: [-148, 48, 52, 105, 1, 99, 9999, -1, -196],
    FatalProducerError: [-150],
}
BUGS = {ProtocolBugError: [-199, -155, 0, 46], ProducerStateError: [-177, -173, -172, -145, -186]}


@pytest.mark.parametrize("operation", INSIDE)
@pytest.mark.parametrize("failure_type", FailureType)
def test_abortable_codes(failure_type: FailureType, operation: Operation) -> None:
    for code in ABORTABLE[failure_type]:
        error = classify(info(code, requires_abort=True), Situation(operation, "task"))
        assert type(error) is (CommitFailedError if operation is Operation.COMMIT else TransactionAbortableError), code
        assert error.failure_type is failure_type, code


@pytest.mark.parametrize("flags", [{}, {"fatal": True}, {"requires_abort": True}], ids=str)
@pytest.mark.parametrize("operation", [*INSIDE, Operation.INIT, Operation.ABORT])
def test_fatal_codes_are_fatal_in_every_place(operation: Operation, flags: dict[str, bool]) -> None:
    for expected, codes in FATAL.items():
        for code in codes:
            assert kind(code, operation, **flags) is expected, code


def test_bugs_are_raised_bare() -> None:
    for expected, codes in BUGS.items():
        for code in codes:
            assert kind(code, Operation.COMMIT) is expected, code
    assert produced(-155, Operation.FLUSH, requires_abort=True) is TransactionAbortableError
    assert kind(-173, Operation.ABORT, retriable=True) is ProducerStateError  # retriable, but not by this call


def test_what_is_wrong_with_a_record_is_no_bug() -> None:
    assert kind(-186, Operation.SEND) is TransactionAbortableError
    assert kind(-186, Operation.SEND_OFFSETS) is TransactionAbortableError
    assert kind(-186, Operation.CREATE) is InvalidConfigurationError


@pytest.mark.kip(691, "unexpected errors are fatal, in one layer")
def test_what_nobody_expects_is_fatal_even_if_librdkafka_would_abort() -> None:
    for code in (1, 99, 9999):
        assert issubclass(kind(code, Operation.COMMIT, requires_abort=True), FatalProducerError)
    assert issubclass(kind(-1, Operation.COMMIT, requires_abort=True), FatalProducerError)
    assert produced(-1, Operation.COMMIT, requires_abort=True) is CommitFailedError


# --- by the flags -----------------------------------------------------------------------------------------------------


def test_a_timeout_is_told_from_a_failure() -> None:
    assert kind(-185, Operation.INIT, retriable=True) is OperationTimeoutError
    assert kind(-185, Operation.ABORT, retriable=True) is OperationTimeoutError
    assert kind(-185, Operation.COMMIT, retriable=True) is CommitTimeoutError
    assert kind(-185, Operation.COMMIT, requires_abort=True) is CommitFailedError
    assert kind(-185, Operation.SEND_OFFSETS, retriable=True) is TransactionAbortableError


def test_a_busy_coordinator_is_a_timeout_only_where_the_call_may_be_repeated() -> None:
    assert kind(51, Operation.INIT, retriable=True) is OperationTimeoutError
    assert kind(14, Operation.INIT, retriable=True) is OperationTimeoutError
    assert kind(51, Operation.SEND_OFFSETS, retriable=True) is TransactionAbortableError
    assert kind(35, Operation.INIT, retriable=True) is UnsupportedFeatureError
    assert kind(-1, Operation.INIT, retriable=True) is OperationTimeoutError


def test_fatal_to_librdkafka_is_fatal_except_for_a_lost_sequence() -> None:
    assert kind(10, Operation.COMMIT, fatal=True) is FatalProducerError
    assert kind(45, Operation.COMMIT, fatal=True) is CommitFailedError
    assert kind(49, Operation.COMMIT, requires_abort=True) is CommitFailedError
    assert kind(49, Operation.SEND_OFFSETS, fatal=True) is TransactionStateError


# --- by what happened before ------------------------------------------------------------------------------------------


@pytest.mark.kip(588, "a transaction that timed out is told apart from a fenced producer")
def test_fenced_after_the_transaction_timeout_is_a_timeout() -> None:
    late = Situation(Operation.COMMIT, "task", overdue=True)
    error = classify(info(-144, fatal=True), late)
    assert type(error) is TransactionTimedOutError
    assert "transaction.timeout.ms" in str(error)
    assert type(classify(info(47), late)) is TransactionTimedOutError
    assert type(classify(info(90, requires_abort=True), late)) is ProducerFencedError


def test_only_after_the_coordinator_was_asked_the_outcome_is_unknown() -> None:
    for ending in (True, False):
        error = classify(info(48, fatal=True), Situation(Operation.COMMIT, "task", ending=ending))
        assert isinstance(error, TransactionStateError)
        assert error.outcome_unknown is ending
    timeout = classify(info(-185, retriable=True), Situation(Operation.COMMIT, "task"))
    assert isinstance(timeout, CommitTimeoutError)
    assert timeout.outcome_unknown


def test_an_error_that_says_nothing_gets_the_cause_of_the_first_record() -> None:
    failed = FailedRecords(2, (FailedRecord("a b", 0, None, 17),))
    situation = Situation(Operation.COMMIT, "task", failed=failed, failed_codes={17}, first_failure=info(17))
    for vague in (info(-149, requires_abort=True), info(-185, requires_abort=True)):
        error = classify(vague, situation)
        assert isinstance(error, CommitFailedError)
        assert error.code == 17
        assert error.failure_type is FailureType.MESSAGE_REJECTED
        assert error.failed_records == failed
        assert type(error.cause) is ProduceFailedError
        assert error.cause.failure_type is FailureType.MESSAGE_REJECTED
        assert error.cause.__cause__ is None
    # The first record can say that all is lost.
    forbidden = Situation(Operation.COMMIT, "task", failed_codes={29}, first_failure=info(29))
    assert type(classify(info(-149, requires_abort=True), forbidden)) is TopicAuthorizationError


@pytest.mark.kip(691, "one layer of wrapping")
def test_commit_says_again_what_was_stored_in_its_own_class_with_the_same_cause() -> None:
    stored = classify(info(10), Situation(Operation.SEND, "task", failed_codes={10}))
    assert isinstance(stored, TransactionAbortableError)
    error = as_commit_failed(stored)
    assert error.cause is stored.cause
    assert (error.code, error.operation, error.failure_type) == (10, "commit", FailureType.MESSAGE_REJECTED)
    assert as_commit_failed(error) is error


@pytest.mark.kip(691, "a callback's error has one of three failure types")
@pytest.mark.parametrize("code", EVERY)
def test_a_record_fails_in_one_of_three_ways(code: int) -> None:
    error = produce_failed(info(code), None)
    assert type(error) is ProduceFailedError
    assert error.failure_type in FailureType
    assert error.failure_type is (meaning(code).failure_type or FailureType.TRANSACTION_FAILED)


def test_classes_that_a_restart_cannot_help_are_not_recoverable() -> None:
    for code in (29, 30, 31, 53, 58, 35, 50):
        assert not issubclass(kind(code, Operation.INIT), ApplicationRecoverableError)
    assert issubclass(kind(29, Operation.SEND), AuthorizationError)


# --- after an abort ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "failed", "meanwhile", "needed"),
    [
        (None, set(), set(), False),
        (None, {10}, set(), False),  # refused without asking a broker
        (10, {10}, set(), True),
        (-149, {17}, set(), False),
        (59, {59}, set(), False),
        (-185, {-192}, set(), False),
        (45, set(), set(), True),
        (49, {-152}, set(), True),
        (22, set(), set(), False),
        (120, set(), set(), False),
        (120, {120}, set(), True),
        (None, {10}, {10}, True),
        (None, {-152}, {-152}, False),
        (None, {-192}, {-192}, False),
    ],
)
def test_a_new_handle_is_needed_where_a_leader_refused_records(
    stored: int | None, failed: set[int], meanwhile: set[int], needed: bool
) -> None:
    error = None if stored is None else info(stored, requires_abort=True)
    assert needs_new_handle(error, failed, meanwhile) is needed
