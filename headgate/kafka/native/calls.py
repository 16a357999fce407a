"""librdkafka's own calls, for whole columns: an Arrow buffer already is what they take, pointers and lengths.

Called in the very library that confluent_kafka has loaded, by the names and layouts of librdkafka's `rdkafka.h`, which
are stable within version 2. A Python call for each record costs more than all that librdkafka does with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl

PRODUCER: Final = 0
CONF_OK: Final = 0
ANY_PARTITION: Final = -1

EVENT_DELIVERY: Final = 0x1
EVENT_ERROR: Final = 0x8

COPY: Final = 0x2
"""The payload is copied: Arrow's buffer may go."""

MESSAGE: Final = np.dtype(
    [
        ("err", "i4"), ("_1", "i4"), ("rkt", "u8"), ("partition", "i4"), ("_2", "i4"), ("payload", "u8"), ("len", "u8"),
        ("key", "u8"), ("key_len", "u8"), ("offset", "i8"), ("private", "u8"),
    ]
)  # fmt: skip
"""rd_kafka_message_t"""


class _Memory(ctypes.Structure):
    _fields_ = (("ptr", c_void_p), ("size", c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("val", c_void_p), ("size", ctypes.c_ssize_t))


class _Value(ctypes.Union):
    _fields_ = (
        ("cstr", c_char_p), ("rkt", c_void_p), ("i", c_int), ("i32", c_int32), ("i64", c_int64), ("mem", _Memory),
        ("header", _Header), ("ptr", c_void_p), ("pad", ctypes.c_char * 64),
    )  # fmt: skip


class Argument(ctypes.Structure):
    """rd_kafka_vu_t: one argument of `rd_kafka_produceva`."""

    _fields_ = (("vtype", c_int), ("u", _Value))


RKT: Final = 2
PARTITION: Final = 3
VALUE: Final = 4
KEY: Final = 5
OPAQUE: Final = 6
FLAGS: Final = 7
TIMESTAMP: Final = 8
HEADER: Final = 9

# Function: what it returns, what it takes. All of librdkafka's own objects are opaque pointers.
_FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_set_events": (None, (c_void_p, c_int)),
    "rd_kafka_conf_set_dr_msg_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_set_log_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_set_error_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_set_opaque": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_set_socket_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_set_closesocket_cb": (None, (c_void_p, c_void_p)),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy_flags": (None, (c_void_p, c_int)),
    "rd_kafka_sasl_background_callbacks_enable": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_new": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_get_main": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_poll": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_event_type": (c_int, (c_void_p,)),
    "rd_kafka_event_error": (c_int, (c_void_p,)),
    "rd_kafka_event_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_event_error_is_fatal": (c_int, (c_void_p,)),
    "rd_kafka_event_message_next": (c_void_p, (c_void_p,)),
    "rd_kafka_event_destroy": (None, (c_void_p,)),
    "rd_kafka_message_headers": (c_int, (c_void_p, POINTER(c_void_p))),
    "rd_kafka_message_timestamp": (c_int64, (c_void_p, POINTER(c_int))),
    "rd_kafka_header_get_all": (c_int, (c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p), POINTER(c_size_t))),
    "rd_kafka_fatal_error": (c_int, (c_void_p, c_char_p, c_size_t)),
    "rd_kafka_topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "rd_kafka_topic_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_name": (c_char_p, (c_void_p,)),
    "rd_kafka_produce_batch": (c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    "rd_kafka_produceva": (c_void_p, (c_void_p, POINTER(Argument), c_size_t)),
    "rd_kafka_init_transactions": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_begin_transaction": (c_void_p, (c_void_p,)),
    "rd_kafka_send_offsets_to_transaction": (c_void_p, (c_void_p, c_void_p, c_void_p, c_int)),
    "rd_kafka_consumer_group_metadata_read": (c_void_p, (POINTER(c_void_p), c_char_p, c_size_t)),
    "rd_kafka_consumer_group_metadata_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_partition_list_new": (c_void_p, (c_int,)),
    "rd_kafka_topic_partition_list_add": (c_void_p, (c_void_p, c_char_p, c_int32)),
    "rd_kafka_topic_partition_list_set_offset": (c_int, (c_void_p, c_char_p, c_int32, c_int64)),
    "rd_kafka_topic_partition_list_find": (c_void_p, (c_void_p, c_char_p, c_int32)),
    "rd_kafka_topic_partition_list_destroy": (None, (c_void_p,)),
    "rd_kafka_commit_transaction": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_abort_transaction": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_poll": (c_int, (c_void_p, c_int)),
    "rd_kafka_outq_len": (c_int, (c_void_p,)),
    "rd_kafka_flush": (c_int, (c_void_p, c_int)),
    "rd_kafka_purge": (c_int, (c_void_p, c_int)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_error_is_fatal": (c_int, (c_void_p,)),
    "rd_kafka_error_is_retriable": (c_int, (c_void_p,)),
    "rd_kafka_error_txn_requires_abort": (c_int, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
    "rd_kafka_err2str": (c_char_p, (c_int,)),
    "rd_kafka_AdminOptions_new": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_AdminOptions_set_request_timeout": (c_int, (c_void_p, c_int, c_char_p, c_size_t)),
    "rd_kafka_AdminOptions_destroy": (None, (c_void_p,)),
    "rd_kafka_ConfigResource_new": (c_void_p, (c_int, c_char_p)),
    "rd_kafka_ConfigResource_destroy": (None, (c_void_p,)),
    "rd_kafka_ConfigResource_error": (c_int, (c_void_p,)),
    "rd_kafka_ConfigResource_configs": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_ConfigEntry_name": (c_char_p, (c_void_p,)),
    "rd_kafka_ConfigEntry_value": (c_char_p, (c_void_p,)),
    "rd_kafka_DescribeConfigs": (None, (c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_void_p)),
    "rd_kafka_event_DescribeConfigs_result": (c_void_p, (c_void_p,)),
    "rd_kafka_DescribeConfigs_result_resources": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_DeleteConsumerGroupOffsets_new": (c_void_p, (c_char_p, c_void_p)),
    "rd_kafka_DeleteConsumerGroupOffsets_destroy": (None, (c_void_p,)),
    "rd_kafka_DeleteConsumerGroupOffsets": (None, (c_void_p, POINTER(c_void_p), c_size_t, c_void_p, c_void_p)),
    "rd_kafka_event_DeleteConsumerGroupOffsets_result": (c_void_p, (c_void_p,)),
    "rd_kafka_DeleteConsumerGroupOffsets_result_groups": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_group_result_error": (c_void_p, (c_void_p,)),
    "rd_kafka_group_result_partitions": (c_void_p, (c_void_p,)),
}

PURGE_KNOWN: Final = 0x1 | 0x2
"""What is queued and what is in flight."""
PURGE_ALL: Final = PURGE_KNOWN | 0x4
"""The same, without waiting for it."""
DESTROY_AT_ONCE: Final = 0x8


@cache
def library() -> ctypes.CDLL:
    # Symbols of a module are looked up in what it was linked with too, so this finds the library that is loaded anyway.
    loaded = ctypes.CDLL(cimpl.__file__)
    for name, (returned, taken) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returned, taken
    return loaded


def new_producer(config: Mapping[str, Any], *hear: Callable[[int], None], events: int = 0) -> int:
    """A producer that reports these as events; `hear` put callbacks into its settings, an rd_kafka_conf_t. Raises
    KafkaException."""
    calls, text = library(), ctypes.create_string_buffer(512)
    conf = calls.rd_kafka_conf_new()
    for key, value in config.items():
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        if calls.rd_kafka_conf_set(conf, key.encode(), shown.encode(), text, len(text)) != CONF_OK:
            calls.rd_kafka_conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))
    calls.rd_kafka_conf_set_log_cb(conf, None)  # whatever it would print it tells as an error, too
    calls.rd_kafka_conf_set_events(conf, events)
    for install in hear:
        install(conf)
    handle: int | None = calls.rd_kafka_new(PRODUCER, conf, text, len(text))
    if handle is None:
        calls.rd_kafka_conf_destroy(conf)
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))
    return handle


