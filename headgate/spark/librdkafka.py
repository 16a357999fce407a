"""librdkafka's own producer calls, for whole columns: an Arrow buffer already is what they take, pointers and lengths.

Called in the very library that confluent_kafka has loaded, by the names and layouts of librdkafka's `rdkafka.h`, which
are stable within version 2. A Python call for each record costs more than all that librdkafka does with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl

PRODUCER: Final = 0
CONF_OK: Final = 0
ANY_PARTITION: Final = -1

EVENT_DELIVERY: Final = 0x1
EVENT_ERROR: Final = 0x8

COPY: Final = 0x2
"""The payload is copied: Arrow's buffer may go."""
PARTITIONS: Final = 0x8
"""Each message says its partition."""

MESSAGE: Final = np.dtype(
    [
        ("err", "i4"),
        ("_1", "i4"),
        ("rkt", "u8"),
        ("partition", "i4"),
        ("_2", "i4"),
        ("payload", "u8"),
        ("len", "u8"),
        ("key", "u8"),
        ("key_len", "u8"),
        ("offset", "i8"),
        ("private", "u8"),
    ]
)
"""rd_kafka_message_t"""


class _Memory(ctypes.Structure):
    _fields_ = (("ptr", c_void_p), ("size", c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("val", c_void_p), ("size", ctypes.c_ssize_t))


class _Value(ctypes.Union):
    _fields_ = (
        ("cstr", c_char_p),
        ("rkt", c_void_p),
        ("i", c_int),
        ("i32", c_int32),
        ("i64", c_int64),
        ("mem", _Memory),
        ("header", _Header),
        ("ptr", c_void_p),
        ("pad", ctypes.c_char * 64),
    )


class Argument(ctypes.Structure):
    """rd_kafka_vu_t: one argument of `rd_kafka_produceva`."""

    _fields_ = (("vtype", c_int), ("u", _Value))


RKT: Final = 2
PARTITION: Final = 3
VALUE: Final = 4
KEY: Final = 5
FLAGS: Final = 7
TIMESTAMP: Final = 8
HEADER: Final = 9

# Function: what it returns, what it takes. All of librdkafka's own objects are opaque pointers.
_FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_conf_set_events": (None, (c_void_p, c_int)),
    "rd_kafka_conf_destroy": (None, (c_void_p,)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy_flags": (None, (c_void_p, c_int)),
    "rd_kafka_queue_get_main": (c_void_p, (c_void_p,)),
    "rd_kafka_queue_poll": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_queue_destroy": (None, (c_void_p,)),
    "rd_kafka_event_type": (c_int, (c_void_p,)),
    "rd_kafka_event_error": (c_int, (c_void_p,)),
    "rd_kafka_event_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_event_error_is_fatal": (c_int, (c_void_p,)),
    "rd_kafka_event_message_next": (c_void_p, (c_void_p,)),
    "rd_kafka_event_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_new": (c_void_p, (c_void_p, c_char_p, c_void_p)),
    "rd_kafka_topic_destroy": (None, (c_void_p,)),
    "rd_kafka_topic_name": (c_char_p, (c_void_p,)),
    "rd_kafka_produce_batch": (c_int, (c_void_p, c_int32, c_int, c_void_p, c_int)),
    "rd_kafka_produceva": (c_void_p, (c_void_p, POINTER(Argument), c_size_t)),
    "rd_kafka_outq_len": (c_int, (c_void_p,)),
    "rd_kafka_flush": (c_int, (c_void_p, c_int)),
    "rd_kafka_purge": (c_int, (c_void_p, c_int)),
    "rd_kafka_error_code": (c_int, (c_void_p,)),
    "rd_kafka_error_string": (c_char_p, (c_void_p,)),
    "rd_kafka_error_destroy": (None, (c_void_p,)),
    "rd_kafka_err2str": (c_char_p, (c_int,)),
}

PURGE_ALL: Final = 0x1 | 0x2 | 0x4
"""What is queued, what is in flight, and without waiting for it."""
DESTROY_AT_ONCE: Final = 0x8


@cache
def library() -> ctypes.CDLL:
    # Symbols of a module are looked up in what it was linked with too, so this finds the library that is loaded anyway.
    loaded = ctypes.CDLL(cimpl.__file__)
    for name, (returned, taken) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returned, taken
    return loaded


def new_producer(config: Mapping[str, Any]) -> int:
    """A producer that reports failed records and errors as events. Raises KafkaException."""
    calls, text = library(), ctypes.create_string_buffer(512)
    conf = calls.rd_kafka_conf_new()
    for key, value in config.items():
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        if calls.rd_kafka_conf_set(conf, key.encode(), shown.encode(), text, len(text)) != CONF_OK:
            calls.rd_kafka_conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))
    calls.rd_kafka_conf_set_events(conf, EVENT_DELIVERY | EVENT_ERROR)
    handle: int | None = calls.rd_kafka_new(PRODUCER, conf, text, len(text))
    if handle is None:
        calls.rd_kafka_conf_destroy(conf)
        raise KafkaException(KafkaError(KafkaError._FAIL, text.value.decode()))
    return handle


def message_error(message: int) -> tuple[int, str]:
    """Of an rd_kafka_message_t: its error code and its topic."""
    code = c_int.from_address(message).value
    topic = library().rd_kafka_topic_name(c_void_p.from_address(message + 8).value)
    return code, topic.decode()
