"""SparkSource whose executors send to Kafka themselves: the same records, the same failures, offsets behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import JSON, STRING, Client, await_
from mirror_support import partitions, seen
from pyspark.sql import SparkSession
from spark_source_support import CLASS, polled, running, values

from headgate.api import SourceFrame
from headgate.api.testing import MemorySourceTaskContext
from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

COUNT = 500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def put(folder: Path, name: str, *lines: Any) -> None:
    (folder / f".{name}").write_text("".join(f"{line}\n" for line in lines))
    (folder / f".{name}").rename(folder / name)


def orders(folder: Path, file: int, count: int = COUNT) -> None:
    rows = [{"id": file * count + number, "at": "2020-01-31T12:00:00.123456Z"} for number in range(count)]
    put(folder, f"{file}.json", *map(json.dumps, rows))


def config(folder: Path, topic: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    own = {"path": str(folder), "topic": topic, "settle.ms": "0", "poll.interval.ms": "50"}
    return {**CLASS, **own, "executors.produce": "always", "value.converter": STRING, **given}


def typed(folder: Path, topic: str, **more: str) -> dict[str, str]:
    """Of the orders."""
    columns = {"format": "json", "schema": "id BIGINT, at TIMESTAMP", "key_columns": "id", "timestamp_column": "at"}
    converters = {"value_converter": JSON, "value_converter_schemas_enable": "false", "key_converter": STRING}
    return config(folder, topic, **columns, **converters, **more)


def at(folder: Path, file: str, records: int = 0) -> list[Mapping[str, Any]]:
    return [{"partition": {"path": str(folder)}, "offset": {"file": file, "records": records, "done": True}}]


def test_executors_send_typed_records_through_the_chain_and_offsets_follow(
    client: Client, broker: Broker, name: str, topic: str, folder: Path
) -> None:
    for file in range(3):
        orders(folder, file)
    route = {"transforms": "r", "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter"}
    route |= {"transforms.r.regex": ".*", "transforms.r.replacement": f"{topic}-routed"}
    client.create(name, {**typed(folder, topic), **route})
    await_(lambda: client.offsets(name) == at(folder, "2.json"), "the offset", 60)
    orders(folder, 3)
    await_(lambda: client.offsets(name) == at(folder, "3.json"), "the next offset", 60)
    found = seen(broker.bootstrap, f"{topic}-routed")
    told = [{"id": number, "at": 1580472000123} for number in range(4 * COUNT)]
    assert sorted((json.loads(each.value or b"") for each in found), key=lambda each: each["id"]) == told
    assert {(each.key, each.timestamp) for each in found} == {(b"%d" % row["id"], row["at"]) for row in told}
    assert f"{topic}-routed" in client.call("GET", f"/connectors/{name}/topics", 200)[name]["topics"]
    assert partitions(broker.bootstrap, topic) == 0


def test_partitions_of_a_data_source_are_read_where_they_are_sent(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file, told = tmp_path / "lines", tmp_path / "told"
    put(tmp_path, "lines", *(f"text {number}" for number in range(COUNT)))
    own = {"provider": "streams.Lines", "options.file": str(file), "options.told": str(told)}
    rest = {"topic": topic, "poll.interval.ms": "50", "executors.produce": "always", "value.converter": JSON}
    client.create(name, {**CLASS, **own, **rest})
    done = {"partition": {"source": "streams.Lines"}, "offset": {"line": COUNT}}
    await_(lambda: client.offsets(name) == [done], "the offset", 60)
    found = [json.loads(each.value or b"")["payload"]["number"] for each in seen(broker.bootstrap, topic)]
    assert sorted(found) == list(range(COUNT))
    await_(lambda: f"commit {COUNT}" in told.read_text(), "the data source is told", 30)
    assert told.read_text().count(f"partitions 0 {COUNT}") == 1


@pytest.mark.parametrize("way", ["always", "never"])
@pytest.mark.parametrize(
    ("bad", "more", "said"),
    [
        ("bad", {"transforms": "f", "transforms.f.type": "faulty.FailingTransform"}, "ValueError: this value is bad"),
        (
            "x" * 1_100_000,
            {},
            "RecordRefused: Unrecoverable exception from producer send callback: Broker: Message size too large",
        ),
    ],
)
def test_a_task_fails_with_the_same_words_whoever_sends(
    client: Client, name: str, topic: str, folder: Path, way: str, bad: str, more: dict[str, str], said: str
) -> None:
    put(folder, "a", "one", bad, "two")
    big = {"producer.override.max.request.size": "2000000"}
    client.create(name, {**config(folder, topic, executors_produce=way), **more, **big})
    trace = client.await_states(name, "RUNNING", "FAILED", seconds=60)["tasks"][0]["trace"]
    assert trace.splitlines()[0].startswith(said)
    assert client.offsets(name) == []


def test_what_is_tolerated_is_left_out(client: Client, broker: Broker, name: str, topic: str, folder: Path) -> None:
    put(folder, "a", "one", "bad", "two")
    fails = {"transforms": "f", "transforms.f.type": "faulty.FailingTransform", "errors.tolerance": "all"}
    client.create(name, {**config(folder, topic), **fails})
    await_(lambda: client.offsets(name) == at(folder, "a"), "the offset", 60)
    assert [each.value for each in seen(broker.bootstrap, topic)] == [b"one", b"two"]


def test_a_file_that_cannot_be_read_fails_the_task_behind_those_before_it(
    client: Client, broker: Broker, name: str, topic: str, folder: Path
) -> None:
    orders(folder, 0, 5)
    orders(folder, 1, 5)
    put(folder, "2.json", '{"id": oops}')
    client.create(name, typed(folder, topic))
    trace = client.await_states(name, "RUNNING", "FAILED", seconds=60)["tasks"][0]["trace"]
    assert f"File {folder}/2.json could not be read: " in trace.splitlines()[0]
    assert {json.loads(each.value or b"")["id"] for each in seen(broker.bootstrap, topic)} == set(range(10))
    await_(lambda: client.offsets(name) == at(folder, "1.json", 5), "the offset of the last good file", 30)


def test_pieces_come_where_frames_are_not_taken_and_when_there_is_little_to_read(
    worker: StandaloneWorker, folder: Path
) -> None:
    session: SparkSession = worker.engine.session()
    put(folder, "a", "one")
    with running(session, config(folder, "t")) as task:
        assert values(polled(task, 1)) == ["one"]
    given = config(folder, "t", executors_produce="auto")
    with running(session, given) as task:
        task.context = MemorySourceTaskContext(given, session=session, takes_frames=True)
        assert values(polled(task, 1)) == ["one"]
        put(folder, "b", *("0123456789" * 10 for _ in range(11_000)))
        frame = await_(task.poll, "more", 30)
        assert isinstance(frame, SourceFrame)
        assert frame.source_offset == {"file": "b", "records": 0, "done": True}
        task.frame_failed(frame, ValueError("not so"))
        assert len(values(polled(task, 11_000))) == 11_000
