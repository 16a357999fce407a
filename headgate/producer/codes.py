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

# The names of librdkafka's own codes, where the code below needs them.
MSG_TIMED_OUT: Final = -192
UNKNOWN_PARTITION: Final = -190
UNKNOWN_TOPIC: Final = -188
INVALID_ARG: Final = -186
TIMED_OUT: Final = -185
QUEUE_FULL: Final = -184
SSL: Final = -181
PREV_IN_PROGRESS: Final = -177
CONFLICT: Final = -173
STATE: Final = -172
AUTHENTICATION: Final = -169
TIMED_OUT_QUEUE: Final = -166
PURGE_QUEUE: Final = -152
PURGE_INFLIGHT: Final = -151
FATAL: Final = -150
INCONSISTENT: Final = -149
FENCED: Final = -144

UNKNOWN_SERVER_ERROR: Final = -1
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
DUPLICATE_SEQUENCE_NUMBER: Final = 46
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
UNKNOWN_PRODUCER_ID: Final = 59

TABLE: Final[dict[int, Meaning]] = {
    # librdkafka's own
    0: Meaning(e.ProtocolBugError, None),
    # A response that cannot be read, one without a body for instance. Where a leader answers records so, they are lost.
    **_rows(Meaning(e.ProtocolBugError, UNDELIVERED, produced=_ABORTABLE), -199, -155),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), -197, -195, -193, -187, SSL, -146),
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), MSG_TIMED_OUT, TIMED_OUT_QUEUE, TIMED_OUT, QUEUE_FULL),
    **_rows(Meaning(_ABORTABLE, REJECTED), UNKNOWN_PARTITION, UNKNOWN_TOPIC),
    # In a send it is the record (an empty topic); in send_offsets the offsets would be missing from the transaction.
    INVALID_ARG: Meaning(
        _BAD_CALL.error,
        REJECTED,
        {**_BAD_CALL.elsewhere, Operation.SEND: _ABORTABLE, Operation.SEND_OFFSETS: _ABORTABLE},
        produced=_ABORTABLE,
    ),
    **_rows(_BAD_CALL, -145, PREV_IN_PROGRESS, CONFLICT, STATE),
    AUTHENTICATION: Meaning(e.AuthenticationError),
    -165: Meaning(e.UnsupportedFeatureError),
    -163: Meaning(KeyboardInterrupt, None),
    **_rows(Meaning(_ABORTABLE), PURGE_QUEUE, PURGE_INFLIGHT, INCONSISTENT),
    FATAL: Meaning(e.FatalProducerError),
    -148: Meaning(e.TransactionStateError, UNDELIVERED),
    # Kafka's
    UNKNOWN_SERVER_ERROR: Meaning(e.TransactionStateError, UNDELIVERED, produced=_ABORTABLE),
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
    **_rows(Meaning(_ABORTABLE, UNDELIVERED), OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID),
    # librdkafka takes it for what it is, a record that is there already; so do we, see DELIVERED.
    DUPLICATE_SEQUENCE_NUMBER: Meaning(e.ProtocolBugError, None),
    **_rows(Meaning(e.ProducerFencedError), FENCED, INVALID_PRODUCER_EPOCH, 90),
    INVALID_TXN_STATE: Meaning(e.TransactionStateError),
    INVALID_PRODUCER_ID_MAPPING: Meaning(_ABORTABLE, fatal=e.TransactionStateError),
    **_rows(Meaning(e.TransactionStateError), 52, 105),
    120: Meaning(_ABORTABLE),
}

DELIVERED: Final = frozenset({DUPLICATE_SEQUENCE_NUMBER})
"""Codes of a delivery report that are no failure."""
PURGED: Final = frozenset({PURGE_QUEUE, PURGE_INFLIGHT})
SYMPTOMS: Final = PURGED | {FATAL, INCONSISTENT}
"""They tell that something went wrong, not what: the real error is stored elsewhere."""
AUTHENTICATION_HINTS: Final = frozenset({AUTHENTICATION, SSL, 33, 34, 58})
"""A call that waits for the broker meanwhile only ever says that it timed out."""
OWN_EPOCH: Final = frozenset({FENCED, INVALID_PRODUCER_EPOCH})
"""Fenced by somebody else, or by the coordinator because the transaction was open for too long."""
REPAIRED_BY_A_NEW_HANDLE: Final = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_ID_MAPPING})
"""After them librdkafka cannot go on; a new handle with the same id can."""
FATAL_ONLY_TO_LIBRDKAFKA: Final = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER})
"""It calls the leader's word fatal; KIP-691 says abortable, and a new handle goes on."""
REPAIRED_BY_ABORT: Final = frozenset({UNKNOWN_PRODUCER_ID, MSG_TIMED_OUT, TIMED_OUT_QUEUE})
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
