"""Fetches give exactly what a consumer gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from fetch_support import (
    COMMITTED,
    UNCOMMITTED,
    consumed,
    create,
    delete_before,
    end_of,
    fetched,
    produce,
    producer,
    settings_of,
)
from wire_support import ALL

from headgate.dev.broker import Broker
from headgate.kafka.fetch import batches
from headgate.kafka.fetch.compression import decompress
from headgate.kafka.fetch.fetcher import FETCH_BYTES, Fetcher, Silent, _enough, _Reading
from headgate.model import TopicPartition

pytestmark = pytest.mark.broker


@pytest.fixture
def where(broker: Broker, unique: Callable[[str], str]) -> TopicPartition:
    return create(broker, unique("fetch"))


@pytest.fixture
def varied(broker: Broker, where: TopicPartition) -> TopicPartition:
    """A topic with every kind of record, in several batches."""
    client = producer(broker)
    headers: list[list[tuple[str, str | bytes | None]]]
    headers = [[], [("h", b"1")], [("h", None), ("h", b""), ("ü", b"\xff")]]
    for number in range(300):
        client.produce(
            where.topic,
            key=[None, b"", b"key %d" % number][number % 3],
            value=[b"", None, b"value %d" % number, b"x" * number * 70][number % 4],
            headers=headers[number // 100],
            timestamp=[0, 1, 1_700_000_000_000 + number, -1][number % 4],
        )
        if number % 100 == 50:
            client.flush(10)
    assert client.flush(10) == 0
    return where


def test_a_topic_is_read_as_a_consumer_reads_it(broker: Broker, varied: TopicPartition) -> None:
    found = fetched(broker, varied, 0, 300)
    assert [row["offset"] for row in found] == list(range(300))
    assert found == consumed(broker, varied, 0, 300)


@pytest.mark.parametrize(("start", "end"), [(1, 299), (40, 60), (120, 121), (299, 300), (7, 7)])
def test_a_range_in_the_middle(broker: Broker, varied: TopicPartition, start: int, end: int) -> None:
    with Fetcher(settings_of(broker), 20.0) as fetcher:
        found = [row for table, _ in fetcher.read(varied, start, end, ALL) for row in table.to_pylist()]
    assert found == consumed(broker, varied, start, end)


def test_a_topic_with_the_time_of_the_log(broker: Broker, unique: Callable[[str], str]) -> None:
    where = create(broker, unique("append"), message_timestamp_type="LogAppendTime")
    produce(broker, where, b"one", b"two")
    found = fetched(broker, where, 0, 2)
    assert {row["timestamp_type"] for row in found} == {"LogAppendTime"}
    assert found == consumed(broker, where, 0, 2)


@pytest.mark.parametrize(("codec", "number"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
@pytest.mark.parametrize("by", ["librdkafka", "the broker"])
def test_a_compressed_topic(
    broker: Broker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, codec: str, number: int, by: str
) -> None:
    """The broker compresses with Java's libraries, which write other frames."""
    seen: list[int] = []

    def noted(codec: int, data: bytes) -> bytes:
        seen.append(codec)
        return decompress(codec, data)

    monkeypatch.setattr(batches, "decompress", noted)
    where = create(broker, unique("compressed"), **({"compression_type": codec} if by == "the broker" else {}))
    values = [b"line %d of a log\n" % at * (at % 40) for at in range(2000)]
    produce(broker, where, *values, **({} if by == "the broker" else {"compression_type": codec}))
    found = fetched(broker, where, 0, 2000)
    assert [row["value"] for row in found] == values
    assert found == consumed(broker, where, 0, 2000)
    assert number in seen


def transactions(broker: Broker, where: TopicPartition, name: str) -> None:
    """Of two producers, one between the other's; the last one is given up, so the topic ends with a marker."""
    first, second = (producer(broker, transactional_id=f"{name}-{each}") for each in "ab")
    for client in (first, second):
        client.init_transactions(20)

    def write(client: Any, *values: bytes) -> None:
        for value in values:
            client.produce(where.topic, value, partition=0)
        client.flush(10)

    produce(broker, where, b"plain")
    for commit in (True, False, True):
        first.begin_transaction()
        second.begin_transaction()
        write(first, b"first")
        write(second, b"second", b"second")
        write(first, b"first")
        first.commit_transaction(20) if commit else first.abort_transaction(20)
        write(second, b"second")
        produce(broker, where, b"between")
        second.abort_transaction(20) if commit else second.commit_transaction(20)
    second.begin_transaction()
    write(second, b"given up")
    second.abort_transaction(20)


@pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
def test_transactions(broker: Broker, where: TopicPartition, unique: Callable[[str], str], isolation: str) -> None:
    transactions(broker, where, unique("transactions"))
    end = end_of(broker, where)
    expected = consumed(broker, where, 0, end, isolation)
    assert (b"given up" in [row["value"] for row in expected]) is (isolation == UNCOMMITTED)
    assert fetched(broker, where, 0, end, isolation) == expected
    for start in range(1, end):
        assert fetched(broker, where, start, end, isolation) == [row for row in expected if row["offset"] >= start]


