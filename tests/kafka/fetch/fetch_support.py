"""Topics to be read twice: by fetches of ours, and by confluent-kafka's consumer, which knows what is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Native
from confluent_kafka.admin import AdminClient, NewTopic
from wire_support import ALL

from headgate.dev.broker import Broker
from headgate.kafka.fetch.fetcher import Fetcher
from headgate.kafka.messages import Messages
from headgate.model import TopicPartition

Rows = list[dict[str, Any]]
UNCOMMITTED, COMMITTED = "read_uncommitted", "read_committed"


@dataclass(frozen=True)
class Doors:
    """A broker, and the addresses where it lets nobody in who does not show something."""

    broker: Broker
    login: str
    """PLAIN and SCRAM."""
    tls: str
    """The certificate of `tests/test_clients.py`, on both sides."""


def create(broker: Broker, name: str, **config: str) -> TopicPartition:
    """A topic of one partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    named = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, 1, 1, config=named)])[name].result(10)
    return TopicPartition(name, 0)


def producer(broker: Broker, **settings: Any) -> Producer:
    """What is produced together comes in one batch."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 50, "log_level": 0, **named})


def produce(broker: Broker, where: TopicPartition, *values: bytes | None, **settings: Any) -> None:
    client = producer(broker, **settings)
    for value in values:
        client.produce(where.topic, value, partition=where.partition)
    assert client.flush(30) == 0


def settings_of(broker: Broker, isolation: str = UNCOMMITTED) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap, "isolation.level": isolation}


def fetched(
    broker: Broker, where: TopicPartition, start: int, end: int, isolation: str = UNCOMMITTED, **settings: str
) -> Rows:
    """What our fetches give of a range."""
    with Fetcher({**settings_of(broker, isolation), **settings}, 20.0) as fetcher:
        tables = [table for table, _ in fetcher.read(where, start, end, ALL)]
    return pa.concat_tables(tables).to_pylist()  # type: ignore[no-any-return]


def consumed(broker: Broker, where: TopicPartition, start: int, end: int, isolation: str = UNCOMMITTED) -> Rows:
    """What a consumer gives of it."""
    eof = {"group.id": "none", "enable.partition.eof": True, "log_level": 0, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings_of(broker, isolation), **eof})
    consumer.assign([Native(where.topic, where.partition, start)])
    found: list[Message] = []
    try:
        at = start
        while at < end:
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                assert error is None or error.code() == KafkaError._PARTITION_EOF
                offset = message.offset()
                assert offset is not None
                at = offset + (error is None)
                if error is None and offset < end:
                    found.append(message)
    finally:
        consumer.close()
    return Messages(found).table(ALL).to_pylist()  # type: ignore[no-any-return]


def end_of(broker: Broker, where: TopicPartition) -> int:
    consumer = Consumer({**settings_of(broker), "group.id": "none", "log_level": 0})
    try:
        return int(consumer.get_watermark_offsets(Native(where.topic, where.partition), timeout=10)[1])
    finally:
        consumer.close()


def delete_before(broker: Broker, where: TopicPartition, offset: int) -> None:
    gone = Native(where.topic, where.partition, offset)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([gone])[gone].result(10)
