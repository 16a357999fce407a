"""The dead letter queue, with a sender and topics on paper; end_to_end/test_dead_letters.py has it on Kafka."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.api import ConnectError
from headgate.kafka.topics import TopicRefused
from headgate.metrics import ErrorMetrics
from headgate.model import ChainSpec, ConnectorType, NewTopic, PluginRef, PluginSpec, TargetState, TaskId, TaskSpec
from headgate.pipeline.dead_letter import DeadLetter
from headgate.tasks.dead_letters import DeadLetters, ensure_topic, producer_config

pytestmark = pytest.mark.kip(298, "error handling in Connect")

LETTER = DeadLetter(b"k", b"v", (("h", b"1"),), 5)


class Sender:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.futures: list[Future[Any]] = []
        self.failure: str | None = None
        self.full = self.closed = False

    def send(self, *record: Any) -> Future[Any]:
        if self.full:
            raise BufferError
        self.sent.append(record)
        self.futures.append(Future())
        return self.futures[-1]

    def flush(self, seconds: float) -> bool:
        return all(each.done() for each in self.futures)

    def close(self) -> None:
        self.closed = True
        for each in self.futures:
            if not each.done():
                each.set_exception(KafkaException(KafkaError(KafkaError._PURGE_QUEUE)))


@pytest.fixture
def sender() -> Sender:
    return Sender()


@pytest.fixture
def metrics() -> ErrorMetrics:
    return ErrorMetrics()


@pytest.fixture
def letters(sender: Sender, metrics: ErrorMetrics) -> DeadLetters:
    return DeadLetters("dead", sender, metrics)


def test_a_letter_is_counted_and_waited_for(letters: DeadLetters, sender: Sender, metrics: ErrorMetrics) -> None:
    done = letters.send(LETTER)
    assert sender.sent == [("dead", b"v", b"k", (("h", b"1"),), 5)]
    assert (done.done(), letters.flush(0)) == (False, False)
    sender.futures[0].set_result(7)
    assert (done.done(), letters.flush(0)) == (True, True)
    assert (metrics.dead_letters, metrics.dead_letter_failures) == (1, 0)


def test_a_letter_that_kafka_refuses_is_told_and_gone(
    letters: DeadLetters, sender: Sender, metrics: ErrorMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    done = letters.send(LETTER)
    sender.futures[0].set_exception(KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)))
    assert isinstance(done.exception(0), KafkaException)
    assert letters.flush(0)
    assert (metrics.dead_letters, metrics.dead_letter_failures) == (1, 1)
    (line,) = caplog.messages
    assert line.startswith("Could not produce message to dead letter queue. topic=dead: ")


def test_what_is_forgotten_at_the_end_is_no_failure(
    letters: DeadLetters, sender: Sender, metrics: ErrorMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    letters.send(LETTER)
    letters.close()
    assert (sender.closed, metrics.dead_letter_failures, caplog.messages) == (True, 0, [])


def test_a_producer_that_has_failed_fails_the_task(letters: DeadLetters, sender: Sender) -> None:
    sender.failure = "fenced"
    for attempt in (lambda: letters.send(LETTER), lambda: letters.flush(0)):
        with pytest.raises(ConnectError, match="The dead letter producer failed for good: fenced"):
            attempt()


def test_who_is_given_up_on_does_not_wait_for_room(letters: DeadLetters, sender: Sender) -> None:
    sender.full = True
    with pytest.raises(ConnectError, match="Given up on while the queue of dead letters was full"):
        letters.send(LETTER)


# --- its topic and its producer ---------------------------------------------------------------------------------------


class Topics:
    def __init__(self, exists: bool, error: Exception | None = None) -> None:
        self._exists = exists
        self._error = error
        self.made: list[NewTopic] = []

    def exists(self, topic: str) -> bool:
        return self._exists

    def create(self, *topics: NewTopic) -> list[str]:
        if self._error is not None:
            raise self._error
        self.made += topics
        return [each.name for each in topics]


@pytest.mark.parametrize(("exists", "made"), [(True, []), (False, [NewTopic("dead", 1, 3)])])
def test_the_topic_is_made_where_it_is_missing(exists: bool, made: list[NewTopic]) -> None:
    topics = Topics(exists)
    ensure_topic(topics, "dead", 3)
    assert topics.made == made


def test_a_topic_that_cannot_be_made_fails_the_task() -> None:
    refusal = TopicRefused("dead", KafkaError(KafkaError.INVALID_REPLICATION_FACTOR))
    said = r"^Could not initialize dead letter queue with topic=dead: .*errors\.deadletterqueue.*replication\.factor"
    with pytest.raises(ConnectError, match=said) as raised:
        ensure_topic(Topics(False, refusal), "dead", 3)
    assert raised.value.__cause__ is refusal


@pytest.mark.parametrize(
    ("given", "name"), [("connector-producer-orders-2", "connector-dlq-producer-orders-2"), ("mine", "mine")]
)
def test_its_producer_is_the_tasks_under_another_name(given: str, name: str) -> None:
    converter, task = PluginSpec(PluginRef("a", "B")), TaskId("orders", 2)
    chain = ChainSpec(task, ConnectorType.SOURCE, converter, converter, converter)
    producer = {"client.id": given, "acks": "1"}
    spec = TaskSpec(
        task, object, ConnectorType.SOURCE, "1", {}, {}, chain, TargetState.STARTED, producer=producer
    )  # fmt: skip
    assert producer_config(spec) == {"client.id": name, "acks": "1", "linger.ms": "5"}
