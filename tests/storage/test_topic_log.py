from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.dev.broker import Broker
from headgate.runtime.ports import KafkaAway
from headgate.storage.topic_log import LogRecord, ReadTimeout, TopicGone, TopicLog
from headgate.storage.topic_writer import TopicWriter, WriteFailed

Eventually = Callable[..., None]
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}  # nothing listens there


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def clients(broker: Broker) -> dict[str, str]:
    # A worker's keys come along, as they do in a real worker: they must not matter.
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "connect",
        "session.timeout.ms": "10000",
        "key.converter": "x",
        "config.storage.topic": "x",
    }


def made(broker: Broker, name: str, partitions: int = 1) -> str:
    wanted = NewTopic(name, partitions, 1, config={"cleanup.policy": "compact"})
    admin = admin_of(broker)  # kept until the answer is there
    admin.create_topics([wanted])[name].result(30)
    return name


class Reader:
    """A log and what it has told."""

    def __init__(self, broker: Broker, topic: str, **options: Any) -> None:
        self.records: list[LogRecord] = []
        self.log = TopicLog(topic, clients(broker), admin_of(broker), **options)

    def start(self, timeout: float = 30.0) -> Reader:
        self.log.start(self.records.append, timeout)
        return self

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]


@pytest.fixture
def topic(broker: Broker, unique: Callable[[str], str]) -> str:
    return made(broker, unique("log"))


@pytest.fixture
def reader(broker: Broker, topic: str) -> Iterator[Reader]:
    reader = Reader(broker, topic).start()
    yield reader
    reader.log.close()


@pytest.fixture
def writer(broker: Broker, topic: str) -> Iterator[TopicWriter]:
    writer = TopicWriter(topic, clients(broker))
    yield writer
    writer.close()


