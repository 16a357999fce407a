"""Deletes single offsets of a consumer group: the one admin call of librdkafka that confluent_kafka does not wrap."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from headgate.kafka.native import calls as native
from headgate.model import TopicPartition

_DELETE_OFFSETS: Final = 8
"""RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS"""
_ERROR_AT: Final = 48
"""Where an rd_kafka_topic_partition_t has its error."""


def delete_offsets(
    config: Mapping[str, Any], group: str, partitions: Collection[TopicPartition], seconds: float
) -> dict[TopicPartition, KafkaError | None]:
    """What became of each partition. `config` is librdkafka's. Raises KafkaException if nothing was done at all."""
    calls, milliseconds = native.library(), max(int(seconds * 1000), 1)
    with ExitStack() as ending:
        client = native.new_producer({**config, "log_level": 0})  # which is what admin clients are
        ending.callback(calls.rd_kafka_destroy_flags, client, 0)
        # Only OAUTHBEARER has such callbacks; for the others this answers with an error that is no news.
        calls.rd_kafka_error_destroy(calls.rd_kafka_sasl_background_callbacks_enable(client))
        queue = calls.rd_kafka_queue_new(client)
        ending.callback(calls.rd_kafka_queue_destroy, queue)
        _request(client, queue, group, partitions, milliseconds)
        # The request itself ends in time; the second is for the answer to get here.
        event = calls.rd_kafka_queue_poll(queue, milliseconds + 1000)
        if event is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        ending.callback(calls.rd_kafka_event_destroy, event)
        if code := calls.rd_kafka_event_error(event):
            raise _exception(code, calls.rd_kafka_event_error_string(event))
        result = calls.rd_kafka_event_DeleteConsumerGroupOffsets_result(event)
        found = calls.rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, byref(c_size_t()))[0]
        if error := calls.rd_kafka_group_result_error(found):
            raise _exception(calls.rd_kafka_error_code(error), calls.rd_kafka_error_string(error))
        listed = calls.rd_kafka_group_result_partitions(found)
        return {where: _error_of(listed, where) for where in partitions}


def _request(client: int, queue: int, group: str, partitions: Collection[TopicPartition], milliseconds: int) -> None:
    """The answer comes to the queue."""
    calls, text = native.library(), ctypes.create_string_buffer(512)
    listed = native.partition_list((each.topic, each.partition, 0) for each in partitions)
    request = c_void_p(calls.rd_kafka_DeleteConsumerGroupOffsets_new(group.encode(), listed))
    options = calls.rd_kafka_AdminOptions_new(client, _DELETE_OFFSETS)
    calls.rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, text, len(text))
    calls.rd_kafka_DeleteConsumerGroupOffsets(client, byref(request), 1, options, queue)
    calls.rd_kafka_AdminOptions_destroy(options)
    calls.rd_kafka_DeleteConsumerGroupOffsets_destroy(request)
    calls.rd_kafka_topic_partition_list_destroy(listed)


def _error_of(listed: int, where: TopicPartition) -> KafkaError | None:
    found = native.library().rd_kafka_topic_partition_list_find(listed, where.topic.encode(), where.partition)
    code = c_int.from_address(found + _ERROR_AT).value
    return KafkaError(code) if code else None


def _exception(code: int, text: bytes | None) -> KafkaException:
    return KafkaException(KafkaError(code, (text or b"").decode(errors="replace")))