def partition_list(offsets: Iterable[tuple[str, int, int]]) -> int:
    """An rd_kafka_topic_partition_list_t of topics, partitions and offsets; whoever asks for it destroys it."""
    calls = library()
    made: int = calls.rd_kafka_topic_partition_list_new(0)
    for topic, partition, offset in offsets:
        calls.rd_kafka_topic_partition_list_add(made, topic.encode(), partition)
        calls.rd_kafka_topic_partition_list_set_offset(made, topic.encode(), partition, offset)
    return made


def produce(producer: int, arguments: Any) -> int:
    """Hands over one record, given as `columns.Arguments`: what the library has against it; 0 if nothing."""
    error = library().rd_kafka_produceva(producer, arguments.array, arguments.count)
    if not error:
        return 0
    code: int = library().rd_kafka_error_code(error)
    library().rd_kafka_error_destroy(error)
    return code


def words(code: int) -> str:
    text: bytes = library().rd_kafka_err2str(code)
    return text.decode()


def fatal_error(producer: int) -> tuple[int, str] | None:
    """Why it can never send again, as code and words; None: it can."""
    text = ctypes.create_string_buffer(512)
    code = library().rd_kafka_fatal_error(producer, text, len(text))
    return (code, text.value.decode()) if code else None


class Message(NamedTuple):
    """A record that did not arrive, as it was to be sent."""

    code: int
    number: int
    """What it was given to be known by."""
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None

    @property
    def size(self) -> int:
        """About what it takes in a batch."""
        headers = sum(HEADER_OVERHEAD + len(name.encode()) + len(value or b"") for name, value in self.headers)
        return RECORD_OVERHEAD + len(self.key or b"") + len(self.value or b"") + headers


