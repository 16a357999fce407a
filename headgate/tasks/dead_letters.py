"""The task's dead letter queue: its topic, and who sends to it and knows when all letters have arrived."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from headgate.api.errors import ConnectError
from headgate.metrics import ErrorMetrics
from headgate.model import Config, NewTopic, TaskSpec
from headgate.tasks.ports import Letters, TopicAdmin

if TYPE_CHECKING:
    from headgate.pipeline.dead_letter import DeadLetter

log = logging.getLogger(__name__)


class DeadLetters:
    """Any thread may send."""

    def __init__(self, topic: str, sender: Letters, metrics: ErrorMetrics) -> None:
        self._topic = topic
        self._sender = sender
        self._metrics = metrics
        self._counting = threading.Lock()
        self._closed = False

    def send(self, letter: DeadLetter) -> Future[None]:
        """Done when Kafka has it, or has refused it: that is logged and counted, and the record is gone."""
        self._check()
        with self._counting:
            self._metrics.dead_letters += 1
        try:
            done = self._sender.send(self._topic, letter.value, letter.key, letter.headers, letter.timestamp)
        except BufferError:
            self._check()
            raise ConnectError("Given up on while the queue of dead letters was full") from None
        done.add_done_callback(self._answered)
        return done

    def _answered(self, done: Future[Any]) -> None:
        if not self._closed and (error := done.exception()) is not None:
            with self._counting:
                self._metrics.dead_letter_failures += 1
            log.error("Could not produce message to dead letter queue. topic=%s: %s", self._topic, error)

    def _check(self) -> None:
        if self._sender.failure is not None:
            raise ConnectError(f"The dead letter producer failed for good: {self._sender.failure}")

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has answered for every letter; False when it has not within this time."""
        flushed = self._sender.flush(seconds)
        self._check()
        return flushed

    def close(self) -> None:
        """Forgets what was not acknowledged: the offsets of those records are not committed either."""
        self._closed = True
        self._sender.close()


def producer_config(spec: TaskSpec) -> Config:
    """The task's own settings under another name."""
    config = {"linger.ms": "5", **spec.producer}
    if config.get("client.id") == f"connector-producer-{spec.id}":
        config["client.id"] = f"connector-dlq-producer-{spec.id}"
    return config


def ensure_topic(admin: TopicAdmin, topic: str, replication: int | None) -> None:
    """Raises ConnectError when it is not there and cannot be created."""
    try:
        if not admin.exists(topic):
            log.info("Topic %s for dead letters does not exist and is created", topic)
            admin.create(NewTopic(topic, 1, replication))
    except Exception as error:
        key = "errors.deadletterqueue.topic.replication.factor"
        hint = f". Set {key} to no more than there are brokers" if "REPLICATION_FACTOR" in str(error) else ""
        raise ConnectError(f"Could not initialize dead letter queue with topic={topic}: {error}{hint}") from error
