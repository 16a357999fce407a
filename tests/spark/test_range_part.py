"""A part of a backlog, read by a resident by fetches of its own; and what becomes of it when it cannot."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from headgate.dev.broker import Broker
from headgate.kafka.fetch import fetcher as fetch
from headgate.kafka.fetch.fetcher import Silent
from headgate.kafka.settings import ClientConfigError
from headgate.model import (
    ChainSpec,
    ConnectorType,
    EngineUnavailable,
    PluginRef,
    PluginSpec,
    RangeUnread,
    TargetState,
    TaskId,
    TaskSpec,
    TopicPartition,
)
from headgate.pipeline import blob
from headgate.pipeline.blob import Packed, pack_spec, unpack
from headgate.pipeline.shelf import Shelf
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.spark import range_part
from headgate.spark.range_part import RangePart, _Fetchers, is_part, results, run
from headgate.spark.ranges import ResidentRanges

WHERE = TopicPartition("orders", 0)
NEEDED = frozenset({"topic", "partition", "offset", "value"})
OUTPUT = Output(Kind.TABLE, ("offset", "value"))
_STRING = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"), {})
SPEC = ChainSpec(TaskId("test", 0), ConnectorType.SINK, _STRING, _STRING, _STRING)
CHAIN = pack_spec(SPEC)


def part(start: int, end: int, where: TopicPartition = WHERE, **settings: Any) -> RangePart:
    return RangePart(where, start, end, settings, CHAIN, OUTPUT, NEEDED)


def offsets(packed: Collection[Packed]) -> list[list[int]]:
    """Of each result."""
    return [unpack(data).table()["offset"].to_pylist() for data in packed]


class Fetches:
    """Instead of a broker: so many rows each time, and then an error, if any."""

    def __init__(self) -> None:
        self.counts: tuple[int, ...] = ()
        self.error: Exception | None = None
        self.made: list[Mapping[str, Any]] = []
        self.closed = 0

    def __call__(self, settings: Mapping[str, Any], patience_s: float) -> Fetches:
        self.made.append(settings)
        return self

    def close(self) -> None:
        self.closed += 1

    def read(
        self, where: TopicPartition, start: int, end: int, needed: Collection[str]
    ) -> Iterator[tuple[pa.Table, int]]:
        assert (where, needed) == (WHERE, NEEDED)
        at = start
        for count in self.counts:
            yield _table(at, count), at + count
            at += count
        if self.error is not None:
            raise self.error


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Fetches:
    made = Fetches()
    monkeypatch.setattr(fetch, "Fetcher", made)
    monkeypatch.setattr(range_part, "_fetchers", _Fetchers(2))
    return made


def _table(start: int, count: int) -> pa.Table:
    return pa.table(
        {
            "topic": [WHERE.topic] * count,
            "partition": pa.array([WHERE.partition] * count, pa.int32()),
            "offset": pa.array(range(start, start + count), pa.int64()),
            "value": [b"fetched"] * count,
        }
    )


def test_what_is_fetched_goes_through_the_pipeline(fetches: Fetches) -> None:
    fetches.counts = (2, 0, 3)
    assert offsets(results([run(part(10, 15).blob())])) == [[10, 11], [12, 13, 14]]


def test_no_more_rows_at_once_than_said(fetches: Fetches, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch of small or compressed records may bring any number of them."""
    monkeypatch.setattr(range_part, "_ROWS", 4)
    fetches.counts = (9, 4)
    assert [len(each) for each in offsets(results([run(part(0, 13).blob())]))] == [4, 4, 1, 4]


def test_a_part_is_told_from_other_blobs() -> None:
    assert is_part(bytearray(part(0, 1).blob()))
    assert not is_part(blob.pack(blob.sink_job(CHAIN, OUTPUT, _table(0, 1))))


@pytest.mark.parametrize("error", [Silent("orders-0 gave nothing"), ClientConfigError("GSSAPI"), OSError("no route")])
def test_why_a_part_could_not_be_read_is_said(fetches: Fetches, error: Exception) -> None:
    fetches.counts, fetches.error = (2,), error
    with pytest.raises(RangeUnread, match=rf"orders-0 from offset 7 on: .*{error}"):
        results([run(part(7, 12).blob())])


def test_what_the_chain_does_wrong_is_a_result(fetches: Fetches) -> None:
    fetches.counts = (1,)
    broken = RangePart(WHERE, 0, 1, {}, b"no chain", OUTPUT, NEEDED)
    (found,) = results([run(broken.blob())])
    assert unpack(found).error_type == "_pickle.UnpicklingError"


# --- connections ------------------------------------------------------------------------------------------------------


