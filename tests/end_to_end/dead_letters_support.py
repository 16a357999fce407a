"""Dead letter queues, as tests look into them."""

from __future__ import annotations

import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from harness import Client, await_, headers_of

from headgate.dev.broker import Broker

PREFIX = "__connect.errors."


class Dead:
    """A dead letter queue, as somebody looking for lost records reads it."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.topic = topic
        self._consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "log_level": 0})
        self._found: list[Message] = []
        self._assigned = False

    @property
    def config(self) -> dict[str, str]:
        return {
            "errors.deadletterqueue.topic.name": self.topic,
            "errors.deadletterqueue.context.headers.enable": "true",
        }

    def partitions(self) -> int:
        return len(self._consumer.list_topics(timeout=10).topics[self.topic].partitions)

    def letters(self) -> list[Message]:
        """All so far."""
        if not self._assigned:
            if self.topic not in self._consumer.list_topics(timeout=10).topics:
                return []
            self._consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            self._assigned = True
        self._found += [each for each in self._consumer.consume(1000, 0.1) if each.error() is None]
        return self._found

    def one(self) -> Message:
        await_(self.letters, "a dead letter")
        time.sleep(0.3)
        assert len(self.letters()) == 1
        return self.letters()[0]

    def close(self) -> None:
        self._consumer.close()


def send(producer: Producer, topic: str, *values: bytes) -> None:
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def send_backlog(producer: Producer, topic: str) -> tuple[int, int]:
    """How many, and which of them is no JSON."""
    count, bad = 41_000, 30_000
    for number in range(count):
        producer.produce(topic, b"{" if number == bad else b"%d" % number)
    assert producer.flush(30) == 0
    return count, bad


def committed(client: Client, name: str) -> int:
    return sum(each["offset"]["kafka_offset"] for each in client.offsets(name))


def metric(client: Client, name: str, what: str) -> float:
    wanted = f'kafka_connect_task_error_{what}{{connector="{name}",task="0"}} '
    text = client.http.get("/metrics").text
    return next((float(line.removeprefix(wanted)) for line in text.splitlines() if line.startswith(wanted)), 0.0)


def header(letter: Message, name: str) -> str:
    value = dict(headers_of(letter))[PREFIX + name]
    assert isinstance(value, bytes)
    return value.decode()
