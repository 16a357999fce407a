"""The task's dead letter queue: its topic, and a producer of its own that knows when all letters have arrived."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from headgate.api.errors import ConnectError
from headgate.kafka.settings import QUIET, ClientKind, Complaints, translate
from headgate.metrics import ErrorMetrics
from headgate.model import Config, TaskSpec

if TYPE_CHECKING:
    from headgate.pipeline.dead_letter import DeadLetter

log = logging.getLogger(__name__)

_ASK_S: Final = 10.0
_ASK_TIMES: Final = 6
_LISTEN_S: Final = 0.5


class DeadLetters:
    """Any thread may send. A thread of its own hears what Kafka answers, so that whoever holds a future can wait."""

    def __init__(
        self, spec: TaskSpec, topic: str, replication: int, metrics: ErrorMetrics, may_go_on: Callable[[], bool]
    ) -> None:
        """Raises ConnectError when the topic is not there and cannot be created."""
        from confluent_kafka import Producer

        self._topic = topic
        self._complaints = Complaints(log, "Dead letter producer")
        self._metrics = metrics
        self._may_go_on = may_go_on
        _ensure_topic(spec.admin, topic, replication, may_go_on)
        settings = translate(ClientKind.PRODUCER, _producer_config(spec)).config
        self._producer = Producer({**QUIET, "linger.ms": 5, **settings, "error_cb": self._on_error}, logger=log)
        self._condition = threading.Condition()
        self._unanswered = 0
        self._closed = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._listen, name=f"dead-letters-{spec.id}", daemon=True)

    def send(self, letter: DeadLetter) -> Future[None]:
        """Done when Kafka has it, or has refused it: that is logged and counted, and the record is gone."""
        from confluent_kafka import KafkaException

        self._check()
        done: Future[None] = Future()
        with self._condition:
            self._metrics.dead_letters += 1
            self._unanswered += 1
            if self._thread.ident is None:
                self._thread.start()
            self._condition.notify_all()
        try:
            self._produce(letter, lambda error, _: self._answered(done, error and KafkaException(error)))
        except KafkaException as error:
            self._answered(done, error)
        return done

    def _produce(self, letter: DeadLetter, on_delivery: Callable[[Any, Any], None]) -> None:
        headers: list[tuple[str, str | bytes | None]] | None = [*letter.headers] or None
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    letter.value,
                    letter.key,
                    timestamp=letter.timestamp or 0,
                    headers=headers,
                    on_delivery=on_delivery,
                )
                return
            except BufferError:  # back-pressure
                time.sleep(0.05)
                self._check()
                if not self._may_go_on():
                    raise ConnectError("Given up on while the queue of dead letters was full") from None

    def _answered(self, done: Future[None], error: Exception | None) -> None:
        if error is None:
            done.set_result(None)
        else:
            if not self._closed:
                self._metrics.dead_letter_failures += 1
                log.error("Could not produce message to dead letter queue. topic=%s: %s", self._topic, error)
            done.set_exception(error)
        with self._condition:
            self._unanswered -= 1
            self._condition.notify_all()

    def _listen(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._unanswered or self._closed)
                if not self._unanswered:
                    return
            self._producer.poll(_LISTEN_S)

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            self._failure = self._failure or ConnectError(f"The dead letter producer failed for good: {error.str()}")
        else:
            self._complaints.say(error.str())

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has answered for every letter; False when it has not within this time."""
        deadline = time.monotonic() + seconds
        with self._condition:
            while self._unanswered and self._failure is None:
                left = deadline - time.monotonic()
                if left <= 0 or not self._may_go_on():
                    break
                self._condition.wait(min(left, _LISTEN_S))
        self._check()
        return self._unanswered == 0

    def close(self) -> None:
        """Forgets what was not acknowledged: the offsets of those records are not committed either."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._unanswered:
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)


def _producer_config(spec: TaskSpec) -> Config:
    """The task's own settings under another name. A dead letter is no part of a transaction, which may be aborted."""
    config = {key: value for key, value in spec.producer.items() if key != "transactional.id"}
    if config.get("client.id") == f"connector-producer-{spec.id}":
        config["client.id"] = f"connector-dlq-producer-{spec.id}"
    return config


def _ensure_topic(admin: Config, topic: str, replication: int, may_go_on: Callable[[], bool]) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    try:
        client = AdminClient({**QUIET, **translate(ClientKind.ADMIN, admin).config}, logger=log)
        if topic in _topics(client, may_go_on):
            return
        log.info("Topic %s for dead letters does not exist and is created", topic)
        client.create_topics([NewTopic(topic, 1, replication)])[topic].result(_ASK_S * _ASK_TIMES)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ConnectError(f"Could not initialize dead letter queue with topic={topic}") from error
    except Exception as error:
        raise ConnectError(f"Could not initialize dead letter queue with topic={topic}") from error


def _topics(client: Any, may_go_on: Callable[[], bool]) -> Any:
    """A broker that is away for a moment does not fail the task."""
    from confluent_kafka import KafkaException

    for left in reversed(range(_ASK_TIMES)):
        try:
            return client.list_topics(timeout=_ASK_S).topics
        except KafkaException as error:
            if left == 0 or not may_go_on():
                raise
            log.warning("The broker does not answer and is asked again: %s", error.args[0].str())
    raise AssertionError
