"""What every error code of Kafka and of librdkafka means: one table, with its exceptions by operation.

Not asked here: the flags that librdkafka puts on an error, and what happened before. `classify` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError

from headgate.producer import errors as e
from headgate.producer.errors import FailureType, KafkaErrorInfo, Operation

REJECTED: Final = FailureType.MESSAGE_REJECTED
UNDELIVERED: Final = FailureType.DELIVERY_FAILED
TRANSACTION: Final = FailureType.TRANSACTION_FAILED


@dataclass(frozen=True, slots=True)
class Meaning:
    """The class of a code. `TransactionAbortableError` stands for all that an abort puts right; in commit it becomes
    `CommitFailedError`."""

    error: type[BaseException]
    failure_type: FailureType | None = TRANSACTION
    elsewhere: dict[Operation, type[BaseException]] = field(default_factory=dict)
    """Operations in which it is another class."""
    produced: type[BaseException] | None = None
    """The class when it is the answer to a record, if that is another one."""
    fatal: type[BaseException] = e.FatalProducerError
    """The class when librdkafka says fatal to what otherwise an abort puts right."""

    def of(self, operation: Operation, *, produced: bool = False) -> type[BaseException]:
        if produced and self.produced is not None:
            return self.produced
        return self.elsewhere.get(operation, self.error)


def _rows(meaning: Meaning, *codes: int) -> dict[int, Meaning]:
    return dict.fromkeys(codes, meaning)


_ABORTABLE: Final = e.TransactionAbortableError
_BAD_CALL: Final = Meaning(e.ProducerStateError, None, {Operation.CREATE: e.InvalidConfigurationError})

UNEXPECTED: Final = Meaning(e.TransactionStateError)
"""Of all that is not in the table: KIP-691 says fatal, where librdkafka would say abortable."""

TABLE: Final[dict[int, Meaning]] = {
    # librdkafka's own
    0: Meaning(e.ProtocolBugError, None),
    # A response that cannot be read, one without a body for instance. Where a leader answers records so, they are lost.
    **_rows(Meaning(e.ProtocolBugError, UNDELIVERED, produced=_ABORTABLE), -199, -155),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), -197, -195, -193, -187, KafkaError._SSL, -146),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT_QUEUE),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), KafkaError._TIMED_OUT, KafkaError._QUEUE_FULL),
    **_rows(Meaning(_ABORTABLE, REJECTED), KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC),
    # In a send it is the record (an empty topic); in send_offsets the offsets would be missing from the transaction.
    KafkaError._INVALID_ARG: Meaning(
        _BAD_CALL.error,
        REJECTED,
        {**_BAD_CALL.elsewhere, Operation.SEND: _ABORTABLE, Operation.SEND_OFFSETS: _ABORTABLE},
        produced=_ABORTABLE,
    ),
    **_rows(_BAD_CALL, -145, KafkaError._PREV_IN_PROGRESS, KafkaError._CONFLICT, KafkaError._STATE),
    KafkaError._AUTHENTICATION: Meaning(e.AuthenticationError),
    -165: Meaning(e.UnsupportedFeatureError),
    -163: Meaning(KeyboardInterrupt, None),
    **_rows(Meaning(_ABORTABLE), KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._INCONSISTENT),
    KafkaError._FATAL: Meaning(e.FatalProducerError),
    -148: Meaning(e.TransactionStateError, UNDELIVERED),
    # Kafka's
    KafkaError.UNKNOWN: Meaning(e.TransactionStateError, UNDELIVERED, produced=_ABORTABLE),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), 2, 3, 5, 6, 7, 8, 9, 13, 19, 20, 56, 74, 75, 100, 103),
    **_rows(Meaning(_ABORTABLE), 14, 15, 16, 51, 88, 89),
    **_rows(Meaning(_ABORTABLE, REJECTED), 10, 17, 18, 21, 32, 44, 76, 87),
    **_rows(Meaning(_ABORTABLE), 12, 24, 28, 42, 55, 27),
    **_rows(Meaning(e.GroupFencedError), 22, 25, 82, 110, 113),
    29: Meaning(e.TopicAuthorizationError, REJECTED),
    30: Meaning(e.GroupAuthorizationError),
    31: Meaning(e.ClusterAuthorizationError),
    53: Meaning(e.TransactionalIdAuthorizationError),
    **_rows(Meaning(e.AuthenticationError), 33, 34, 58),
    **_rows(Meaning(e.UnsupportedFeatureError), 35, 43, 50),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.UNKNOWN_PRODUCER_ID),
    # librdkafka takes it for what it is, a record that is there already; so do we, see DELIVERED.
    KafkaError.DUPLICATE_SEQUENCE_NUMBER: Meaning(e.ProtocolBugError, None),
    **_rows(Meaning(e.ProducerFencedError), KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, 90),
    KafkaError.INVALID_TXN_STATE: Meaning(e.TransactionStateError),
    KafkaError.INVALID_PRODUCER_ID_MAPPING: Meaning(_ABORTABLE, fatal=e.TransactionStateError),
    **_rows(Meaning(e.TransactionStateError), 52, 105),
    120: Meaning(_ABORTABLE),
}

DELIVERED: Final = frozenset({KafkaError.DUPLICATE_SEQUENCE_NUMBER})
"""Codes of a delivery report that are no failure."""
PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
SYMPTOMS: Final = PURGED | {KafkaError._FATAL, KafkaError._INCONSISTENT}
"""They tell that something went wrong, not what: the real error is stored elsewhere."""
AUTHENTICATION_HINTS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, 33, 34, 58})
"""A call that waits for the broker meanwhile only ever says that it timed out."""
OWN_EPOCH: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
"""Fenced by somebody else, or by the coordinator because the transaction was open for too long."""
REPAIRED_BY_A_NEW_HANDLE: Final = frozenset(
    {KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.INVALID_PRODUCER_ID_MAPPING}
)
"""After them librdkafka cannot go on; a new handle with the same id can."""
FATAL_ONLY_TO_LIBRDKAFKA: Final = frozenset({KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""It calls the leader's word fatal; KIP-691 says abortable, and a new handle goes on."""
REPAIRED_BY_ABORT: Final = frozenset(
    {KafkaError.UNKNOWN_PRODUCER_ID, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT_QUEUE}
)
"""Failures of records after which librdkafka itself begins a new epoch."""

