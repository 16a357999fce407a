"""The task's producer: what it is given arrives as it was, in order, or is refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.api import ConnectError
from headgate.dev.broker import Broker
from headgate.kafka.native import delivery as deliveries
from headgate.kafka.native.calls import Message
from headgate.kafka.native.delivery import Delivery, DeliveryFailed, Refused
from headgate.pipeline.batch import PRODUCED
from headgate.tasks.source.refusals import RecordRefused

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(broker: Broker, unique: Callable[[str], str]) -> str:
    return _create(broker, unique("delivery"))


def _create(broker: Broker, name: str, **config: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 3, 1, config=config)])[name].result(10)
    return name


@pytest.fixture
def small(broker: Broker, unique: Callable[[str], str]) -> str:
    """A topic that takes no batch of more than 1000 bytes."""
    return _create(broker, unique("small"), **{"max.message.bytes": "1000"})


def _fail(refused: Refused) -> None:
    """As a task does that tolerates nothing."""
    raise RecordRefused(refused)


@pytest.fixture
def delivery(broker: Broker) -> Iterator[Callable[..., Delivery]]:
    made: list[Delivery] = []

    def make(on_refused: Callable[[Refused], None] = _fail, **settings: str) -> Delivery:
        config = {"bootstrap.servers": broker.bootstrap, "acks": "all", "enable.idempotence": "true", **settings}
        made.append(Delivery(config, lambda: True, on_refused))
        return made[-1]

    yield make
    for each in made:
        each.close()


def _threads() -> int:
    """Of this process, librdkafka's among them."""
    return len(os.listdir("/proc/self/task"))


def _table(topic: str, rows: list[dict[str, Any]]) -> pa.Table:
    whole = [{"row": index, "topic": topic, **row} for index, row in enumerate(rows)]
    return pa.Table.from_pylist(whole, schema=PRODUCED)