def test_connections_stay_for_the_next_part(fetches: Fetches) -> None:
    for _ in range(3):
        run(part(0, 1, WHERE, **{"bootstrap.servers": "a"}).blob())
    assert (fetches.made, fetches.closed) == ([{"bootstrap.servers": "a"}], 0)


def test_those_of_other_settings_are_others_and_the_oldest_go(fetches: Fetches) -> None:
    for server in "abacb":
        run(part(0, 1, WHERE, **{"bootstrap.servers": server}).blob())
    assert [each["bootstrap.servers"] for each in fetches.made] == ["a", "b", "c", "b"]
    assert fetches.closed == 2


def test_what_something_went_wrong_with_is_not_kept(fetches: Fetches) -> None:
    fetches.error = OSError("reset")
    run(part(0, 1).blob())
    run(part(0, 1).blob())
    assert (len(fetches.made), fetches.closed) == (2, 2)


# --- at the driver ----------------------------------------------------------------------------------------------------


class Residents:
    """Runs nothing: keeps what it is given."""

    wide = 3

    def __init__(self) -> None:
        self.submitted: list[list[RangePart]] = []
        self.futures: list[Future[list[Packed]]] = []
        self.dropped: list[TaskId] = []

    def submit(self, task: TaskId, blobs: list[bytes]) -> Future[list[Packed]]:
        self.submitted.append([pickle.loads(each[len(b"range") :]) for each in blobs])
        self.futures.append(Future())
        return self.futures[-1]

    def drop(self, task: TaskId) -> None:
        self.dropped.append(task)


def reader(residents: Residents, output: Output = OUTPUT, **consumer: str) -> ResidentRanges:
    settings = {"bootstrap.servers": "there:9092", **{key.replace("_", "."): value for key, value in consumer.items()}}
    spec = TaskSpec(
        TaskId("test", 0), object, ConnectorType.SINK, None, {}, {}, SPEC, TargetState.STARTED, consumer=settings
    )
    return ResidentRanges(spec, CHAIN, SinkChain(SPEC, output), residents)  # type: ignore[arg-type]


def test_ranges_are_shared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResidentRanges, "most", 40)
    residents, shelf = Residents(), Shelf("somewhere")
    made = reader(residents)
    made.read({WHERE: (0, 100), TopicPartition("orders", 1): (7, 40)}, shelf)
    (parts,) = residents.submitted
    assert [(each.where.partition, each.start, each.end) for each in parts] == [
        (0, 0, 40), (0, 40, 80), (0, 80, 100), (1, 7, 40),
    ]  # fmt: skip
    assert {each.shelf for each in parts} == {shelf}
    assert parts[0].settings["bootstrap.servers"] == "there:9092"
    assert made.ahead == 6


def test_records_that_go_one_by_one_come_in_smaller_parts() -> None:
    """A part that takes half a second looks like a chain that waits for something."""
    assert reader(Residents()).most == 20_000
    assert reader(Residents(), Output(Kind.RECORDS)).most == 5_000


def test_results_come_in_the_order_of_the_parts(fetches: Fetches) -> None:
    residents = Residents()
    read = reader(residents).read({WHERE: (0, 2)}, None)
    fetches.counts = (2,)
    answers: list[Packed] = [run(part(0, 2).blob()), run(part(2, 4).blob())]
    assert not read.done()
    residents.futures[0].set_result(answers)
    assert offsets(read.result(0)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("error", [EngineUnavailable("cancelled"), OSError("no line")])
def test_what_residents_fail_with_is_passed_on(error: Exception) -> None:
    residents = Residents()
    read = reader(residents).read({WHERE: (0, 2)}, None)
    residents.futures[0].set_exception(error)
    assert read.exception(0) is error


def test_who_cancels_lets_residents_finish_what_they_have_begun() -> None:
    residents = Residents()
    reader(residents).cancel()
    assert residents.dropped == [TaskId("test", 0)]


@pytest.mark.parametrize(
    "consumer",
    [
        {"check_crcs": "true"},
        {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"},
    ],
    ids=["checksums", "a login that is librdkafka's"],
)
def test_what_only_librdkafka_can_do_is_not_read_so(consumer: dict[str, str]) -> None:
    with pytest.raises(ClientConfigError):
        reader(Residents(), OUTPUT, **consumer)


@pytest.mark.broker
def test_a_part_of_a_real_topic(broker: Broker, unique: Callable[[str], str]) -> None:
    topic = unique("part")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(3000):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_uncommitted"}
    given = part(500, 2500, TopicPartition(topic, 0), **settings)
    values = [value for data in results([run(given.blob())]) for value in unpack(data).table()["value"].to_pylist()]
    assert values == [str(number) for number in range(500, 2500)]
