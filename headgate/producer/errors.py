"""The exceptions of the transactional producer, named by what the caller can do (KIP-691).

ProducerError                            everything that Kafka made us raise
├─ ProduceFailedError                    one record failed, and `failure_type` says how
│  └─ TransactionAbortedError            it went away with its transaction, as you asked: ignore it
├─ OperationTimeoutError                 nothing is lost: repeat the same call, or close
│  └─ CommitTimeoutError                 perhaps committed: repeat commit, never abort
├─ TransactionAbortableError             this transaction is lost: abort, rewind, go on
│  └─ CommitFailedError                  the only one of these that commit raises
└─ FatalProducerError                    this producer is finished: close it
   ├─ ApplicationRecoverableError        a fresh start can help
   │  ├─ ProducerFencedError             somebody newer has the transactional id: stop
   │  ├─ TransactionTimedOutError        the transaction was open for too long
   │  ├─ GroupFencedError                the consumer is out of its group: rejoin, then reset
   │  └─ TransactionStateError           client and broker disagree: start again at the committed positions
   └─ InvalidConfigurationError          an operator must change something
      ├─ AuthenticationError
      ├─ AuthorizationError              of a topic, a group, a transactional id or the cluster
      └─ UnsupportedFeatureError

ProducerStateError (and its ProducerClosedError) and ProtocolBugError are bugs. They stand outside of the tree, are
raised bare, and leave the producer as it is. So do TypeError and ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final


class Operation(StrEnum):
    """A call, as the one in which an error came to light; to create a producer is one, too."""

    CREATE = "create"
    INIT = "init"
    BEGIN = "begin"
    SEND = "send"
    SEND_OFFSETS = "send_offsets"
    FLUSH = "flush"
    COMMIT = "commit"
    ABORT = "abort"
    CLOSE = "close"
    RESET = "reset"


class FailureType(Enum):
    """What a failure is about."""

    MESSAGE_REJECTED = "MESSAGE_REJECTED"
    """This one record cannot be taken: too large, no such topic."""
    DELIVERY_FAILED = "DELIVERY_FAILED"
    """Kafka did not get the record, or did not say so in time."""
    TRANSACTION_FAILED = "TRANSACTION_FAILED"
    """The transaction around it failed: fenced, aborted, in a wrong state."""


@dataclass(frozen=True, slots=True)
class KafkaErrorInfo:
    """An error of the client library as plain data; it can be pickled, the library's own exception cannot."""

    code: int
    name: str
    """Kafka's name; librdkafka's, with an underscore, for errors that never were on the wire."""
    text: str
    fatal: bool = False
    retriable: bool = False
    requires_abort: bool = False

    def __str__(self) -> str:
        return f"{self.name}({self.code}): {self.text}"


@dataclass(frozen=True, slots=True)
class FailedRecord:
    topic: str
    partition: int
    key_hash: int | None
    """CRC-32 of the key: tells records apart and shows no data. None: no key."""
    code: int


@dataclass(frozen=True, slots=True)
class FailedRecords:
    """The records of a transaction that failed: how many, and the first of them."""

    count: int = 0
    first: tuple[FailedRecord, ...] = ()


NO_RECORDS: Final = FailedRecords()


class KafkaFault(Exception):
    """What the client library said: the cause of our exceptions. Never raised to callers by itself."""

    def __init__(self, info: KafkaErrorInfo, failure_type: FailureType | None = None) -> None:
        super().__init__(info, failure_type)
        self.info = info
        self.failure_type = failure_type

    def __str__(self) -> str:
        return str(self.info)


