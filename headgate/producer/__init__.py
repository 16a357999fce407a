"""Transactional producer whose errors say what can be done (KIP-691). Usable alone; see docs/producer.md."""

from headgate.producer.errors import (
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
    KafkaFault,
    Operation,
    OperationTimeoutError,
    ProduceFailedError,
    ProducerClosedError,
    ProducerError,
    ProducerFencedError,
    ProducerStateError,
    ProtocolBugError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationError,
    TransactionStateError,
    TransactionTimedOutError,
    UnsupportedFeatureError,
)
from headgate.producer.producer import TransactionalProducer
from headgate.producer.states import State

__all__ = [
    "ApplicationRecoverableError", "AuthenticationError", "AuthorizationError", "ClusterAuthorizationError",
    "CommitFailedError", "CommitTimeoutError", "FailedRecord", "FailedRecords", "FailureType", "FatalProducerError",
    "GroupAuthorizationError", "GroupFencedError", "InvalidConfigurationError", "KafkaErrorInfo", "KafkaFault",
    "Operation", "OperationTimeoutError", "ProduceFailedError", "ProducerClosedError", "ProducerError",
    "ProducerFencedError", "ProducerStateError", "ProtocolBugError", "State", "TopicAuthorizationError",
    "TransactionAbortableError", "TransactionAbortedError", "TransactionStateError", "TransactionTimedOutError",
    "TransactionalIdAuthorizationError", "TransactionalProducer", "UnsupportedFeatureError",
]  # fmt: skip
