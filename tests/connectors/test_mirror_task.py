"""MirrorTask on a broker: what it reads, where it begins, what it says when it cannot go on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Native
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.api import ConnectError, SourceFrame, SourceRecord, SourceTable, SourceTask, TopicPartition, schema
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SourceConnectorSuite
from headgate.connectors import Mirror
from headgate.connectors.mirror.positions import written
from headgate.connectors.mirror.task import MirrorTask
from headgate.dev import ports
from headgate.dev.broker import Broker

pytestmark = pytest.mark.broker

LONG = 60.0
NOW = int(time.time()) * 1000
"""Brokers delete what is older than a week."""


class Topics:
    """Topics of a test, and what is written to them."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})

    def create(self, topic: str, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(20)

    def write(self, topic: str, *values: Any, partition: int = 0, **more: Any) -> None:
        for value in values:
            data = value.encode() if isinstance(value, str) else value
            self._producer.produce(topic, data, partition=partition, **more)
        assert self._producer.flush(20) == 0

    def drop_before(self, topic: str, offset: int) -> None:
        (answer,) = self.admin.delete_records([Native(topic, 0, offset)]).values()
        answer.result(20)


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def topic(topics: Topics, unique: Callable[[str], str]) -> str:
    made = unique("mirrored")
    topics.create(made)
    return made


Start = Callable[..., MirrorTask]


@pytest.fixture
def start(broker: Broker, topic: str) -> Iterator[Start]:
    """Starts a task on the topic's partition; it is stopped at the end."""
    tasks: list[MirrorTask] = []

    def start(*, at: int | None = None, offsets: MemoryOffsets | None = None, **config: str) -> MirrorTask:
        given = {
            "name": "m",
            "topics": topic,
            "mirror.one.cluster": "true",
            "mirror.partitions": written([TopicPartition(topic, 0)]),
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        if offsets is None:
            place = {"cluster": "source", "topic": topic, "partition": 0}
            offsets = MemoryOffsets([] if at is None else [(place, {"offset": at})])
        task = MirrorTask()
        tasks.append(task)
        task.context = MemorySourceTaskContext(given, offsets, cluster={"bootstrap.servers": broker.bootstrap})
        task.start(given)
        return task

    yield start
    for task in tasks:
        task.stop()


def polled(task: SourceTask) -> Sequence[SourceRecord] | SourceTable:
    """The next that comes."""
    deadline = time.monotonic() + LONG
    while True:
        found = task.poll()
        if found is not None:
            assert not isinstance(found, SourceFrame)
            return found
        assert time.monotonic() < deadline, "nothing came"


def begun(task: SourceTask) -> int:
    """The offset that is stored before any record."""
    found = polled(task)
    assert isinstance(found, SourceTable)
    assert found.table.num_rows == 0
    assert found.source_offset is not None
    offset: int = found.source_offset["offset"]
    return offset


def tables(task: SourceTask, rows: int) -> list[SourceTable]:
    """The next ones, with so many rows together."""
    found: list[SourceTable] = []
    while sum(table.table.num_rows for table in found) < rows:
        given = polled(task)
        assert isinstance(given, SourceTable)
        found.append(given)
    return found


def column(found: Sequence[SourceTable], name: str) -> list[Any]:
    return [value for each in found for value in each.table[name].to_pylist()]


def values(task: SourceTask, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        given = polled(task)
        if isinstance(given, SourceTable):
            found += given.table["value"].to_pylist()
        else:
            found += [record.value for record in given]
    return found


class TestAcceptance(SourceConnectorSuite):
    connector = Mirror
    patience = LONG
    stop_seconds = 10.0

    @pytest.fixture(autouse=True)
    def _given_a_topic(self, topics: Topics, unique: Callable[[str], str]) -> None:
        self.topics, self.topic, self.count = topics, unique("suite"), 0
        topics.create(self.topic, 2)
        self.cluster: Mapping[str, str] = {"bootstrap.servers": topics.bootstrap}
        self.config = {"topics": self.topic, "create.topics": "false"}

    def add_data(self, count: int) -> None:
        for _ in range(count):
            self.topics.write(self.topic, f"value {self.count}", partition=self.count % 2)
            self.count += 1


# --- what it reads ----------------------------------------------------------------------------------------------------


def test_messages_without_headers_are_columns_as_they_are(topics: Topics, topic: str, start: Start) -> None:
    topics.write(topic, b"\xff\x00", key=b"\xfe", timestamp=NOW)
    topics.write(topic, b"", timestamp=NOW + 1)
    topics.write(topic, None, key=b"")
    task = start()
    assert begun(task) == 0
    found = tables(task, 3)
    assert {table.topic for table in found} == {f"source.{topic}"}
    assert column(found, "key") == [b"\xfe", None, b""]
    assert column(found, "value") == [b"\xff\x00", b"", None]
    assert column(found, "timestamp")[:2] == [NOW, NOW + 1]
    assert column(found, "partition") == [0, 0, 0]
    last = found[-1]
    assert (last.key_schema, last.value_schema) == (schema.OPTIONAL_BYTES, schema.OPTIONAL_BYTES)
    assert last.source_partition == {"cluster": "source", "topic": topic, "partition": 0}
    assert last.source_offset == {"offset": 3}


def test_messages_with_headers_are_records(topics: Topics, topic: str, start: Start) -> None:
    headers = [("a", b"\xff"), ("a", None), ("b", b"")]
    topics.write(topic, b"v", key=b"k", timestamp=NOW, headers=headers)
    task = start(partition_policy="by-key", value_format="string", source_alias="east")
    begun(task)
    records = polled(task)
    assert not isinstance(records, SourceTable)
    (record,) = records
    assert isinstance(record, SourceRecord)
    assert (record.topic, record.key, record.value, record.timestamp) == (f"east.{topic}", b"k", "v", NOW)
    assert [(header.key, header.value) for header in record.headers] == headers
    assert record.partition is None
    assert record.value_schema == schema.OPTIONAL_STRING
    assert record.source_partition == {"cluster": "east", "topic": topic, "partition": 0}
    assert record.source_offset == {"offset": 1}


def test_only_what_was_committed_is_read_unless_all_is_wanted(
    broker: Broker, topics: Topics, topic: str, start: Start
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    for value, end in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(20)
        end(30)
    topics.write(topic, "last")
    assert values(start(), 2) == [b"kept", b"last"]
    assert values(start(source_isolation_level="read_uncommitted"), 3) == [b"kept", b"dropped", b"last"]


def test_what_a_group_has_consumed_is_told_within_one_cluster_only(topic: str, start: Start) -> None:
    offsets = [({"cluster": "source", "topic": topic, "partition": 0}, {"offset": 7})]
    consumed = start(group="g").consumed(offsets)
    assert consumed is not None
    assert consumed.offsets == {TopicPartition(topic, 0): 7}
    assert b"g" in consumed.group_metadata  # type: ignore[operator]
    assert start(mirror_one_cluster="false").consumed(offsets) is None


# --- where it begins --------------------------------------------------------------------------------------------------


def test_a_stored_offset_is_where_it_goes_on(topics: Topics, topic: str, start: Start) -> None:
    topics.write(topic, "a", "b", "c")
    assert values(start(at=1), 2) == [b"b", b"c"]


def test_it_begins_where_the_policy_says_and_that_is_stored_at_once(
    broker: Broker, topics: Topics, topic: str, start: Start, unique: Callable[[str], str]
) -> None:
    for number in range(5):
        topics.write(topic, str(number), timestamp=NOW + number * 1000)
    assert begun(start()) == 0
    latest = start(offset_policy="latest")
    assert begun(latest) == 5
    topics.write(topic, "next", timestamp=NOW + 10_000)
    assert values(latest, 1) == [b"next"]
    instant = datetime.fromtimestamp(NOW / 1000 + 2, UTC).isoformat()
    assert begun(start(offset_policy=f"timestamp:{instant}")) == 2
    assert begun(start(offset_policy="timestamp:2524608000000")) == 6
    group = unique("group")
    assert begun(start(offset_policy="committed", group=group)) == 0
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    reader.commit(offsets=[Native(topic, 0, 4)], asynchronous=False)
    reader.close()
    assert begun(start(offset_policy="committed", group=group)) == 4


def test_deleted_records_are_told_of_and_the_policy_says_where_to_go_on(
    topics: Topics, topic: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    topics.write(topic, *"abcdef")
    topics.drop_before(topic, 4)
    task = start(at=1)
    assert begun(task) == 4
    assert values(task, 2) == [b"e", b"f"]
    assert f"Topic {topic}, partition 0: offsets 1 to 3 were deleted before they were read" in caplog.text
    assert "Up to 3 records were missed; going on at offset 4" in caplog.text
    assert begun(start(at=1, offset_policy="latest")) == 6
    assert "Up to 5 records were missed; going on at offset 6" in caplog.text


def test_a_topic_that_ends_before_the_stored_offset_is_told_of(
    topics: Topics, topic: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    topics.write(topic, "a", "b")
    task = start(at=1000)
    assert begun(task) == 0
    assert values(task, 2) == [b"a", b"b"]
    assert f"Topic {topic}, partition 0 ends at offset 2, before 1000" in caplog.text


def test_records_deleted_while_it_runs_are_no_reason_to_stop(
    topics: Topics, topic: str, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """The consumer stands behind what is deleted: nothing was missed."""
    topics.write(topic, "a", "b")
    task = start()
    assert values(task, 2) == [b"a", b"b"]
    topics.drop_before(topic, 2)
    topics.write(topic, "c")
    assert values(task, 1) == [b"c"]
    assert "missed" not in caplog.text


def test_partitions_that_do_not_answer_hold_up_no_others(topics: Topics, topic: str, start: Start) -> None:
    topics.write(topic, "a")
    places = [TopicPartition(f"{topic}-gone", 0), TopicPartition(topic, 0)]
    task = start(mirror_partitions=written(places))
    assert values(task, 1) == [b"a"]


# --- a cluster that is away -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [None, 3])
def test_a_cluster_that_is_away_is_waited_for(start: Start, caplog: pytest.LogCaptureFixture, at: int | None) -> None:
    (port,) = ports.pick_free(1)
    task = start(at=at, source_bootstrap_servers=f"127.0.0.1:{port}")
    for _ in range(4):
        assert task.poll() is None
    told = [record.getMessage() for record in caplog.records if "Connection refused" in record.getMessage()]
    assert len(told) <= 1


def test_a_setting_that_cannot_be_is_told(start: Start) -> None:
    with pytest.raises(ValueError, match=r"fetch\.max\.bytes must be a whole number"):
        start(source_fetch_max_bytes="many")


def test_a_wrong_offset_is_told(topic: str, start: Start) -> None:
    place = {"cluster": "source", "topic": topic, "partition": 0}
    with pytest.raises(ConnectError, match="stored offset"):
        start(offsets=MemoryOffsets([(place, {"offset": "x"})]))
