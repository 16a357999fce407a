"""A consumer group's offsets in transactions with columns: committed with the records, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pyarrow as pa
import pytest
from checks import assert_output, assert_position
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.dev.broker import Broker
from headgate.kafka.native.column_producer import ColumnProducer
from headgate.producer import GroupFencedError, ProtocolBugError, TransactionalProducer
from headgate.producer.rows import RowBulk

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "consume, transform, produce")]

T = 30.0


class Copy:
    """A group that reads a topic, and the producer that commits how far it is."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.source, self.target, self.group = bootstrap, f"{name}-source", f"{name}-target", name
        self.open = ExitStack()
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for answer in admin.create_topics([NewTopic(each, 1, 1) for each in (self.source, self.target)]).values():
            answer.result(T)
        config = {"bootstrap.servers": bootstrap, "transactional.id": name}
        self.producer = TransactionalProducer(config, native=ColumnProducer)
        self.open.callback(self.producer.close, 5.0)
        self.producer.init(T)

    def consumer(self) -> Consumer:
        made = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group, "log_level": 0})
        self.open.callback(made.close)
        return made

    def send(self, value: bytes, offset: int, metadata: object) -> None:
        self.producer.begin()
        self.producer.send_all(RowBulk(self.target, pa.record_batch({"value": pa.array([value])})))
        self.producer.send_offsets([TopicPartition(self.source, 0, offset)], metadata, T)

    def check(self, values: list[bytes], offset: int) -> None:
        assert_output(self.bootstrap, self.target, values)
        assert_position(self.bootstrap, self.group, self.source, offset)


@pytest.fixture
def copy(broker: Broker, unique: Callable[[str], str]) -> Iterator[Copy]:
    made = Copy(broker.bootstrap, unique("consumed"))
    with made.open:
        yield made


def test_offsets_are_committed_with_the_records_and_aborted_with_them(copy: Copy) -> None:
    metadata = copy.consumer().consumer_group_metadata()
    copy.send(b"a", 7, metadata)
    copy.producer.commit(T)
    copy.check([b"a"], 7)
    copy.send(b"b", 9, metadata)
    copy.producer.abort(T)
    copy.check([b"a"], 7)
    copy.send(b"c", 2**40, metadata)
    copy.producer.commit(T)
    copy.check([b"a", b"c"], 2**40)


def test_offsets_of_a_member_that_left_are_refused(copy: Copy) -> None:
    member = copy.consumer()
    member.subscribe([copy.source])
    while not member.assignment():
        member.poll(0.1)
    metadata = member.consumer_group_metadata()
    member.unsubscribe()
    while member.assignment():
        member.poll(0.1)
    member.close()
    with pytest.raises(GroupFencedError):
        copy.send(b"a", 7, metadata)
    copy.producer.close(5.0)
    copy.check([], 0)


@pytest.mark.parametrize("metadata", [None, "text", b"nonsense"])
def test_metadata_that_is_none_is_a_bug_of_the_caller(copy: Copy, metadata: object) -> None:
    with pytest.raises((TypeError, ProtocolBugError), match=r"expected bytes|too short"):
        copy.send(b"a", 7, metadata)
