"""Why a task with transactions failed: Connect's words, the producer's error, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, TargetState, TaskId, TaskSpec
from headgate.producer import (
    AuthenticationError,
    ClusterAuthorizationError,
    FailedRecord,
    FailedRecords,
    GroupAuthorizationError,
    GroupFencedError,
    KafkaErrorInfo,
    ProducerError,
    ProducerFencedError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionStateError,
    TransactionTimedOutError,
    UnsupportedFeatureError,
)
from headgate.tasks.source.transaction_errors import explained

STRING = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"))
TASK = TaskId("orders", 3)
SPEC = TaskSpec(
    id=TASK,
    task_class=object,
    type=ConnectorType.SOURCE,
    version=None,
    config={},
    connector_config={},
    chain=ChainSpec(TASK, ConnectorType.SOURCE, STRING, STRING, STRING),
    target_state=TargetState.STARTED,
)


def error(kind: type[ProducerError], code: int = 1, operation: str = "commit", **more: Any) -> ProducerError:
    info = KafkaErrorInfo(code, "SOME_ERROR", "words")
    return kind(f"{operation}: {info}", info=info, operation=operation, transactional_id="g-orders-3", **more)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (error(TransactionTimedOutError), ["before its producer transaction expired.", "boundary poll"]),
        (
            error(TopicAuthorizationError, 29, failed_records=FailedRecords(1, (FailedRecord("t", 0, None, 29),))),
            ["Failed to flush offsets and/or records for task orders-3: ", "to write to topic t, then restart"],
        ),
        (error(TopicAuthorizationError, 29), ["the topics of the connector and its offsets"]),
        (error(TransactionalIdAuthorizationError, 53, "init"), ["transactional id g-orders-3"]),
        (error(ClusterAuthorizationError, 31), ["IdempotentWrite"]),
        (
            error(GroupAuthorizationError, 30, "send_offsets"),
            ["commit offsets of the connector's consumer group (Read)"],
        ),
        (error(GroupFencedError, 22, "send_offsets"), ["no longer in its group", "Restart the task"]),
        (error(TransactionStateError, 48), ["Failed to flush offsets and/or records for task orders-3: commit: SOME_"]),
        (error(AuthenticationError, 58, "init"), ["login", "sasl.*"]),
        (error(UnsupportedFeatureError, 50, "init"), ["producer.override.transaction.timeout.ms"]),
        (error(UnsupportedFeatureError, 35, "init"), ["a broker that knows transactions"]),
        (error(ProducerFencedError, -144), ["the transactional id g-orders-3", "the same group.id"]),
        (
            error(TransactionAbortableError, 10, "send"),
            ["Unrecoverable exception trying to send: send: SOME_"],
        ),
        (error(TransactionAbortableError, 10, "flush"), ["Unrecoverable exception trying to send: "]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ProducerError) else "",
)
def test_the_message_says_what_to_do(given: ProducerError, words: list[str]) -> None:
    failed = explained(given, SPEC)
    assert [each for each in words if each not in str(failed)] == [], str(failed)
    assert failed.__cause__ is given
