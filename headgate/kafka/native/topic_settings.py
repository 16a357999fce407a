"""Asks, over a producer's own connection, what is set for a topic."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import ExitStack
from ctypes import byref, c_size_t, c_void_p
from typing import Final

from headgate.kafka.native import calls as native

_DESCRIBE_CONFIGS: Final = 5
"""RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS"""
_TOPIC: Final = 2
"""RD_KAFKA_RESOURCE_TOPIC"""
_INVALID_TOPIC: Final = 17
_LOOK_MS: Final = 100


def settings_of(producer: int, topic: str, seconds: float, may_go_on: Callable[[], bool]) -> dict[str, str] | int:
    """All that is set; or the broker's error code, 0 if there was no answer for so long."""
    calls = native.library()
    resource = c_void_p(calls.rd_kafka_ConfigResource_new(_TOPIC, topic.encode()))
    if not resource:
        return _INVALID_TOPIC
    with ExitStack() as ending:
        ending.callback(calls.rd_kafka_ConfigResource_destroy, resource)
        queue = calls.rd_kafka_queue_new(producer)
        ending.callback(calls.rd_kafka_queue_destroy, queue)
        options = calls.rd_kafka_AdminOptions_new(producer, _DESCRIBE_CONFIGS)
        ending.callback(calls.rd_kafka_AdminOptions_destroy, options)
        text = ctypes.create_string_buffer(512)
        calls.rd_kafka_AdminOptions_set_request_timeout(options, int(seconds * 1000), text, len(text))
        calls.rd_kafka_DescribeConfigs(producer, byref(resource), 1, options, queue)
        deadline, event = time.monotonic() + seconds, None
        while not event and time.monotonic() < deadline and may_go_on():
            event = calls.rd_kafka_queue_poll(queue, _LOOK_MS)
        if not event:
            return 0
        ending.callback(calls.rd_kafka_event_destroy, event)
        result, count = calls.rd_kafka_event_DescribeConfigs_result(event), c_size_t()
        told = calls.rd_kafka_DescribeConfigs_result_resources(result, byref(count))
        code: int = calls.rd_kafka_ConfigResource_error(told[0]) if count else calls.rd_kafka_event_error(event)
        if code or not count:
            return max(code, 0)  # errors below are the library's own, which had no answer
        entries = calls.rd_kafka_ConfigResource_configs(told[0], byref(count))
        name, value = calls.rd_kafka_ConfigEntry_name, calls.rd_kafka_ConfigEntry_value
        return {name(each).decode(): (value(each) or b"").decode() for each in entries[: count.value]}
