"""Whole columns in transactions: what was sent is committed or it is not, and the errors are those of every other
producer of ours. That one's cases, with this native producer below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.dev.broker import Broker
from headgate.kafka.native.column_producer import ColumnProducer
from headgate.pipeline.batch import PRODUCED
from headgate.producer import (
    CommitFailedError,
    FailureType,
    InvalidConfigurationError,
    ProducerClosedError,
    ProducerFencedError,
    ProducerStateError,
    TransactionAbortableError,
    TransactionalProducer,
)
from headgate.producer.rows import RowBulk

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "exactly-once source")]

T = 30.0


class Line:
    """A topic and the producers of one transactional id."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.open = ExitStack()

    def start(self, **settings: Any) -> TransactionalProducer:
        more = {key.replace("_", "."): value for key, value in settings.items()}
        config = {"bootstrap.servers": self.bootstrap, "transactional.id": self.topic, "linger.ms": 5, **more}
        producer = TransactionalProducer(config, native=ColumnProducer)
        self.open.callback(producer.close, 5.0)
        producer.init(T)
        return producer

    def rows(self, values: Sequence[bytes | None], topic: str | None = None, **columns: Any) -> RowBulk:
        table = pa.Table.from_pylist(
            [
                {"row": row, "topic": self.topic, "value": value, **{name: each[row] for name, each in columns.items()}}
                for row, value in enumerate(values)
            ],
            schema=PRODUCED,
        )
        (batch,) = table.combine_chunks().to_batches()
        return RowBulk(self.topic if topic is None else topic, batch)

    def move(self, producer: TransactionalProducer, values: Sequence[bytes | None]) -> None:
        producer.begin()
        producer.send_all(self.rows(values))
        producer.commit(T)

    def read(self) -> list[Any]:
        """What a reader of committed records sees."""
        reader = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "t",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        reader.assign([TopicPartition(self.topic, 0, 0)])
        found: list[Any] = []
        try:
            while True:
                message = reader.poll(T)
                assert message is not None
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF
                    return found
                found.append(message)
        finally:
            reader.close()

    def values(self) -> list[bytes | None]:
        return [message.value() for message in self.read()]


@pytest.fixture
def line(broker: Broker, unique: Callable[[str], str]) -> Iterator[Line]:
    made = Line(broker.bootstrap, unique("columns"))
    _create(broker, made.topic)
    with made.open:
        yield made


@pytest.fixture
def small(broker: Broker, unique: Callable[[str], str]) -> Iterator[Line]:
    """Of a topic that takes no more than 2000 bytes."""
    made = Line(broker.bootstrap, unique("small"))
    _create(broker, made.topic, **{"max.message.bytes": "2000"})
    with made.open:
        yield made


def _create(broker: Broker, name: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(20)


def _send_and_commit(producer: TransactionalProducer, bulk: RowBulk) -> None:
    """Where either may notice."""
    producer.send_all(bulk)
    producer.commit(T)


def test_columns_are_committed_as_they_were_and_in_order(line: Line) -> None:
    values = [b"%d" % number for number in range(25_000)]
    line.move(line.start(), [*values, b"", None])
    assert line.values() == [*values, b"", None]


def test_timestamps_headers_and_keys_arrive_too(line: Line) -> None:
    producer = line.start()
    producer.begin()
    headers = [[{"key": "h", "value": b"1"}], None]
    producer.send_all(line.rows([b"a", b"b"], key=[b"k", None], timestamp=[5, 6], headers=headers))
    producer.send(line.topic, None, key=b"alone")
    producer.commit(T)
    found = [(each.key(), each.value(), each.timestamp()[1], each.headers()) for each in line.read()[:2]]
    assert found == [(b"k", b"a", 5, [("h", b"1")]), (None, b"b", 6, None)]
    assert [(each.key(), each.value()) for each in line.read()[2:]] == [(b"alone", None)]


def test_what_is_aborted_is_never_seen(line: Line) -> None:
    producer = line.start(linger_ms=10_000)
    producer.begin()
    producer.send_all(line.rows([b"dropped"] * 1000))
    producer.abort(T)
    line.move(producer, [b"kept"])
    assert line.values() == [b"kept"]


def test_a_row_that_the_library_refuses_costs_the_transaction(line: Line) -> None:
    producer = line.start()
    producer.begin()
    with pytest.raises(TransactionAbortableError) as caught:
        producer.send_all(line.rows([b"a", b"x" * 2_000_000, b"b"]))
    assert (caught.value.code, caught.value.failure_type) == (10, FailureType.MESSAGE_REJECTED)
    assert caught.value.failed_records.first[0].topic == line.topic
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    line.move(producer, [b"next"])
    assert line.values() == [b"next"]


def test_a_row_that_the_broker_refuses_costs_the_transaction_and_the_very_next_one_works(small: Line) -> None:
    producer = small.start()
    producer.begin()
    producer.send_all(small.rows([b"x" * 5000], key=[b"k"]))
    with pytest.raises(CommitFailedError) as caught:
        producer.commit(T)
    assert (caught.value.code, caught.value.failed_records.count) == (10, 1)
    assert caught.value.failed_records.first[0].key_hash is not None
    producer.abort(T)
    small.move(producer, [b"next"])
    assert small.values() == [b"next"]


@pytest.mark.parametrize("topic", ["no such/topic!", ""], ids=["invalid", "empty"])
def test_rows_for_nowhere_cost_the_transaction(line: Line, topic: str) -> None:
    producer = line.start()
    producer.begin()
    producer.send(line.topic, b"with them")
    bulk = line.rows([b"a"], topic)
    with pytest.raises(TransactionAbortableError):
        _send_and_commit(producer, bulk)
    producer.abort(T)
    line.move(producer, [b"next"])
    assert line.values() == [b"next"]


def test_a_full_queue_makes_the_sender_wait(line: Line) -> None:
    producer = line.start(queue_buffering_max_messages=100)
    values = [b"%d" % number for number in range(5_000)]
    line.move(producer, values)
    assert line.values() == values


def test_a_queue_that_stays_full_costs_the_transaction(line: Line) -> None:
    producer = line.start(queue_buffering_max_messages=100, linger_ms=50_000, max_block_ms=300)
    producer.begin()
    with pytest.raises(TransactionAbortableError, match="no room in the queue"):
        producer.send_all(line.rows([b"x"] * 101))
    producer.abort(T)
    assert line.values() == []


def test_a_newer_owner_of_the_id_ends_it(line: Line) -> None:
    producer = line.start()
    line.move(producer, [b"a"])
    newer = line.start()
    producer.begin()
    with pytest.raises(ProducerFencedError):
        _send_and_commit(producer, line.rows([b"b"]))
    line.move(newer, [b"c"])
    assert line.values() == [b"a", b"c"]


def test_rows_have_no_place_outside_a_transaction(line: Line) -> None:
    producer = line.start()
    with pytest.raises(ProducerStateError):
        producer.send_all(line.rows([b"a"]))
    producer.close(T)
    with pytest.raises(ProducerClosedError):
        producer.send_all(line.rows([b"a"]))


def test_rows_have_no_place_without_transactions(line: Line) -> None:
    with (
        TransactionalProducer({"bootstrap.servers": line.bootstrap}) as plain,
        pytest.raises(ProducerStateError, match="for transactions"),
    ):
        plain.send_all(line.rows([b"a"]))


def test_settings_that_cannot_be_are_refused_at_once(line: Line) -> None:
    with pytest.raises(InvalidConfigurationError):
        TransactionalProducer(
            {"bootstrap.servers": line.bootstrap, "transactional.id": "t", "acks": "1"}, native=ColumnProducer
        )