_KAFKA_NAMES: Final = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    4: "INVALID_FETCH_SIZE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    11: "STALE_CONTROLLER_EPOCH",
    17: "INVALID_TOPIC_EXCEPTION",
    98: "SNAPSHOT_NOT_FOUND",
    99: "POSITION_OUT_OF_RANGE",
    101: "DUPLICATE_BROKER_REGISTRATION",
    102: "BROKER_ID_NOT_REGISTERED",
    104: "INCONSISTENT_CLUSTER_ID",
    105: "TRANSACTIONAL_ID_NOT_FOUND",
    106: "FETCH_SESSION_TOPIC_ID_ERROR",
    107: "INELIGIBLE_REPLICA",
    108: "NEW_LEADER_ELECTED",
    109: "OFFSET_MOVED_TO_TIERED_STORAGE",
}
"""Where librdkafka has another name than Kafka, or none."""


def name(code: int) -> str:
    """Kafka's name of a code, librdkafka's for its own."""
    known = _KAFKA_NAMES.get(code) or KafkaError(code).name()
    return f"CODE_{code}" if known.startswith("ERR_") else known


def meaning(code: int) -> Meaning:
    return TABLE.get(code, UNEXPECTED)


def info(code: int, text: str, *, fatal: bool = False) -> KafkaErrorInfo:
    """An error that we found ourselves, by the library's code for it."""
    return KafkaErrorInfo(code, name(code), text, fatal=fatal)
