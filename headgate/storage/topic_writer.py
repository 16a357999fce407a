"""TopicWriter: a plain producer for one topic, whose writes are acknowledged when they return, or tell later."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate.kafka.settings import QUIET, ClientKind, Complaints, translate
from headgate.model import Config

_log: Final = logging.getLogger(__name__)

Entry = tuple[bytes, bytes | None]
"""Key and value of a record; None is a tombstone."""

Told = Callable[[KafkaError | None, int], None]
"""What became of a record: an error, or the offset that it got."""

_POLL_S: Final = 0.2
_ROOM_S: Final = 0.02


class WriteFailed(Exception):
    """Kafka has not taken all of it; the message has Kafka's own words. What was sent may still have arrived."""


class Writer(Protocol):
    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        """In this order, acknowledged by Kafka when it returns; where the writer is transactional, all or none of them.
        Raises WriteFailed."""

    def close(self) -> None: ...


class TopicWriter:
    """May be used from any thread. Records of one key arrive in the order in which they were sent, once or, if an
    acknowledgement was lost, more than once."""

    def __init__(self, topic: str, clients: Config, *, give_up_after: float = 30.0, retries: bool = True) -> None:
        """`clients` are settings by Apache's names. What cannot be delivered in `give_up_after` seconds is dropped, so
        that nothing arrives long after its writer was told that it did not. Raises ClientConfigError."""
        self.topic = topic
        made = {
            "linger.ms": "0",
            "reconnect.backoff.max.ms": "1000",
            **clients,
            "acks": "all",
            # As Apache's: idempotence asks for a permission that workers did not always need.
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": "1",
            "delivery.timeout.ms": str(round(give_up_after * 1000)),
        }
        if not retries:
            made["retries"] = "0"
        settings = translate(ClientKind.PRODUCER, made).config
        settings.pop("transactional.id", None)
        complaints = Complaints(_log, f"Writing to {topic}")
        callbacks = {"error_cb": lambda error: complaints.say(error.str())}
        self._producer = Producer({**QUIET, **settings, **callbacks})
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def send(self, key: bytes, value: bytes | None, told: Told) -> None:
        """Without waiting. `told` is called from a thread of the writer's; from this one when Kafka's client refuses
        the record at once."""
        try:
            self._produce(key, value, told)
        except BufferError:
            told(KafkaError(KafkaError._QUEUE_FULL, "no room for more records"), -1)

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        """In this order, acknowledged by Kafka when it returns. Raises WriteFailed."""
        deadline = time.monotonic() + timeout
        waiting = _Waiting(self.topic, len(entries))
        for key, value in entries:
            while time.monotonic() <= deadline:
                try:
                    self._produce(key, value, waiting.tell)
                    break
                except BufferError:  # room is made as records get acknowledged
                    time.sleep(_ROOM_S)
        waiting.result(deadline, timeout)

    def _produce(self, key: bytes, value: bytes | None, told: Told) -> None:
        """Raises BufferError when there is no room."""

        def report(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            told(error, -1 if error is not None or offset is None else offset)

        if self._closed:
            told(KafkaError(KafkaError._DESTROY, "the writer is closed"), -1)
            return
        self._listen()
        try:
            self._producer.produce(self.topic, value, key, on_delivery=report)
        except KafkaException as error:
            told(error.args[0], -1)

    def flush(self, timeout: float) -> bool:
        """Whether nothing is under way any more."""
        left: int = self._producer.flush(timeout)
        return left == 0

    def close(self, timeout: float = 5.0) -> None:
        """Waits that long for what is under way; the rest is told that it failed."""
        self._closed = True
        if self._thread is None:
            return
        if not self.flush(timeout):
            self._producer.purge()
            self._producer.flush(1.0)
        self._thread.join(2 * _POLL_S)
        self._thread = None

    def _listen(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=f"writes-{self.topic}", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while not self._closed:
            try:
                self._producer.poll(_POLL_S)
            except Exception:
                _log.exception("A report about a record for %s was not understood", self.topic)


class _Waiting:
    """For the acknowledgements of some records."""

    def __init__(self, topic: str, count: int) -> None:
        self._topic = topic
        self._left = count
        self._error: KafkaError | None = None
        self._told = threading.Condition()

    def tell(self, error: KafkaError | None, _: int) -> None:
        with self._told:
            self._left -= 1
            if self._error is None:
                self._error = error
            self._told.notify_all()

    def result(self, deadline: float, timeout: float) -> None:
        with self._told:
            left = max(deadline - time.monotonic(), 0.0)
            self._told.wait_for(lambda: self._left <= 0 or self._error is not None, left)
            if self._error is not None:
                why = f"{self._error.str()} [{self._error.name()}]"
                raise WriteFailed(f"Kafka did not take a record for topic {self._topic}: {why}")
            if self._left > 0:
                raise WriteFailed(f"Kafka did not acknowledge a record for topic {self._topic} within {timeout:g} s")
