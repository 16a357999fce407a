"""TopicWriter: a plain producer for one topic, whose writes are acknowledged when they return, or tell later."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from typing import Any, Protocol

from confluent_kafka import KafkaError

from headgate.kafka.sender import Sender
from headgate.model import Config

Entry = tuple[bytes, bytes | None]
"""Key and value of a record; None is a tombstone."""

Told = Callable[[KafkaError | None, int], None]
"""What became of a record: an error, or the offset that it got."""


class WriteFailed(Exception):
    """Kafka has not taken all of it; the message has Kafka's own words. What was sent may still have arrived."""


class Writer(Protocol):
    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        """In this order, acknowledged by Kafka when it returns; where the writer is transactional, all or none of them.
        Raises WriteFailed."""

    def close(self) -> None: ...


class SendingWriter(Writer, Protocol):
    def send(self, key: bytes, value: bytes | None, told: Told) -> None:
        """Without waiting. `told` is called from a thread of the writer's; from this one when Kafka's client refuses
        the record at once."""


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
        # Who deletes an internal topic shall not find one again that nobody has made, with the broker's settings.
        self._sender = Sender(made, f"writes-{topic}", creates_topics=False)

    def send(self, key: bytes, value: bytes | None, told: Told) -> None:
        def answered(done: Future[Any]) -> None:
            error = done.exception()
            told(None, done.result()) if error is None else told(error.args[0], -1)

        try:
            self._sender.send(self.topic, value, key, room_s=0.0).add_done_callback(answered)
        except BufferError:
            told(KafkaError(KafkaError._QUEUE_FULL, "no room for more records"), -1)

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        """In this order, acknowledged by Kafka when it returns. Raises WriteFailed."""
        deadline = time.monotonic() + timeout

        def left() -> float:
            return max(deadline - time.monotonic(), 0.0)

        late = f"Kafka did not acknowledge a record for topic {self.topic} within {timeout:g} s"
        try:
            sent = [self._sender.send(self.topic, value, key, room_s=left()) for key, value in entries]
        except BufferError:
            raise WriteFailed(late) from None
        done, unanswered = wait(sent, left(), FIRST_EXCEPTION)
        for error in filter(None, (each.exception() for each in done)):
            why = f"{error.args[0].str()} [{error.args[0].name()}]"
            raise WriteFailed(f"Kafka did not take a record for topic {self.topic}: {why}")
        if unanswered:
            raise WriteFailed(late)

    def close(self, timeout: float = 5.0) -> None:
        """Waits that long for what is under way; the rest is told that it failed."""
        self._sender.close(timeout)
