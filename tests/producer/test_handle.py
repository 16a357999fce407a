"""What a failed call leaves behind: nothing that keeps the native producer."""

from __future__ import annotations

import gc
import weakref

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.producer.errors import KafkaFault
from headgate.producer.handle import Handle


class Native:
    def fail(self) -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))


def test_a_failed_call_keeps_no_producer() -> None:
    handle, native = Handle.__new__(Handle), Native()
    left = weakref.ref(native)
    gc.disable()
    try:
        with pytest.raises(KafkaFault):
            handle.call(native.fail)
        del native
        assert left() is None
    finally:
        gc.enable()
