"""The task's own producer: sends the pipeline's columns to Kafka and knows when all of it has arrived."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headgate.api.errors import ConnectError
from headgate.clients import QUIET, ClientKind, translate
from headgate.model import Config

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_POLL_EVERY: Final = 5_000
"""Records between two looks at what Kafka answered."""


class Delivery:
    """One thread sends; `check` and `flush` raise what Kafka refused."""

    def __init__(self, config: Config, may_go_on: Callable[[], bool]) -> None:
        from confluent_kafka import Producer

        translated = translate(ClientKind.PRODUCER, config)
        if translated.ignored:
            log.info("Producer settings without meaning here are ignored: %s", ", ".join(translated.ignored))
        # Only failures are called back: a Python call for every record that arrived would cost more than sending it.
        settings = {**QUIET, "queue.buffering.max.messages": 1_000_000, "linger.ms": 5, **translated.config}
        settings |= {"on_delivery": self._on_delivery, "delivery.report.only.error": True, "error_cb": self._on_error}
        self._producer = Producer(settings, logger=log)
        self._may_go_on = may_go_on
        self._failure: Exception | None = None
        self._lock = threading.Lock()

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            with self._lock:
                self._failure = self._failure or ConnectError(
                    f"Unrecoverable exception from producer send callback: {error.str()} ({error.name()}),"
                    f" record for topic {message.topic()}"
                )

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            with self._lock:
                self._failure = self._failure or ConnectError(f"The producer failed for good: {error.str()}")
        else:
            log.warning("Producer: %s", error.str())

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def send(self, table: pa.Table) -> None:
        """Hands all rows to the producer, in order; waits where its queue is full."""
        names = ("topic", "value", "key", "partition", "timestamp", "headers")
        topic, value, key, partition, timestamp, headers = (table.column(name) for name in names)
        only_values = all(column.null_count == len(column) for column in (key, partition, headers))
        topics, values, times = topic.to_pylist(), value.to_pylist(), timestamp.to_pylist()
        if only_values:
            for index, (each, data, at) in enumerate(zip(topics, values, times, strict=True)):
                self._produce(each, data, None, -1, at or 0, None)
                if index % _POLL_EVERY == 0:
                    self._producer.poll(0)
        else:
            rest = (key.to_pylist(), partition.to_pylist(), times, headers.to_pylist())
            for index, (each, data, name, number, at, marks) in enumerate(zip(topics, values, *rest, strict=True)):
                pairs = [(mark["key"], mark["value"]) for mark in marks] if marks else None
                self._produce(each, data, name, -1 if number is None else number, at or 0, pairs)
                if index % _POLL_EVERY == 0:
                    self._producer.poll(0)
        self._producer.poll(0)
        self.check()

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int,
        headers: list[tuple[str, str | bytes | None]] | None,
    ) -> None:
        while True:
            try:
                if headers is None:
                    self._producer.produce(topic, value, key, partition, timestamp=timestamp)
                else:
                    self._producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                return
            except BufferError:  # back-pressure: the broker is slower than the source
                self._producer.poll(0.1)
                self.check()
                if not self._may_go_on():
                    raise ConnectError("Given up on while the producer's queue was full") from None

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has everything; False when it has not within this time. Raises what it refused."""
        deadline = time.monotonic() + seconds
        while len(self._producer) > 0:
            left = deadline - time.monotonic()
            if left <= 0 or not self._may_go_on():
                break
            self._producer.flush(min(left, 0.5))
            self.check()
        self._producer.poll(0)
        self.check()
        return len(self._producer) == 0

    @property
    def outstanding(self) -> int:
        return len(self._producer)

    def close(self) -> None:
        """Forgets what was not acknowledged: its offsets are not committed either."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._producer.flush(1.0)
