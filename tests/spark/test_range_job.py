"""A range read by an executor: by fetches of ours, and by librdkafka where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from headgate.dev.broker import Broker
from headgate.kafka.fetch import fetcher as fetch
from headgate.kafka.fetch.batches import Unreadable
from headgate.kafka.fetch.fetcher import Silent
from headgate.kafka.settings import ClientConfigError
from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, TaskId, TopicPartition
from headgate.pipeline.blob import pack_spec, unpack
from headgate.pipeline.sink_chain import Kind, Output
from headgate.spark import range_job
from headgate.spark.range_job import RangeJobs, RangePart, RangeStalled

WHERE = TopicPartition("orders", 0)
NEEDED = frozenset({"topic", "partition", "offset", "value"})
OUTPUT = Output(Kind.TABLE, ("offset", "value"))
_STRING = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"), {})
CHAIN = pack_spec(ChainSpec(TaskId("test", 0), ConnectorType.SINK, _STRING, _STRING, _STRING))


def part(start: int, end: int, where: TopicPartition = WHERE, **settings: Any) -> RangePart:
    return RangePart(where, start, end, settings, CHAIN, OUTPUT, NEEDED)


def read(given: RangePart) -> list[list[int]]:
    """The offsets of each result."""
    return [unpack(data).table()["offset"].to_pylist() for data in given.run()]


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What fetches give: so many rows each time, and then an error, if any."""

    def give(*counts: int, error: Exception | None = None) -> None:
        class Fetcher:
            def __init__(self, where: TopicPartition, settings: object, patience_s: float) -> None:
                if isinstance(error, ClientConfigError):
                    raise error

            def __enter__(self) -> Fetcher:
                return self

            def __exit__(self, *_: object) -> None: ...

            def read(self, start: int, end: int, needed: Collection[str]) -> Iterator[tuple[pa.Table, int]]:
                assert needed == NEEDED
                at = start
                for count in counts:
                    yield _table(at, count), at + count
                    at += count
                if error is not None:
                    raise error

        monkeypatch.setattr(fetch, "Fetcher", Fetcher)

    return give


@pytest.fixture
def librdkafka(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where it was asked to begin; it gives two messages."""
    asked: list[int] = []

    def messages(self: RangePart) -> Iterator[list[Any]]:
        asked.append(self.start)
        yield [_Message(self.start), _Message(self.start + 1)]

    monkeypatch.setattr(RangePart, "_messages", messages)
    return asked


class _Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def topic(self) -> str:
        return WHERE.topic

    def partition(self) -> int:
        return WHERE.partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"from librdkafka"


def _table(start: int, count: int) -> pa.Table:
    return pa.table(
        {
            "topic": [WHERE.topic] * count,
            "partition": pa.array([WHERE.partition] * count, pa.int32()),
            "offset": pa.array(range(start, start + count), pa.int64()),
            "value": [b"fetched"] * count,
        }
    )


def test_what_is_fetched_goes_through_the_pipeline(fetches: Callable[..., None], librdkafka: list[int]) -> None:
    fetches(2, 0, 3)
    assert read(part(10, 15)) == [[10, 11], [12, 13, 14]]
    assert librdkafka == []


def test_no_more_rows_at_once_than_said(fetches: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of small or compressed records may bring any number of them."""
    monkeypatch.setattr(range_job, "_ROWS", 4)
    fetches(9, 4)
    assert [len(offsets) for offsets in read(part(0, 13))] == [4, 4, 1, 4]


@pytest.mark.parametrize(
    ("error", "begun"),
    [(Unreadable("message format 1"), [[10, 11], [12]]), (ClientConfigError("sasl.mechanism GSSAPI"), [])],
    ids=["bytes", "settings"],
)
def test_librdkafka_goes_on_where_fetches_cannot(
    fetches: Callable[..., None], librdkafka: list[int], error: Exception, begun: list[list[int]]
) -> None:
    fetches(2, 1, error=error)
    at = 10 + sum(map(len, begun))
    assert read(part(10, at + 2)) == [*begun, [at, at + 1]]
    assert librdkafka == [at]


def test_who_wants_checksums_checked_gets_librdkafka(fetches: Callable[..., None], librdkafka: list[int]) -> None:
    fetches(2)
    assert read(part(0, 2, WHERE, **{"check.crcs": "true"})) == [[0, 1]]
    assert librdkafka == [0]


def test_a_broker_that_is_silent_stalls_the_range(fetches: Callable[..., None], librdkafka: list[int]) -> None:
    fetches(2, error=Silent("orders-0 gave nothing"))
    with pytest.raises(RangeStalled, match="orders-0 gave nothing"):
        read(part(0, 5))
    assert librdkafka == []


@pytest.mark.parametrize(
    ("ends", "cores", "expected"),
    [
        ([100], 1, [(0, 0, 100)]),
        ([100], 3, [(0, 0, 34), (0, 34, 68), (0, 68, 100)]),
        ([2], 4, [(0, 0, 1), (0, 1, 2)]),
        ([100, 50], 2, [(0, 0, 100), (1, 0, 50)]),
    ],
)
def test_cores_share_a_range(ends: list[int], cores: int, expected: list[tuple[int, int, int]]) -> None:
    jobs = RangeJobs({"bootstrap.servers": "there:9092"}, CHAIN, OUTPUT, NEEDED)
    ranges = {TopicPartition("orders", number): (0, end) for number, end in enumerate(ends)}
    parts = jobs._parts(ranges, cores, None)
    assert [(each.where.partition, each.start, each.end) for each in parts] == expected


@pytest.mark.broker
def test_both_ways_give_the_same(broker: Broker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    topic = unique("both-ways")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(3000):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none", "isolation.level": "read_uncommitted"}
    settings |= {"enable.auto.commit": "false", "log_level": "0"}

    def values(**more: str) -> list[str]:
        given = part(500, 2500, TopicPartition(topic, 0), **settings, **more)
        return [value for data in given.run() for value in unpack(data).table()["value"].to_pylist()]

    fetched = values()
    assert fetched == [str(number) for number in range(500, 2500)]
    assert values(**{"check.crcs": "true"}) == fetched
