"""The exception tree: what is below what, what every exception carries, and that it survives a process boundary."""

from __future__ import annotations

import pickle

import pytest

from headgate import producer
from headgate.producer import (
    FailedRecord,
    FailedRecords,
    FailureType,
    FatalProducerError,
    KafkaErrorInfo,
    KafkaFault,
    ProducerError,
    TransactionAbortableError,
)

pytestmark = pytest.mark.kip(691, "one layer of wrapping")

TREE = {
    "ProducerError": Exception,
    "ProduceFailedError": "ProducerError",
    "TransactionAbortedError": "ProduceFailedError",
    "OperationTimeoutError": "ProducerError",
    "CommitTimeoutError": "OperationTimeoutError",
    "TransactionAbortableError": "ProducerError",
    "CommitFailedError": "TransactionAbortableError",
    "FatalProducerError": "ProducerError",
    "ApplicationRecoverableError": "FatalProducerError",
    "ProducerFencedError": "ApplicationRecoverableError",
    "TransactionTimedOutError": "ApplicationRecoverableError",
    "GroupFencedError": "ApplicationRecoverableError",
    "TransactionStateError": "ApplicationRecoverableError",
    "InvalidConfigurationError": "FatalProducerError",
    "AuthenticationError": "InvalidConfigurationError",
    "AuthorizationError": "InvalidConfigurationError",
    "TopicAuthorizationError": "AuthorizationError",
    "GroupAuthorizationError": "AuthorizationError",
    "TransactionalIdAuthorizationError": "AuthorizationError",
    "ClusterAuthorizationError": "AuthorizationError",
    "UnsupportedFeatureError": "InvalidConfigurationError",
    "ProducerStateError": RuntimeError,
    "ProducerClosedError": "ProducerStateError",
    "ProtocolBugError": RuntimeError,
}
BUGS = {"ProducerStateError", "ProducerClosedError", "ProtocolBugError"}
INFO = KafkaErrorInfo(10, "MESSAGE_TOO_LARGE", "too large", requires_abort=True)


def full(kind: type[ProducerError]) -> ProducerError:
    return kind(
        "commit: MESSAGE_TOO_LARGE(10): too large",
        operation="commit",
        transactional_id="task",
        cause=KafkaFault(INFO, FailureType.MESSAGE_REJECTED),
        failed_records=FailedRecords(3, (FailedRecord("orders", 1, 77, 10),)),
        outcome_unknown=True,
    )


@pytest.mark.parametrize("name", TREE)
def test_every_class_is_public_and_has_its_place(name: str) -> None:
    base = TREE[name]
    assert getattr(producer, name).__bases__ == (getattr(producer, base) if isinstance(base, str) else base,)


def test_bugs_are_not_in_the_tree_of_kafkas_errors() -> None:
    assert all(not issubclass(getattr(producer, name), ProducerError) for name in BUGS)


def test_fatal_and_abortable_have_nothing_in_common() -> None:
    kinds = [getattr(producer, name) for name in TREE]
    both = [
        kind for kind in kinds if issubclass(kind, FatalProducerError) and issubclass(kind, TransactionAbortableError)
    ]
    assert both == []


@pytest.mark.parametrize("name", sorted(TREE.keys() - BUGS))
def test_case_27_every_exception_survives_a_process_boundary(name: str) -> None:
    error = full(getattr(producer, name))
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.code == 10
    assert found.code_name == "MESSAGE_TOO_LARGE"
    assert found.operation == "commit"
    assert found.transactional_id == "task"
    assert found.failure_type is FailureType.MESSAGE_REJECTED
    assert found.failed_records == error.failed_records
    assert found.outcome_unknown is True
    assert isinstance(found.cause, KafkaFault)
    assert found.cause.info == INFO
    assert found.__cause__ is found.cause


@pytest.mark.parametrize("name", sorted(BUGS))
def test_case_27_bugs_survive_a_process_boundary(name: str) -> None:
    found = pickle.loads(pickle.dumps(getattr(producer, name)("what")))
    assert (type(found).__name__, str(found)) == (name, "what")


@pytest.mark.parametrize("name", sorted(TREE.keys() - BUGS))
def test_case_27_there_is_one_cause_at_most(name: str) -> None:
    error = full(getattr(producer, name))
    assert error.__cause__ is not None
    assert error.__cause__.__cause__ is None
    assert not isinstance(error.__cause__, type(error))


def test_an_error_that_nobody_caused_has_all_attributes() -> None:
    error = ProducerError("what")
    assert (error.code, error.code_name, error.cause, error.__cause__) == (None, None, None, None)
    assert error.failed_records == FailedRecords()
    assert pickle.loads(pickle.dumps(error)).operation is None


def test_what_may_not_be_done_is_named() -> None:
    info = KafkaErrorInfo(29, "TOPIC_AUTHORIZATION_FAILED", "no")
    records = FailedRecords(2, (FailedRecord("good", 0, None, 10), FailedRecord("secret", 0, None, 29)))
    error = producer.TopicAuthorizationError("no", cause=KafkaFault(info), failed_records=records)
    assert (error.resource_type, error.resource_name) == ("topic", "secret")
    by_id = producer.TransactionalIdAuthorizationError("no", transactional_id="task")
    assert (by_id.resource_type, by_id.resource_name) == ("transactional_id", "task")
    assert producer.GroupAuthorizationError("no").resource_name is None