class ProducerError(Exception):
    """Root of everything that Kafka made us raise."""

    def __init__(
        self,
        message: str = "",
        *,
        info: KafkaErrorInfo | None = None,
        operation: str | None = None,
        transactional_id: str | None = None,
        failure_type: FailureType | None = None,
        cause: KafkaFault | ProduceFailedError | None = None,
        failed_records: FailedRecords = NO_RECORDS,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        if info is None and cause is not None:
            info = cause.info
        self.info = info
        self.operation = operation
        self.transactional_id = transactional_id
        self.failure_type = failure_type or (cause.failure_type if cause is not None else None)
        self.cause = cause
        self.failed_records = failed_records
        self.outcome_unknown = outcome_unknown
        """Whether the broker may have committed."""
        self.__cause__ = cause

    @property
    def code(self) -> int | None:
        """Kafka's number, or librdkafka's, which is below -1."""
        return self.info.code if self.info else None

    @property
    def code_name(self) -> str | None:
        return self.info.name if self.info else None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        self.__dict__.update(state or {})
        self.__cause__ = self.cause


class ProduceFailedError(ProducerError):
    """One record failed. Without transactions: the result of a send. Inside one it only appears as a cause."""

    info: KafkaErrorInfo
    failure_type: FailureType


class TransactionAbortedError(ProduceFailedError):
    """The record was dropped because its transaction was aborted or its producer closed. Callbacks alone see it, and
    may ignore it."""


class OperationTimeoutError(ProducerError):
    """Not finished in time, and nothing is lost: repeat the same call, or close."""


class CommitTimeoutError(OperationTimeoutError):
    """Not finished in time: the broker may have committed, now or later. Repeat commit. To give up, close: a new
    producer with the same transactional id settles it in `init`; then read the committed positions. Never abort."""


class TransactionAbortableError(ProducerError):
    """This transaction is lost; the producer stays usable: abort, rewind, go on."""


class CommitFailedError(TransactionAbortableError):
    """The transaction is lost: abort, rewind, go on. The only class of `commit` for what is not fatal. Should the
    broker have committed in spite of what it said (`outcome_unknown`), abort finds out: TransactionStateError."""


class FatalProducerError(ProducerError):
    """This producer is finished: close it, stop the task."""


class ApplicationRecoverableError(FatalProducerError):
    """A fresh start can help, if the task is still ours."""


class ProducerFencedError(ApplicationRecoverableError):
    """Somebody newer has the transactional id. The task must stop; it must not start again by itself."""


class TransactionTimedOutError(ApplicationRecoverableError):
    """The coordinator aborted our transaction after `transaction.timeout.ms`."""


class GroupFencedError(ApplicationRecoverableError):
    """The consumer is no longer a member of its group in this generation: rejoin, then `reset` and `init`."""


class TransactionStateError(ApplicationRecoverableError):
    """Client and broker disagree about the transaction: start again from the committed positions."""


class InvalidConfigurationError(FatalProducerError):
    """An operator must change something; starting again does not help."""


class AuthenticationError(InvalidConfigurationError):
    """The broker refuses our credentials."""


class AuthorizationError(InvalidConfigurationError):
    """The user of this producer may not do that."""

    resource_type: str = "unknown"

    @property
    def resource_name(self) -> str | None:
        """As far as it is known."""
        return None


class TopicAuthorizationError(AuthorizationError):
    resource_type = "topic"

    @property
    def resource_name(self) -> str | None:
        code = self.code
        return next((each.topic for each in self.failed_records.first if each.code == code), None)


class GroupAuthorizationError(AuthorizationError):
    resource_type = "group"


class TransactionalIdAuthorizationError(AuthorizationError):
    resource_type = "transactional_id"

    @property
    def resource_name(self) -> str | None:
        return self.transactional_id


class ClusterAuthorizationError(AuthorizationError):
    resource_type = "cluster"


class UnsupportedFeatureError(InvalidConfigurationError):
    """The broker does not know a version, a format or a time-out that we need."""


# --- bugs, outside of the tree ----------------------------------------------------------------------------------------


class ProducerStateError(RuntimeError):
    """The call is not allowed in this state; nothing changed. Fix the program."""


class ProducerClosedError(ProducerStateError):
    """The producer was closed."""


class ProtocolBugError(RuntimeError):
    """A response that cannot be."""
