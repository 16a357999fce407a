"""Makes the exception of an error: its code by the table, librdkafka's flags, and what happened before."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError

from headgate.producer import codes
from headgate.producer import errors as e
from headgate.producer.errors import NO_RECORDS, FailedRecords, FailureType, KafkaErrorInfo, Operation

_REPEATABLE: Final = {
    Operation.INIT: e.OperationTimeoutError,
    Operation.FLUSH: e.OperationTimeoutError,
    Operation.ABORT: e.OperationTimeoutError,
    Operation.COMMIT: e.CommitTimeoutError,
}
"""Operations that may be repeated when they ran out of time; in all others the transaction is lost."""

_ADVICE: Final[dict[type[BaseException], str]] = {
    e.ProducerFencedError: "a newer producer has this transactional id: stop this one",
    e.TransactionTimedOutError: "the transaction was open for longer than transaction.timeout.ms: raise that, or commit"
    " more often",
    e.GroupFencedError: "the consumer is no longer in its group: rejoin, then reset the producer",
    e.TransactionStateError: "start again from the committed positions",
    e.CommitTimeoutError: "repeat commit, or close and read the committed positions; do not abort",
    e.OperationTimeoutError: "repeat the call, or close",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """What must be known of a producer to understand an error."""

    operation: Operation
    transactional_id: str | None = None
    overdue: bool = False
    """The transaction is older than `transaction.timeout.ms`."""
    ending: bool = False
    """The coordinator was asked to commit."""
    failed: FailedRecords = NO_RECORDS
    failed_codes: Set[int] = frozenset()
    first_failure: KafkaErrorInfo | None = None
    """Of a record of this transaction, that tells more than that something failed."""


def classify(info: KafkaErrorInfo, situation: Situation) -> BaseException:
    """The exception for an error of the library in this situation. Bugs come bare; all others have one cause."""
    info = _telling(info, situation)
    produced = info.code in situation.failed_codes
    kind = _kind(info, situation, produced)
    if not issubclass(kind, e.ProducerError):
        return kind() if kind is KeyboardInterrupt else kind(f"{situation.operation}: {info}")
    if issubclass(kind, e.OperationTimeoutError):
        return build(kind, info, situation, None)
    failure_type = codes.meaning(info.code).failure_type or FailureType.TRANSACTION_FAILED
    return build(kind, info, situation, failure_type, produced=produced)


def build(
    kind: type[e.ProducerError],
    info: KafkaErrorInfo,
    situation: Situation,
    failure_type: FailureType | None,
    *,
    produced: bool = False,
) -> e.ProducerError:
    """`produced`: the error is that of a record, and then so is the cause."""
    cause: e.KafkaFault | e.ProduceFailedError
    if produced and failure_type is not None:
        cause = e.ProduceFailedError(
            str(info),
            info=info,
            operation=Operation.SEND.value,
            transactional_id=situation.transactional_id,
            failure_type=failure_type,
        )
    else:
        cause = e.KafkaFault(info, failure_type)
    return kind(
        _text(kind, info, situation),
        operation=situation.operation.value,
        transactional_id=situation.transactional_id,
        failure_type=failure_type,
        cause=cause,
        failed_records=situation.failed,
        outcome_unknown=situation.ending or kind is e.CommitTimeoutError,
    )


def as_commit_failed(error: e.TransactionAbortableError) -> e.CommitFailedError:
    """The stored error of a transaction as `commit` raises it: another class, the same one cause."""
    if isinstance(error, e.CommitFailedError):
        return error
    return e.CommitFailedError(
        f"commit: {error.info}",
        operation=Operation.COMMIT.value,
        transactional_id=error.transactional_id,
        failure_type=error.failure_type,
        cause=error.cause,
        failed_records=error.failed_records,
        outcome_unknown=error.outcome_unknown,
    )


def produce_failed(
    info: KafkaErrorInfo,
    transactional_id: str | None,
    *,
    failure_type: FailureType | None = None,
    kind: type[e.ProduceFailedError] = e.ProduceFailedError,
) -> e.ProduceFailedError:
    """What callbacks and futures get for one record."""
    failure_type = failure_type or codes.meaning(info.code).failure_type or FailureType.TRANSACTION_FAILED
    return kind(
        f"send: {info}",
        operation=Operation.SEND.value,
        transactional_id=transactional_id,
        failure_type=failure_type,
        cause=e.KafkaFault(info, failure_type),
    )


def needs_new_handle(stored: KafkaErrorInfo | None, failed_codes: Set[int], failed_meanwhile: Set[int]) -> bool:
    """Whether, after an abort, librdkafka would stumble over the next transaction.

    It leaves a gap in its sequence numbers where a partition's leader refused records, and gives up on the first
    transaction after that. Records refused without asking a leader leave none: then it has no error stored.
    `failed_meanwhile` are codes of records that failed during the abort, from wherever."""
    real = (failed_codes - codes.SYMPTOMS) - codes.REPAIRED_BY_ABORT
    if failed_meanwhile & real:
        return True
    if stored is None:
        return False
    return stored.code in codes.REPAIRED_BY_A_NEW_HANDLE or stored.code in real


# --- how it is decided ------------------------------------------------------------------------------------------------


def _telling(info: KafkaErrorInfo, situation: Situation) -> KafkaErrorInfo:
    """Of an error that only says that records failed, the failure of the first record."""
    first = situation.first_failure
    vague = info.code in codes.SYMPTOMS or (info.code == KafkaError._TIMED_OUT and info.requires_abort)
    if first is None or info.fatal or not vague:
        return info
    return KafkaErrorInfo(first.code, first.name, first.text, requires_abort=True)


def _kind(info: KafkaErrorInfo, situation: Situation, produced: bool) -> type[BaseException]:
    code, operation = info.code, situation.operation
    kind = codes.meaning(code).of(operation, produced=produced)
    if code in codes.OWN_EPOCH and situation.overdue:
        return e.TransactionTimedOutError
    waiting = info.retriable and not info.requires_abort and not info.fatal
    if kind is e.TransactionAbortableError:
        if info.fatal and code not in codes.FATAL_ONLY_TO_LIBRDKAFKA:
            return codes.meaning(code).fatal
        if operation in _REPEATABLE and (waiting or (code == KafkaError._TIMED_OUT and not info.requires_abort)):
            return _REPEATABLE[operation]
        return _ABORTABLE_IN.get(operation, kind)
    # What librdkafka retried in vain while it waited for its producer id; the exceptions are in the table by name.
    if operation is Operation.INIT and waiting and kind is e.TransactionStateError:
        return e.OperationTimeoutError
    return kind


_ABORTABLE_IN: Final[dict[Operation, type[BaseException]]] = {
    # There is no transaction yet that could be aborted.
    Operation.CREATE: e.InvalidConfigurationError,
    Operation.INIT: e.OperationTimeoutError,
    Operation.BEGIN: e.FatalProducerError,
    Operation.COMMIT: e.CommitFailedError,
}


def _text(kind: type[e.ProducerError], info: KafkaErrorInfo, situation: Situation) -> str:
    text = f"{situation.operation}: {info}"
    if situation.failed.count:
        text += f" ({situation.failed.count} records failed)"
    advice = _ADVICE.get(kind)
    return f"{text}; {advice}" if advice else text
