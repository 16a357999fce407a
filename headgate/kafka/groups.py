"""Coordinators of groups, asked with Kafka's own protocol: for offsets to be read, and single ones to be deleted."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from headgate.kafka.native.group_offsets import delete_offsets as delete_natively
from headgate.kafka.settings import ClientConfigError
from headgate.kafka.settings.kafka_python import for_kafka_python
from headgate.model import TopicPartition

_GROUP: Final = 0
"""A coordinator of a group, not of transactions."""
_ONE: Final = 3
"""The last version of the question for one coordinator, which all brokers answer."""
_OF_ONE: Final = 7
"""The last version of the question for the offsets of one group."""
_REACH_MS: Final = 3000
"""How long the first broker may take to answer; whoever can wait longer asks again."""


def ask_coordinator(config: Mapping[str, Any], group: str, request: Any, seconds: float) -> Any:
    """Its answer to a request of kafka-python's. `config` is librdkafka's. Raises KafkaException, and ClientConfigError
    for a login or a key store that only librdkafka can do."""
    from kafka.errors import KafkaError as PythonError
    from kafka.net.compat import KafkaNetClient
    from kafka.protocol.metadata import FindCoordinatorRequest

    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what lasts is raised
    deadline = time.monotonic() + seconds

    def left() -> int:
        return max(round((deadline - time.monotonic()) * 1000), 1)

    settings = for_kafka_python(config)
    network: Any = None
    try:
        network = KafkaNetClient(**settings, request_timeout_ms=left(), receive_message_max_bytes=2**31 - 1)
        network.check_version(timeout_ms=min(left(), _REACH_MS))
        search = FindCoordinatorRequest(key=group, key_type=_GROUP, max_version=_ONE)
        found = network.send_and_receive(network.least_loaded_node(), search, timeout_ms=left())
        check(found.error_code)
        return network.send_and_receive(found.node_id, request, timeout_ms=left())
    except PythonError as error:
        raise KafkaException(_translated(error)) from error
    finally:
        if network is not None:
            with suppress(Exception):
                network.close()


def _translated(error: Any) -> KafkaError:
    """In librdkafka's words, where it has some for it."""
    from kafka import errors

    if isinstance(error, errors.BrokerResponseError) and error.errno is not None:
        return KafkaError(error.errno)
    if isinstance(error, errors.KafkaTimeoutError):
        return KafkaError(KafkaError._TIMED_OUT)
    return KafkaError(KafkaError._TRANSPORT if error.retriable else KafkaError._FAIL, str(error))


def check(code: int) -> None:
    """Raises KafkaException for a code of an answer that says no."""
    if code:
        raise KafkaException(KafkaError(code))


def read_offsets(config: Mapping[str, Any], group: str, seconds: float) -> dict[TopicPartition, int]:
    """Without partitions that have none. Raises as `ask_coordinator` does."""
    from kafka.protocol.consumer import OffsetFetchRequest

    request = OffsetFetchRequest(group_id=group, topics=None, min_version=2, max_version=_OF_ONE)
    answer = ask_coordinator(config, group, request, seconds)
    check(answer.error_code)
    found = _by_partition(answer)
    for each in found.values():
        check(each.error_code)
    return {where: each.committed_offset for where, each in found.items() if each.committed_offset >= 0}


def delete_offsets(
    config: Mapping[str, Any], group: str, partitions: Collection[TopicPartition], seconds: float
) -> dict[TopicPartition, KafkaError | None]:
    """What became of each partition. `config` is librdkafka's. Raises KafkaException if nothing was done at all."""
    from kafka.protocol.consumer import OffsetDeleteRequest

    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    numbers: dict[str, list[Any]] = {}
    for where in partitions:
        one = topic.OffsetDeleteRequestPartition(partition_index=where.partition)
        numbers.setdefault(where.topic, []).append(one)
    topics = [topic(name=name, partitions=some) for name, some in numbers.items()]
    try:
        answer = ask_coordinator(config, group, OffsetDeleteRequest(group_id=group, topics=topics), seconds)
    except ClientConfigError:
        return delete_natively(config, group, partitions, seconds)
    check(answer.error_code)
    return {
        where: KafkaError(each.error_code) if each.error_code else None for where, each in _by_partition(answer).items()
    }


def _by_partition(answer: Any) -> dict[TopicPartition, Any]:
    return {
        TopicPartition(topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
    }