RECORD_OVERHEAD: Final = 70
"""What a record takes besides its bytes; the head of its batch is counted with it."""
HEADER_OVERHEAD: Final = 10


def error_of(message: int) -> int:
    """The error code of an rd_kafka_message_t."""
    return c_int.from_address(message).value


def message_of(message: int) -> Message:
    """All of an rd_kafka_message_t, copied: it is gone with its event."""
    bare = bare_message_of(message)
    # It keeps the time of a message with an error to itself.
    error = c_int.from_address(message)
    code, error.value = error.value, 0
    moment = library().rd_kafka_message_timestamp(message, ctypes.byref(c_int()))
    error.value = code
    return bare._replace(headers=tuple(_headers(message)), timestamp=moment if moment > 0 else None)


def bare_message_of(message: int) -> Message:
    """The same without headers and timestamp."""
    row = np.frombuffer(ctypes.string_at(message, MESSAGE.itemsize), MESSAGE)[0]
    return row_of(row, library().rd_kafka_topic_name(int(row["rkt"])).decode())


def row_of(row: Any, topic: str) -> Message:
    """Of a row of MESSAGE, while the bytes that it points to are there."""
    return Message(
        code=int(row["err"]),
        number=int(row["private"]),
        topic=topic,
        partition=int(row["partition"]),
        key=copied(int(row["key"]), int(row["key_len"])),
        value=copied(int(row["payload"]), int(row["len"])),
    )


def _headers(message: int) -> Iterator[tuple[str, bytes | None]]:
    headers, name, value, size = c_void_p(), c_char_p(), c_void_p(), c_size_t()
    if library().rd_kafka_message_headers(message, ctypes.byref(headers)) != 0:
        return
    index, get = 0, library().rd_kafka_header_get_all
    while get(headers, index, ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)) == 0:
        yield (name.value or b"").decode(), copied(value.value or 0, size.value)
        index += 1


def copied(address: int, size: int) -> bytes | None:
    """What lies there; nothing at 0."""
    return ctypes.string_at(address, size) if address else None
