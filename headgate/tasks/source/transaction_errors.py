"""Why a task with transactions fails, in words that say what to do about it."""

from __future__ import annotations

from headgate.api.errors import ConnectError
from headgate.model import TaskSpec
from headgate.producer import errors

_TOO_LONG_FOR_BROKER = 50


class TransactionFailed(ConnectError):
    """The task cannot go on; its cause is the producer's error."""


def explained(error: errors.ProducerError, spec: TaskSpec) -> TransactionFailed:
    failed = TransactionFailed(_text(error, spec))
    failed.__cause__ = error
    return failed


def _text(error: errors.ProducerError, spec: TaskSpec) -> str:
    if isinstance(error, errors.TransactionTimedOutError):
        return (
            f"The task {spec.id} was unable to finish writing records to Kafka before its producer transaction expired."
            " To let it: tune the connector's producer for throughput (producer.override.batch.size, linger.ms,"
            " compression.type); raise producer.override.transaction.timeout.ms; lower"
            " transaction.boundary.interval.ms, if the transaction.boundary is interval; or use the boundary poll."
        )
    what = f"Failed to flush offsets and/or records for task {spec.id}"
    if error.operation in (errors.Operation.SEND.value, errors.Operation.FLUSH.value):
        what = "Unrecoverable exception trying to send"
    fix = _fix(error)
    return f"{what}: {error}{'. ' + fix if fix else ''}"


def _fix(error: errors.ProducerError) -> str | None:
    who = "the user of the connector's producer"
    if isinstance(error, errors.TopicAuthorizationError):
        topic = f"topic {error.resource_name}" if error.resource_name else "the topics of the connector and its offsets"
        return f"Allow {who} to write to {topic}, then restart the task."
    if isinstance(error, errors.TransactionalIdAuthorizationError):
        return (
            f"Allow {who} to use the transactional id {error.transactional_id} (Write and Describe), then restart the"
            " task."
        )
    if isinstance(error, errors.GroupAuthorizationError):
        return f"Allow {who} to commit offsets of the connector's consumer group (Read), then restart the task."
    if isinstance(error, errors.GroupFencedError):
        return "The task's consumer is no longer in its group: others have its partitions. Restart the task."
    if isinstance(error, errors.ClusterAuthorizationError):
        return f"Allow {who} to write idempotently (IdempotentWrite on the cluster), then restart the task."
    if isinstance(error, errors.AuthenticationError):
        return (
            "Correct the login of the connector's producer (sasl.*, ssl.*, security.protocol), then restart the task."
        )
    if isinstance(error, errors.UnsupportedFeatureError) and error.code == _TOO_LONG_FOR_BROKER:
        return (
            "Set producer.override.transaction.timeout.ms to no more than the broker's transaction.max.timeout.ms, then"
            " restart the task."
        )
    if isinstance(error, errors.UnsupportedFeatureError):
        return "Exactly-once delivery needs a broker that knows transactions."
    if isinstance(error, errors.ProducerFencedError):
        return (
            f"Something else took the transactional id {error.transactional_id} while this task ran: if that was no"
            " other start of it, look for another cluster of workers with the same group.id."
        )
    return None