def _read(broker: Broker, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    found: list[Any] = []
    while len(found) < count:
        got = consumer.consume(count - len(found), 10)
        ends = (
            [consumer.get_watermark_offsets(each, timeout=10)[1] for each in consumer.assignment()] if not got else []
        )
        assert got, (
            f"only {[message.value() for message in found]} of {count} records arrived; the partitions have {ends}"
        )
        found += [message for message in got if message.error() is None]
    consumer.close()
    return found


def test_values_keys_and_partitions_arrive_as_they_were(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    rows: list[dict[str, Any]] = [
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
    rows: list[dict[str, Any]] = [
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


# --- what Kafka refuses -----------------------------------------------------------------------------------------------


def test_a_record_that_is_refused_before_it_is_sent_is_an_error(topic: str, delivery: Callable[..., Delivery]) -> None:
    sender = delivery(**{"max.request.size": "2000"})
    with pytest.raises(RecordRefused, match=f"Message size too large, record of 5000 bytes for topic {topic}"):
        sender.send(_table(topic, [{"value": b"x" * 5000}]))


def test_a_record_that_the_broker_refuses_is_an_error(small: str, delivery: Callable[..., Delivery]) -> None:
    sender = delivery()
    reason = "Unrecoverable exception from producer send callback: Broker: Message size too large, record of 5001 bytes"
    with pytest.raises(ConnectError, match=f"{reason} for topic {small}"):
        sender.send(_table(small, [{"value": b"x" * 5000, "key": b"k"}]))


@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_only_what_is_too_large_itself_is_refused_and_its_neighbours_arrive_in_order(
    broker: Broker, small: str, delivery: Callable[..., Delivery], idempotent: str
) -> None:
    """librdkafka gives up on all records of a batch that is too large; Java's producer divides it."""
    large = {0, 77, 78, 499}
    rows = [
        {"value": b"%d," % number + b"x" * (3000 if number in large else 50), "key": b"k", "partition": number % 2}
        for number in range(500)
    ]
    refused: list[Refused] = []
    sender = delivery(refused.append, **{"enable.idempotence": idempotent})
    sender.send(_table(small, rows))
    assert sender.flush(30)
    assert sorted(each.message.number for each in refused) == sorted(large)
    assert {each.reason for each in refused} == {"Broker: Message size too large"}
    again = sender.count
    sender.send(_table(small, rows))  # it knows by now how much goes at once
    assert sender.flush(30)
    assert [each.message.number - again for each in refused[4:]] == sorted(large)
    by_partition: dict[int, list[int]] = {0: [], 1: []}
    for message in _read(broker, small, 2 * (500 - 4)):
        by_partition[message.partition()].append(int(message.value().split(b",")[0]))
    for partition, found in by_partition.items():
        assert found == 2 * [number for number in range(partition, 500, 2) if number not in large]


@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_a_topic_that_takes_little_is_never_sent_too_much_and_gets_everything_in_order(
    broker: Broker,
    small: str,
    delivery: Callable[..., Delivery],
    idempotent: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch that is refused is sent again, behind those that went after it; so there must be none."""
    returned: list[Message] = []
    header = {"key": "h", "value": b"x" * 90}  # they count, too
    sender = delivery(**{"enable.idempotence": idempotent, "linger.ms": "0"})
    monkeypatch.setattr(sender, "_returned", returned.append)
    for first in range(0, 400, 50):
        rows = [{"value": b"%d" % n, "partition": 0, "headers": [header]} for n in range(first, first + 50)]
        sender.send(_table(small, rows))
    assert sender.flush(30)
    assert returned == []
    assert [int(message.value()) for message in _read(broker, small, 400)] == list(range(400))


def test_a_client_that_rests_has_no_thread_and_no_socket_until_something_is_sent(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    sender = delivery()
    sender.send(_table(topic, [{"value": b"1", "partition": 0}]))
    assert sender.flush(10)
    assert sender._traced.figures().connections > 0
    before = _threads()
    sender.rest()
    assert _threads() < before
    assert (sender.unanswered, sender.flush(1), sender._traced.figures().connections) == (0, True, 0)
    sender.rest()
    sender.send(_table(topic, [{"value": b"2", "partition": 0}]))
    assert sender.flush(10)
    assert sender.count == 2
    assert [message.value() for message in _read(broker, topic, 2)] == [b"1", b"2"]


def test_a_client_with_something_unanswered_does_not_rest(unused_tcp_port: int) -> None:
    with closing(Delivery({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}, lambda: True, _fail)) as sender:
        sender.send(_table("anywhere", [{"value": b"1"}]))
        sender.rest()
        assert sender.unanswered == 1


def test_a_client_that_is_closed_is_not_made_again(topic: str, delivery: Callable[..., Delivery]) -> None:
    sender = delivery()
    sender.close()
    with pytest.raises(DeliveryFailed, match="closed"):
        sender.send(_table(topic, [{"value": b"1"}]))


def test_a_topic_that_its_first_record_makes_is_asked_when_it_is_there(unique: Callable[[str], str]) -> None:
    topic = unique("made")
    with Broker(properties={"message.max.bytes": "1000"}) as broker:
        sender = Delivery({"bootstrap.servers": broker.bootstrap, "linger.ms": "0"}, lambda: True, _fail)
        sender.send(_table(topic, [{"value": b"%d" % n + b"x" * 90, "partition": 0} for n in range(300)]))
        assert sender.flush(30)
        sender.close()
        found = [message.value().rstrip(b"x") for message in _read(broker, topic, 300)]
    assert found == [b"%d" % n for n in range(300)]


def test_a_topic_that_may_not_be_asked_gets_everything_in_order(
    broker: Broker, unique: Callable[[str], str], delivery: Callable[..., Delivery], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once, the first large batch would be refused, and the small one behind it taken."""
    monkeypatch.setattr(deliveries, "settings_of", lambda *_: KafkaError.TOPIC_AUTHORIZATION_FAILED)
    topic = _create(broker, unique("silent"), **{"max.message.bytes": "100000"})
    sender = delivery(**{"linger.ms": "500"})
    sender.send(_table(topic, [{"value": b"%d," % n + b"x" * 1000, "partition": 0} for n in range(1040)]))
    assert sender.flush(30)
    assert [int(message.value().split(b",")[0]) for message in _read(broker, topic, 1040)] == list(range(1040))


def test_a_refused_record_is_told_with_all_that_it_has(small: str, delivery: Callable[..., Delivery]) -> None:
    refused: list[Refused] = []
    sender = delivery(refused.append)
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}, {"key": "ü", "value": b""}]
    large = b"x" * 2000
    row = {"value": large, "key": b"", "timestamp": 1_700_000_000_123, "headers": headers, "partition": 2}
    sender.send(_table(small, [{"value": b"a"}, row, {"value": b"b"}]))
    assert sender.flush(10)
    sender.send(_table(small, [{"value": None, "key": large}]))
    assert sender.flush(10)
    first, second = (each.message for each in refused)
    assert (first.number, first.topic, first.partition) == (1, small, 2)
    assert (first.key, first.value, first.timestamp) == (b"", large, 1_700_000_000_123)
    assert first.headers == (("h", b"1"), ("h", None), ("ü", b""))
    assert (second.number, second.key, second.value, second.headers) == (3, large, None, ())


def test_what_is_refused_before_it_is_sent_does_not_hold_up_the_rest(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    refused: list[Refused] = []
    sender = delivery(refused.append, **{"max.request.size": "2000"})
    large = b"x" * 5000
    sender.send(_table(topic, [{"value": b"a", "partition": 0}, {"value": large}, {"value": b"b", "partition": 0}]))
    sender.send(_table(topic, [{"value": large, "timestamp": 5, "headers": [{"key": "h", "value": b"1"}]}]))
    sender.send(_table(topic, [{"value": b"c", "partition": 99}]))
    sender.send(_table("no topic!", [{"value": b"d", "key": b"k"}]))
    sender.send(_table("", [{"value": b"e", "key": b"k"}]))
    sender.send(_table(topic, [{"value": b"f", "partition": 0}]))
    assert sender.flush(30)
    assert [message.value() for message in _read(broker, topic, 3)] == [b"a", b"b", b"f"]
    # Of a topic that cannot be, Kafka's client hears either first: that the name is wrong, or that there is none.
    words = {"Local: Unknown topic": "Broker: Invalid topic"}
    found = {each.message.number: (each.message.value, words.get(each.reason, each.reason)) for each in refused}
    assert found == {
        1: (large, "Broker: Message size too large"),
        3: (large, "Broker: Message size too large"),
        4: (b"c", "Local: Unknown partition"),
        5: (b"d", "Broker: Invalid topic"),
        6: (b"e", "Broker: Invalid topic"),
    }
    with_header = next(each.message for each in refused if each.message.number == 3)
    assert (with_header.headers, with_header.timestamp) == ((("h", b"1"),), 5)


def test_a_partition_that_is_not_there_holds_up_nothing_once_the_topic_is_known(
    broker: Broker, topic: str, delivery: Callable[..., Delivery]
) -> None:
    refused: list[Refused] = []
    sender = delivery(refused.append)
    sender.send(_table(topic, [{"value": b"known", "partition": 0}]))
    assert sender.flush(10)
    wrong = [{"value": b"%d" % n, "partition": partition} for n, partition in enumerate([0, 99, 1, 77, 0, 99, 1])]
    sender.send(_table(topic, wrong))
    assert sender.flush(10)
    assert sorted((each.message.number, each.message.partition) for each in refused) == [(2, 99), (4, 77), (6, 99)]
    found = [(message.partition(), message.value()) for message in _read(broker, topic, 5)]
    assert [value for partition, value in found if partition == 0] == [b"known", b"0", b"4"]
    assert [value for partition, value in found if partition == 1] == [b"2", b"6"]


def test_rows_with_and_without_a_partition_stay_in_order(
    broker: Broker, unique: Callable[[str], str], delivery: Callable[..., Delivery]
) -> None:
    name = unique("single")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)
    sender = delivery(**{"queue.buffering.max.messages": "7"})
    sender.send(_table(name, [{"value": b"%d" % n, "partition": 0 if n % 3 else None} for n in range(50)]))
    assert sender.flush(10)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "t"})
    consumer.assign([TopicPartition(name, 0, 0)])
    assert [message.value() for message in consumer.consume(50, 10)] == [b"%d" % n for n in range(50)]
    consumer.close()


def test_a_topic_that_is_not_there_and_is_not_made(unique: Callable[[str], str]) -> None:
    refused: list[Refused] = []
    with Broker(properties={"auto.create.topics.enable": "false"}) as broker:
        config = {"bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": "1000"}
        sender = Delivery(config, lambda: True, refused.append)
        sender.send(_table("nowhere", [{"value": b"a"}, {"value": b"b"}]))
        assert sender.flush(20)
        sender.close()
    assert [each.message.value for each in refused] == [b"a", b"b"]
    assert all("Unknown topic" in each.reason for each in refused)


def test_what_on_refused_raises_comes_out_of_the_call(small: str, delivery: Callable[..., Delivery]) -> None:
    def enough(refused: Refused) -> None:
        raise ZeroDivisionError(refused.message.number)

    sender = delivery(enough)
    with pytest.raises(ZeroDivisionError, match="0"):
        sender.send(_table(small, [{"value": b"x" * 2000, "partition": 0}, {"value": b"x" * 2000, "partition": 0}]))


def test_what_does_not_arrive_is_not_said_to_have(unused_tcp_port: int) -> None:
    sender = Delivery({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}, lambda: True, _fail)
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
