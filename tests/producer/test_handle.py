"""What a failed call leaves behind: nothing that keeps the native producer."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.producer.errors import KafkaFault
from headgate.producer.handle import Handle
from headgate.producer.settings import Settings
from headgate.producer.watchdog import Overrun, within


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


class Slow:
    """A native producer, one call of which does not come back for now."""

    def __init__(self, _: dict[str, Any]) -> None:
        self.back, self.destroyed = threading.Event(), threading.Event()
        self.aborted = False

    def work(self) -> str:
        assert self.back.wait(20)
        return "done"

    def abort_transaction(self, seconds: float) -> None:
        self.aborted = True

    def purge(self) -> None: ...

    def poll(self, seconds: float) -> int:
        return 0

    def __len__(self) -> int:
        return 0

    def destroy(self) -> None:
        self.destroyed.set()


@pytest.fixture
def handle() -> Handle:
    settings = Settings.of({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t"})
    return Handle(settings, only_failures=True, make=Slow)


@pytest.mark.parametrize("how", ["dispose", "abandon"])
def test_who_comes_back_after_all_have_gone_ends_the_producer(handle: Handle, how: str) -> None:
    """Though somebody may still hold it, by a traceback: its threads and connections go."""
    native: Any = handle.native
    with pytest.raises(Overrun):
        within(0.05, lambda: handle.call_late(native.work), "test-late")
    handle.broken = True
    handle.dispose(5.0, abort=True) if how == "dispose" else handle.abandon()
    assert not native.destroyed.is_set(), "somebody is inside"
    native.back.set()
    assert native.destroyed.wait(20)
    assert not native.aborted, "nothing is asked of it any more"


def test_who_was_late_and_is_back_keeps_nobody_from_ending_it(handle: Handle) -> None:
    native: Any = handle.native
    native.back.set()
    assert within(20, lambda: handle.call_late(native.work), "test-late") == "done"
    handle.broken = True
    handle.dispose(5.0, abort=True)
    assert native.destroyed.is_set()
    assert not native.aborted


def test_what_another_thread_stays_in_is_left_alone(handle: Handle) -> None:
    native: Any = handle.native
    handle.occupied = True
    handle.dispose(5.0, abort=True)
    assert not native.destroyed.is_set()


def test_an_open_transaction_is_aborted_before(handle: Handle) -> None:
    native: Any = handle.native
    handle.dispose(5.0, abort=True)
    assert native.aborted
    assert native.destroyed.is_set()
