"""The task's producer: what it is given arrives as it was, in order, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.api import ConnectError
from headgate.dev.broker import Broker
from headgate.pipeline.batch import PRODUCED
from headgate.spark.delivery import Delivery

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(broker: Broker, unique: Callable[[str], str]) -> str:
    return _create(broker, unique("delivery"))


def _create(broker: Broker, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(10)
    return name


@pytest.fixture
def delivery(broker: Broker) -> Iterator[Callable[..., Delivery]]:
    made: list[Delivery] = []

    def make(**settings: str) -> Delivery:
        config = {"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": "true", **settings}
        made.append(Delivery(config, lambda: True))
        return made[-1]

    yield make
    for each in made:
        each.close()


def _table(topic: str, rows: list[dict[str, Any]]) -> pa.Table:
    whole = [{"row": index, "topic": topic, **row} for index, row in enumerate(rows)]
    return pa.Table.from_pylist(whole, schema=PRODUCED)


def _read(broker: Broker, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    found: list[Any] = []
    while len(found) < count:
        got = consumer.consume(count - len(found), 10)
        assert got, f"only {len(found)} of {count} records arrived"
        found += [message for message in got if message.error() is None]
    consumer.close()
    return found


def test_values_keys_and_partitions_arrive_as_they_were(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    rows = [
        {"value": b"plain", "key": None, "partition": 2},
        {"value": b"", "key": b"", "partition": 2},
        {"value": None, "key": b"tombstone", "partition": 2},
        {"value": b"\x00\xff", "key": b"bytes", "partition": 2},
    ]
    sender = delivery()
    sender.send(_table(topic, rows))
    assert sender.flush(10)
    found = [(message.value(), message.key(), message.partition()) for message in _read(broker, topic, 4)]
    assert found == [(row["value"], row["key"], row["partition"]) for row in rows]


def test_a_column_of_empty_values_is_not_a_column_of_tombstones(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    empty = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(bytes(12)), pa.py_buffer(b"")])
    sender = delivery()
    sender.send(pa.table({"topic": [topic] * 2, "value": empty}))
    assert sender.flush(10)
    assert [message.value() for message in _read(broker, topic, 2)] == [b"", b""]


def test_timestamps_and_headers_arrive_as_they_were(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "ü", "value": b""}]
    rows = [
        {"value": b"a", "key": b"k", "timestamp": 1_700_000_000_123, "headers": headers, "partition": 0},
        {"value": None, "timestamp": None, "headers": None, "partition": 0},
        {"value": b"", "timestamp": 5, "headers": [], "partition": 0},
    ]
    sender = delivery()
    sender.send(_table(topic, rows))
    assert sender.flush(10)
    first, second, third = _read(broker, topic, 3)
    assert (first.value(), first.key(), first.timestamp()[1]) == (b"a", b"k", 1_700_000_000_123)
    assert first.headers() == [("h", b"1"), ("h", None), ("ü", b"")]
    assert (second.value(), second.key(), second.headers()) == (None, None, None)
    assert second.timestamp()[1] > 1_700_000_000_123
    assert (third.value(), third.timestamp()[1]) == (b"", 5)


def test_a_key_goes_to_the_partition_that_java_chooses(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    sender = delivery()
    sender.send(_table(topic, [{"value": key, "key": key} for key in (b"a", b"b", b"c", b"order-17")]))
    assert sender.flush(10)
    found = {message.key(): message.partition() for message in _read(broker, topic, 4)}
    # murmur2, as org.apache.kafka.clients.producer.internals.BuiltInPartitioner.
    assert found == {key: _murmur2(key) % 3 for key in found}


def _murmur2(data: bytes) -> int:
    """Kafka's hash, written down once more, to compare with."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    for start in range(0, len(data) & ~3, 4):
        k = int.from_bytes(data[start : start + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ (k >> 24)) * m & mask)
    rest = data[len(data) & ~3 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    return (h ^ (h >> 15)) & 0x7FFFFFFF


def test_a_full_queue_is_waited_for_and_order_is_kept(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    sender = delivery(**{"queue.buffering.max.messages": "2000"})
    count = 30_000
    sender.send(_table(topic, [{"value": str(number).encode(), "partition": 1} for number in range(count)]))
    assert sender.flush(30)
    assert [int(message.value()) for message in _read(broker, topic, count)] == list(range(count))


def test_slices_of_a_column_and_several_topics_in_one_table(
    broker: Broker, topic: str, delivery: Callable[..., Delivery], unique: Callable[[str], str]
) -> None:
    other = _create(broker, unique("other"))
    rows = [
        {"row": number, "topic": other if number % 3 == 0 else topic, "value": b"%d" % number, "partition": 0}
        for number in range(12)
    ]
    sender = delivery()
    sender.send(pa.Table.from_pylist(rows, schema=PRODUCED).slice(3, 6))
    assert sender.flush(10)
    assert [int(message.value()) for message in _read(broker, topic, 4)] == [4, 5, 7, 8]
    assert [int(message.value()) for message in _read(broker, other, 2)] == [3, 6]


def test_a_record_that_kafka_refuses_is_an_error(topic: str, delivery: Callable[..., Delivery]) -> None:
    sender = delivery(**{"max.request.size": "2000"})
    with pytest.raises(ConnectError, match=topic):  # by the library itself, before it is sent
        sender.send(_table(topic, [{"value": b"x" * 5000}]))


def test_what_does_not_arrive_is_not_said_to_have(unused_tcp_port: int) -> None:
    sender = Delivery({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}, lambda: True)
    sender.send(_table("t", [{"value": b"x"}]))
    assert not sender.flush(0.5)
    assert sender.outstanding == 1
    sender.close()
    assert sender.outstanding == 0
    sender.close()


@pytest.fixture
def unused_tcp_port() -> int:
    from headgate.dev.ports import pick_free

    return pick_free(1)[0]
