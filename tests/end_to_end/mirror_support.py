"""Topics that are copied, and what is really in them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Headers, headers_of

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
AS_IT_IS = {"key.converter": BYTES, "value.converter": BYTES, "header.converter": BYTES}
MIRROR = {"connector.class": "headgate.connectors.Mirror", "refresh.interval.ms": "500", **AS_IT_IS}


NOW = int(time.time()) * 1000
"""Brokers delete what is older than a week."""


class Seen(NamedTuple):
    """All of a message but its offset."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def partitions(bootstrap: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found = admin.list_topics(timeout=20).topics.get(topic)
    return len(found.partitions) if found else 0


def write(bootstrap: str, topic: str, messages: Iterable[Seen]) -> list[Seen]:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    sent = list(messages)
    for partition, key, value, timestamp, headers in sent:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
        producer.poll(0)
    assert producer.flush(30) == 0
    return sent


def seen(bootstrap: str, topic: str, seconds: float = 20.0) -> list[Seen]:
    """What readers of committed messages find there now, partition by partition."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "seen",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    reader = Consumer(settings)
    found: list[Seen] = []
    deadline = time.monotonic() + seconds
    try:
        left = partitions(bootstrap, topic)
        reader.assign([TopicPartition(topic, number, 0) for number in range(left)])
        while left:
            message = reader.poll(1.0)
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                left -= 1
                continue
            partition = message.partition()
            assert partition is not None
            found.append(Seen(partition, message.key(), message.value(), message.timestamp()[1], headers_of(message)))
        return sorted(found, key=lambda each: each.partition)
    finally:
        reader.close()


def some(count: int, partitions: int = 1, start: int = 0) -> list[Seen]:
    """Messages of all kinds: with and without keys, values, headers."""
    return [
        Seen(
            number % partitions,
            None if number % 3 == 0 else f"key {number}".encode() + b"\xff",
            None if number % 5 == 0 else f"value {number}".encode() + b"\xfe\x00",
            NOW + number,
            [("a", b"\xff"), ("a", None), ("b", b"")] if number % 7 == 0 else [],
        )
        for number in range(start, start + count)
    ]


def by_partition(messages: Iterable[Seen]) -> list[Seen]:
    return sorted(messages, key=lambda each: each.partition)
