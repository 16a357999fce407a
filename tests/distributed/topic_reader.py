"""Topics as any other program sees them: made, and read by a plain consumer."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient


@dataclass(frozen=True, slots=True)
class TopicRecord:
    partition: int
    offset: int
    key: str
    value: Any
    """Parsed JSON; None for a tombstone."""
    timestamp: int
    """Milliseconds, by the clock of who wrote it."""


def read_topic(bootstrap: str, topic: str, seconds: float = 20.0) -> list[TopicRecord]:
    """All that is in it now; what is of one partition is in its order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-of-{topic}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(topic, seconds).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        found: list[TopicRecord] = []
        left = set(partitions)
        deadline = time.monotonic() + seconds
        while left:
            assert time.monotonic() < deadline, f"partitions {left} of {topic} were not read in {seconds} s"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(message.partition())
                continue
            partition, offset, key, value = message.partition(), message.offset(), message.key(), message.value()
            assert partition is not None
            assert offset is not None
            found.append(
                TopicRecord(
                    partition,
                    offset,
                    (key or b"").decode(),
                    None if value is None else json.loads(value),
                    message.timestamp()[1],
                )
            )
        return found
    finally:
        consumer.close()


def transactions(bootstrap: str) -> dict[str, str]:
    """By transactional id: the state of its last transaction."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        return {each.transactional_id: each.state.value for some in admin.list_transactions().values() for each in some}
    finally:
        admin.close()


def create_topic(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> None:
    """Returns when it is there."""
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(20)


def about(records: list[TopicRecord], name: str) -> list[TopicRecord]:
    """Those of one connector, by the end of their keys: `connector-x`, `task-x-0`, `status-task-x-0`."""
    endings = (name, *(f"{name}-{number}" for number in range(10)))
    return [record for record in records if record.key.endswith(tuple(f"-{ending}" for ending in endings))]
