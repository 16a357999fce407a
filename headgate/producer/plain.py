"""Sending without transactions, at least once: every record has a future that says what became of it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.producer import codes
from headgate.producer.classify import produce_failed
from headgate.producer.errors import FailureType, KafkaErrorInfo, KafkaFault
from headgate.producer.handle import Handle
from headgate.producer.reports import OnDelivery, info_of

log = logging.getLogger(__name__)

_POLL_S: Final = 0.1
_ROOM_S: Final = 0.005


class Plain:
    """Reports are taken by a thread of its own, so that futures get done while nobody calls the producer."""

    def __init__(self, handle: Handle, block: float) -> None:
        self._handle = handle
        self._block = block
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.fault: KafkaErrorInfo | None = None
        """What ended the producer while nobody called it."""

    def send(
        self, topic: str, value: Any, key: Any, partition: int, timestamp: int, headers: Any, tell: OnDelivery | None
    ) -> Future[Message]:
        """Waits while the queue is full. A record that is refused at once fails its future, too. Raises KafkaFault
        when the producer itself is finished."""
        self._start()
        future: Future[Message] = Future()
        future.set_running_or_notify_cancel()

        def on_report(error: KafkaError | None, message: Message) -> None:
            info = None if error is None else info_of(error)
            self._settle(future, tell, info, message)

        deadline = time.monotonic() + self._block
        while True:
            try:
                self._handle.native.produce(topic, value, key, partition, on_report, on_report, timestamp, headers)
                return future
            except BufferError:
                if time.monotonic() < deadline:
                    self._ended.wait(_ROOM_S)
                    continue
                info = codes.info(KafkaError._QUEUE_FULL, "no room in the queue")
            except KafkaException as error:
                info = info_of(error.args[0])
            break
        if info.fatal or info.code == KafkaError._FATAL:
            raise KafkaFault(self.fault or info)
        refused = Message(topic=topic, partition=partition, key=key, value=value, error=KafkaError(info.code))
        self._settle(future, tell, info, refused)
        return future

    def _settle(
        self, future: Future[Message], tell: OnDelivery | None, info: KafkaErrorInfo | None, message: Message
    ) -> None:
        if info is None or info.code in codes.DELIVERED:
            error = None
            future.set_result(message)
        else:
            # A record that was dropped with its producer did not arrive: here that is a failure like any other.
            failure_type = FailureType.DELIVERY_FAILED if info.code in codes.PURGED else None
            error = produce_failed(info, None, failure_type=failure_type)
            future.set_exception(error)
        if tell is not None:
            self._handle.reports.tell(tell, error, message)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._take, name="producer-reports", daemon=True)
            self._thread.start()

    def _take(self) -> None:
        while not self._ended.is_set():
            try:
                self._handle.serve(_POLL_S)
            except KafkaFault as fault:
                log.error("The producer is finished: %s", fault)
                self.fault = fault.info

    def close(self) -> None:
        """Nothing is reported any more, but by calls."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(10 * _POLL_S)