@pytest.mark.broker
class TestLog:
    def test_what_was_written_is_there_after_reading_to_the_end(self, reader: Reader, writer: TopicWriter) -> None:
        assert reader.records == []
        for number in range(20):
            writer.write([(b"key", b"%d" % number)], 10)
            reader.log.read_to_end(10)
            assert reader.records[-1][:4] == (b"key", b"%d" % number, 0, number)
        assert reader.records[-1].timestamp > 1_600_000_000_000

    def test_two_logs_of_a_topic_see_the_same(
        self, broker: Broker, topic: str, reader: Reader, writer: TopicWriter, eventually: Eventually
    ) -> None:
        writer.write([(b"a", b"1"), (b"b", None)], 10)
        other = Reader(broker, topic).start()
        assert other.values == [b"1", None]
        other_writer = TopicWriter(topic, clients(broker))
        other_writer.write([(b"c", b"2")], 10)
        eventually(lambda: reader.values == [b"1", None, b"2"])
        eventually(lambda: other.records == reader.records)
        other.log.close()
        other_writer.close()

    def test_a_thousand_records_are_read_to_the_end_quickly(self, broker: Broker, unique: Callable[[str], str]) -> None:
        topic = made(broker, unique("many"), partitions=5)
        writer = TopicWriter(topic, clients(broker))
        began = time.monotonic()
        writer.write([(b"key-%d" % (number % 100), b"%d" % number) for number in range(1000)], 20)
        assert time.monotonic() - began < 10
        began = time.monotonic()
        reader = Reader(broker, topic).start()
        assert time.monotonic() - began < 5
        assert sorted(reader.values, key=lambda value: int(value or 0)) == [b"%d" % number for number in range(1000)]
        assert len({record.partition for record in reader.records}) == 5
        by_key: dict[bytes | None, list[int]] = {}
        for record in reader.records:
            by_key.setdefault(record.key, []).append(int(record.value or 0))
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
        began = time.monotonic()
        for _ in range(10):
            reader.log.read_to_end(10)
        assert time.monotonic() - began < 2
        reader.log.close()
        writer.close()

    def test_keys_go_where_javas_producer_puts_them(self, broker: Broker, unique: Callable[[str], str]) -> None:
        """murmur2 of the key's bytes; the numbers are those of Apache's own tests."""
        hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
        topic = made(broker, unique("partitions"), partitions=7)
        writer = TopicWriter(topic, clients(broker))
        writer.write([(key, b"") for key in hashes], 10)
        reader = Reader(broker, topic).start()
        found = {record.key: record.partition for record in reader.records}
        assert found == {key: (value & 0x7FFFFFFF) % 7 for key, value in hashes.items()}
        reader.log.close()
        writer.close()

    def test_a_callback_that_raises_ends_nothing(
        self, broker: Broker, topic: str, writer: TopicWriter, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[bytes | None] = []

        def fussy(record: LogRecord) -> None:
            if record.value == b"bad":
                raise ValueError("fussy")
            seen.append(record.value)

        log = TopicLog(topic, clients(broker), admin_of(broker))
        writer.write([(b"k", b"bad"), (b"k", b"good")], 10)
        with caplog.at_level(logging.ERROR, logger="headgate"):
            log.start(fussy, 30)
        assert seen == [b"good"]
        assert "fussy" in caplog.text
        log.close()

    def test_a_callback_that_would_wait_for_itself_is_told_so(
        self, broker: Broker, topic: str, writer: TopicWriter
    ) -> None:
        raised: list[BaseException] = []

        def waiting(record: LogRecord) -> None:
            try:
                log.read_to_end(10)
            except RuntimeError as error:
                raised.append(error)

        writer.write([(b"k", b"v")], 10)
        log = TopicLog(topic, clients(broker), admin_of(broker))
        log.start(waiting, 30)
        assert "would wait for itself" in str(raised[0])
        log.close()

    def test_nothing_is_told_after_closing(self, reader: Reader, writer: TopicWriter) -> None:
        reader.log.close()
        reader.log.close()
        writer.write([(b"k", b"v")], 10)
        time.sleep(0.3)
        assert reader.records == []
        with pytest.raises(ReadTimeout, match="is closed"):
            reader.log.read_to_end(5)
        assert not [thread for thread in threading.enumerate() if thread.name == f"log-{reader.log.topic}"]

    def test_it_joins_no_group(self, broker: Broker, topic: str) -> None:
        options = {**clients(broker), "group.id": "a-group-that-nobody-may-see"}
        log = TopicLog(topic, options, admin_of(broker))
        log.start(lambda record: None, 30)
        admin = admin_of(broker)
        groups = admin.list_consumer_groups(request_timeout=10).result(11)
        assert "a-group-that-nobody-may-see" not in [group.group_id for group in groups.valid]
        log.close()

    def test_a_topic_that_does_not_exist_is_not_made_but_waited_for(
        self, broker: Broker, unique: Callable[[str], str]
    ) -> None:
        name = unique("missing")
        with pytest.raises(ReadTimeout, match=f"Topic {name} was not found within 1 s"):
            Reader(broker, name).start(1)
        assert name not in admin_of(broker).list_topics(timeout=10).topics
        late = threading.Timer(0.5, lambda: made(broker, name))
        late.start()
        Reader(broker, name).start(20).log.close()
        late.join()

    @pytest.mark.parametrize("seen", [True, False])
    def test_a_topic_that_was_deleted_is_not_waited_for_and_read_anew_when_it_is_back(
        self, broker: Broker, topic: str, reader: Reader, writer: TopicWriter, eventually: Eventually, seen: bool
    ) -> None:
        """Also if nobody has seen that it was away, if it is shorter then."""
        writer.write([(b"k", b"old"), (b"k", b"old")], 10)
        reader.log.read_to_end(10)
        admin = admin_of(broker)
        admin.delete_topics([topic])[topic].result(30)
        eventually(lambda: topic not in admin.list_topics(timeout=10).topics)

        def refused() -> bool:
            """Its leader may answer for a moment after the topic is in no list any more."""
            began = time.monotonic()
            try:
                reader.log.read_to_end(30, at_once=True)
                return False
            except TopicGone as error:
                told = str(error)
            assert told.startswith(f"Topic {topic} is not there any more")
            assert time.monotonic() - began < 5
            return True

        if seen:
            eventually(refused)
            with pytest.raises(ReadTimeout, match="within 1 s"):
                reader.log.read_to_end(1)
            assert topic not in admin.list_topics(timeout=10).topics
        made(broker, topic)
        late = TopicWriter(topic, clients(broker))
        new = [b"new"] * (2 if seen else 1)
        late.write([(b"k", value) for value in new], 20)
        reader.log.read_to_end(20, at_once=True)
        assert reader.values == [b"old", b"old", *new]
        late.close()


@pytest.mark.broker
@pytest.mark.kip(618, "internal topics are read with read_committed")
class TestTransactions:
    @pytest.fixture
    def transactional(self, broker: Broker, unique: Callable[[str], str]) -> Producer:
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": unique("id"), "log_level": 0}
        producer = Producer(settings)
        producer.init_transactions(30)
        return producer

    @pytest.fixture
    def committed(self, broker: Broker, topic: str) -> Iterator[Reader]:
        reader = Reader(broker, topic, read_committed=True).start()
        yield reader
        reader.log.close()

    def test_control_records_at_the_end_are_passed(
        self, topic: str, reader: Reader, committed: Reader, transactional: Producer
    ) -> None:
        for number in range(3):
            transactional.begin_transaction()
            transactional.produce(topic, b"%d" % number, b"k")
            transactional.commit_transaction(30)
            began = time.monotonic()
            committed.log.read_to_end(10)
            assert time.monotonic() - began < 3
            assert committed.values[-1] == b"%d" % number
        reader.log.read_to_end(10)
        assert reader.values == committed.values
        assert [record.offset for record in committed.records] == [0, 2, 4]

    def test_aborted_records_are_not_seen(
        self, broker: Broker, topic: str, reader: Reader, committed: Reader, transactional: Producer
    ) -> None:
        transactional.begin_transaction()
        transactional.produce(topic, b"aborted", b"k")
        transactional.flush(10)
        transactional.abort_transaction(30)
        committed.log.read_to_end(10)
        reader.log.read_to_end(10)
        assert (committed.values, reader.values) == ([], [b"aborted"])
        from_the_start = Reader(broker, topic, read_committed=True).start()
        assert from_the_start.values == []
        from_the_start.log.close()

    def test_the_end_is_behind_open_transactions(
        self, topic: str, reader: Reader, committed: Reader, writer: TopicWriter, transactional: Producer
    ) -> None:
        transactional.begin_transaction()
        transactional.produce(topic, b"open", b"k")
        transactional.flush(10)
        writer.write([(b"k", b"plain")], 10)
        why = r"was not read to its end within 0\.5 s: a transaction has been open since offset 0 of partition \d"
        with pytest.raises(ReadTimeout, match=why):
            committed.log.read_to_end(0.5)
        reader.log.read_to_end(10)
        assert (committed.values, reader.values) == ([], [b"open", b"plain"])
        deciding = threading.Timer(0.3, lambda: transactional.commit_transaction(30))
        deciding.start()
        committed.log.read_to_end(10)
        assert committed.values == [b"open", b"plain"]
        deciding.join()


@pytest.mark.broker
class TestWriter:
    def test_a_record_that_is_too_large_is_refused_with_kafkas_words(self, writer: TopicWriter) -> None:
        with pytest.raises(WriteFailed, match="MSG_SIZE_TOO_LARGE"):
            writer.write([(b"k", b"x" * 2_000_000)], 10)
        writer.write([(b"k", b"x")], 10)

    def test_a_send_tells_the_offset(self, writer: TopicWriter) -> None:
        told: list[Any] = []
        writer.send(b"k", b"v", lambda error, offset: told.append((error, offset)))
        writer.send(b"k", None, lambda error, offset: told.append((error, offset)))
        writer.close(10)
        assert told == [(None, 0), (None, 1)]

    def test_after_closing_nothing_is_written(self, writer: TopicWriter) -> None:
        writer.write([(b"k", b"v")], 10)
        writer.close()
        with pytest.raises(WriteFailed, match="closed"):
            writer.write([(b"k", b"v")], 10)
        writer.close()

    def test_nothing_to_write_is_written_at_once(self) -> None:
        TopicWriter("t", NOWHERE).write([], 0.0)


@pytest.mark.process
class TestWithoutKafka:
    def test_a_log_says_what_it_waited_for(self) -> None:
        log = TopicLog("topic", NOWHERE, AdminClient({**NOWHERE, "log_level": 0}))
        began = time.monotonic()
        with pytest.raises(ReadTimeout, match="Topic topic was not found within 1 s"):
            log.start(lambda record: None, 1.0)
        assert time.monotonic() - began < 5

    def test_a_write_gives_up_in_time(self) -> None:
        writer = TopicWriter("topic", NOWHERE)
        began = time.monotonic()
        with pytest.raises(WriteFailed, match=r"did not acknowledge a record for topic topic within 0\.5 s"):
            writer.write([(b"k", b"v")], 0.5)
        writer.close(0.1)
        assert time.monotonic() - began < 5

    def test_what_cannot_be_delivered_is_dropped(self) -> None:
        writer = TopicWriter("topic", NOWHERE, give_up_after=0.5)
        with pytest.raises(WriteFailed, match="MSG_TIMED_OUT"):
            writer.write([(b"k", b"v")], 10)
        writer.close()


@pytest.mark.broker
class TestRestartedBroker:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[Broker]:
        with Broker(tmp_path, heap="256m") as running:
            yield running

    def test_a_log_outlives_its_broker(self, own: Broker, eventually: Eventually) -> None:
        topic = made(own, "survivor", partitions=3)
        writer = TopicWriter(topic, clients(own))
        reader = Reader(own, topic).start()
        writer.write([(b"key-%d" % number, b"before") for number in range(10)], 20)
        reader.log.read_to_end(20)
        own.kill()
        with pytest.raises(ReadTimeout, match="within 1 s"):
            reader.log.read_to_end(1)
        began = time.monotonic()
        with pytest.raises(KafkaAway, match=rf"^Kafka does not answer at {own.bootstrap} \(.+\): see that it runs"):
            reader.log.read_to_end(30, at_once=True)
        assert time.monotonic() - began < 6
        with pytest.raises(WriteFailed):
            writer.write([(b"lost", b"lost")], 0.5)
        own.restart()
        writer.write([(b"key-%d" % number, b"after") for number in range(10)], 30)
        reader.log.read_to_end(30)
        assert reader.values.count(b"before") == 10
        assert reader.values.count(b"after") == 10
        own.restart()
        eventually(lambda: own.running())
        writer.write([(b"x", b"again")], 30)
        reader.log.read_to_end(30)
        assert reader.values[-1] == b"again"
        reader.log.close()
        writer.close()