def test_committed_records_end_where_a_transaction_is_open(
    broker: Broker, where: TopicPartition, unique: Callable[[str], str]
) -> None:
    produce(broker, where, b"one", b"two")
    client = producer(broker, transactional_id=unique("open"))
    client.init_transactions(20)
    client.begin_transaction()
    client.produce(where.topic, b"open")
    client.flush(10)
    assert [row["value"] for row in fetched(broker, where, 0, 2, COMMITTED)] == [b"one", b"two"]
    with Fetcher(settings_of(broker, COMMITTED), 1.0) as fetcher, pytest.raises(Silent):
        list(fetcher.read(where, 2, 3, ALL))
    client.abort_transaction(20)


@pytest.mark.parametrize(
    ("per_offset", "offsets", "asked"),
    [
        (1000.0, 1000, 1_000_000 + (256 << 10)),
        (1000.5, 1, 1000 + (256 << 10)),
        (1000.0, 100_000, FETCH_BYTES),
        (0, 1000, 256 << 10),
    ],
    ids=["some", "one", "more than a fetch has room for", "only holes so far"],
)
def test_a_fetch_asks_for_little_more_than_the_rest_of_a_range(per_offset: float, offsets: int, asked: int) -> None:
    assert _enough(per_offset, offsets) == asked


def test_who_has_read_a_partition_knows_how_much_to_ask_for(
    broker: Broker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create(broker, unique("first")), create(broker, unique("second"))
    for where in (first, second):
        produce(broker, where, *[os.urandom(1000) for _ in range(400)])
    asked: list[int] = []
    ask = _Reading.ask

    def listening(self: _Reading, at: int, most: int) -> Any:
        asked.append(most)
        return ask(self, at, most)

    monkeypatch.setattr(_Reading, "ask", listening)
    with Fetcher(settings_of(broker), 20.0) as fetcher:
        list(fetcher.read(first, 0, 400, ["offset"]))
        known = len(asked)
        found = [
            offset for table, _ in fetcher.read(first, 100, 200, ["offset"]) for offset in table["offset"].to_pylist()
        ]
        assert found == list(range(100, 200))
        assert len(asked) == known + 1, "the connection was there"
        assert 350_000 < asked[known] < 500_000
        list(fetcher.read(second, 0, 400, ["offset"]))
        assert asked[known + 1] == FETCH_BYTES


def test_records_larger_than_a_fetch(broker: Broker, unique: Callable[[str], str]) -> None:
    where = create(broker, unique("large"), max_message_bytes=str(3 * FETCH_BYTES))
    values = [b"small", os.urandom(2 * FETCH_BYTES), os.urandom(FETCH_BYTES), b"small"]
    produce(broker, where, *values, message_max_bytes=3 * FETCH_BYTES)
    assert [row["value"] for row in fetched(broker, where, 0, 4)] == values


def test_several_fetches_tell_where_to_go_on(broker: Broker, where: TopicPartition) -> None:
    produce(broker, where, *[os.urandom(10_000) for _ in range(1000)])
    with Fetcher(settings_of(broker), 20.0) as fetcher:
        at, tables = 0, 0
        for table, following in fetcher.read(where, 0, 1000, ["offset"]):
            assert table["offset"].to_pylist() == list(range(at, following))
            at, tables = following, tables + 1
    assert (at, tables > 1) == (1000, True)


@pytest.mark.parametrize(("deleted", "expected"), [(3, [3, 4, 5]), (6, []), (9, [])])
def test_what_was_deleted_is_passed_over(
    broker: Broker, where: TopicPartition, deleted: int, expected: list[int]
) -> None:
    """As far as the end of the range, or beyond it."""
    produce(broker, where, *[b"%d" % at for at in range(10)])
    delete_before(broker, where, deleted)
    assert [row["offset"] for row in fetched(broker, where, 1, 6)] == expected


def test_an_offset_that_there_is_not_yet_is_an_error(broker: Broker, where: TopicPartition) -> None:
    from kafka.errors import OffsetOutOfRangeError

    produce(broker, where, b"one")
    with pytest.raises(OffsetOutOfRangeError):
        fetched(broker, where, 100, 200)


def test_an_unknown_topic_is_silent_and_is_not_created(broker: Broker, unique: Callable[[str], str]) -> None:
    name = unique("unknown")
    said = rf"{name}-0 gave nothing after offset 7 .*UnknownTopicOrPartition"
    with Fetcher(settings_of(broker), 3.0) as fetcher, pytest.raises(Silent, match=said):
        list(fetcher.read(TopicPartition(name, 0), 7, 9, ALL))
    assert name not in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics


def test_an_unknown_partition_is_silent(broker: Broker, where: TopicPartition) -> None:
    with Fetcher(settings_of(broker), 0.5) as fetcher, pytest.raises(Silent):
        list(fetcher.read(TopicPartition(where.topic, 5), 0, 1, ALL))
