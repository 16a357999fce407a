"""The one admin call of librdkafka that confluent_kafka does not wrap: deleting single offsets of a consumer group.

It is called in the very library that confluent_kafka has loaded, by the names and layouts of librdkafka's `rdkafka.h`,
which are stable within version 2. Everything else goes through confluent_kafka.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, cimpl

from headgate.model import TopicPartition

_PRODUCER: Final = 0  # as in confluent_kafka, an admin client is a producer that produces nothing
_OK: Final = 0
_DELETE_GROUP_OFFSETS: Final = 8  # RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS


class _Partition(ctypes.Structure):
    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("offset", c_int64),
        ("metadata", c_void_p),
        ("metadata_size", c_size_t),
        ("opaque", c_void_p),
        ("err", c_int),
        ("private", c_void_p),
    )


class _Partitions(ctypes.Structure):
    _fields_ = (("cnt", c_int), ("size", c_int), ("elems", POINTER(_Partition)))


# Function: what it returns, what it takes. All of librdkafka's own objects are opaque pointers.
_FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_sasl_background_callbacks_enable": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_new": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_queue_poll": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_AdminOptions_new": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_AdminOptions_set_request_timeout": (c_int, (c_void_p, c_int, c_char_p, c_size_t)),
    "rd_kafka_AdminOptions_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_partition_list_new": (POINTER(_Partitions), (c_int,)),
    "rd_kafka_topic_partition_list_add": (POINTER(_Partition), (POINTER(_Partitions), c_char_p, c_int32)),
    "rd_kafka_topic_partition_list_destroy": (None, (POINTER(_Partitions),)),
    "rd_kafka_DeleteConsumerGroupOffsets_new": (c_void_p, (c_char_p, POINTER(_Partitions))),
    "rd_kafka_DeleteConsumerGroupOffsets_destroy": (None, (c_void_p,)),
    "rd_kafka_DeleteConsumerGroupOffsets": (None, (c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_void_p)),
    "rd_kafka_event_error": (c_int, (c_void_p,)),
    "rd_kafka_event_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_event_destroy": (None, (c_void_p,)),
    "rd_kafka_event_DeleteConsumerGroupOffsets_result": (c_void_p, (c_void_p,)),
    "rd_kafka_DeleteConsumerGroupOffsets_result_groups": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_group_result_error": (c_void_p, (c_void_p,)),
    "rd_kafka_group_result_partitions": (POINTER(_Partitions), (c_void_p,)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
}


@cache
def _library() -> ctypes.CDLL:
    # Symbols of a module are looked up in what it was linked with too, so this finds the library that is loaded anyway.
    library = ctypes.CDLL(cimpl.__file__)
    for name, (returned, taken) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = returned, taken
    return library


def delete_group_offsets(
    config: Mapping[str, Any], group: str, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, KafkaError | None]:
    """What became of each partition. `config` is librdkafka's. Raises KafkaException if nothing was done at all."""
    library = _library()
    milliseconds = max(int(timeout * 1000), 1)
    with _client(config) as client, _result(client, group, partitions, milliseconds) as event:
        if code := library.rd_kafka_event_error(event):
            raise _exception(code, library.rd_kafka_event_error_string(event))
        count = c_size_t()
        result = library.rd_kafka_event_DeleteConsumerGroupOffsets_result(event)
        groups = library.rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, byref(count))
        if count.value != 1:
            raise KafkaException(KafkaError(KafkaError._FAIL, f"Kafka answered for {count.value} groups, not for one"))
        if error := library.rd_kafka_group_result_error(groups[0]):
            raise _exception(library.rd_kafka_error_code(error), library.rd_kafka_error_string(error))
        listed = library.rd_kafka_group_result_partitions(groups[0]).contents
        each = (listed.elems[number] for number in range(listed.cnt))
        return {
            TopicPartition(one.topic.decode(), one.partition): KafkaError(one.err) if one.err else None for one in each
        }


@contextmanager
def _client(config: Mapping[str, Any]) -> Iterator[int]:
    library, text = _library(), ctypes.create_string_buffer(512)
    settings = library.rd_kafka_conf_new()
    try:
        # It lives for one call whose error is returned: what it would log goes to standard error and says the same.
        for key, value in {**config, "log_level": 0}.items():
            if library.rd_kafka_conf_set(settings, key.encode(), str(value).encode(), text, len(text)) != _OK:
                raise _exception(KafkaError._INVALID_ARG, text.value)
        client: int | None = library.rd_kafka_new(_PRODUCER, settings, text, len(text))
        if client is None:
            raise _exception(KafkaError._FAIL, text.value)
    except BaseException:
        library.rd_kafka_conf_destroy(settings)
        raise
    try:
        # Only OAUTHBEARER has such callbacks; for the others this answers with an error that is no news.
        library.rd_kafka_error_destroy(library.rd_kafka_sasl_background_callbacks_enable(client))
        yield client
    finally:
        library.rd_kafka_destroy(client)


@contextmanager
def _result(client: int, group: str, partitions: Iterable[TopicPartition], milliseconds: int) -> Iterator[int]:
    """The event that answers the request."""
    library, text = _library(), ctypes.create_string_buffer(512)
    listed = library.rd_kafka_topic_partition_list_new(0)
    for each in partitions:
        library.rd_kafka_topic_partition_list_add(listed, each.topic.encode(), each.partition)
    request = c_void_p(library.rd_kafka_DeleteConsumerGroupOffsets_new(group.encode(), listed))
    library.rd_kafka_topic_partition_list_destroy(listed)
    options = library.rd_kafka_AdminOptions_new(client, _DELETE_GROUP_OFFSETS)
    queue = library.rd_kafka_queue_new(client)
    event: int | None = None
    try:
        if library.rd_kafka_AdminOptions_set_request_timeout(options, milliseconds, text, len(text)) != _OK:
            raise _exception(KafkaError._INVALID_ARG, text.value)
        library.rd_kafka_DeleteConsumerGroupOffsets(client, byref(request), 1, options, queue)
        # The request itself ends in time; the second is for the answer to get here.
        event = library.rd_kafka_queue_poll(queue, milliseconds + 1000)
        if event is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        yield event
    finally:
        if event is not None:
            library.rd_kafka_event_destroy(event)
        library.rd_kafka_queue_destroy(queue)
        library.rd_kafka_AdminOptions_destroy(options)
        library.rd_kafka_DeleteConsumerGroupOffsets_destroy(request)


def _exception(code: int, text: bytes | None) -> KafkaException:
    return KafkaException(KafkaError(code, (text or b"").decode(errors="replace")))
