"""SparkSink on a running worker: JSON with schemas to Parquet, exactly once, through restarts and a death of Spark."""

from __future__ import annotations

import gc
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from dead_letters_support import Dead, committed, header
from harness import JSON, STRING, Client, Headers, await_

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker
from headgate.tasks.sink import catch_up

pytestmark = pytest.mark.spark

FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "int64"},
    {"field": "region", "type": "string"},
    {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
    {"field": "tags", "type": "array", "items": {"type": "string"}, "optional": True},
]


def message(payload: dict[str, Any], fields: list[dict[str, Any]] = FIELDS) -> bytes:
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def order(number: int) -> bytes:
    tags = None if number % 5 == 0 else [str(number)]
    return message({"id": number, "region": f"r{number % 3}", "at": 1_900_000_000_000 + number, "tags": tags})


class Orders:
    """A topic of three partitions."""

    def __init__(self, broker: Broker, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(20)
        self.topic, self.sent = topic, 0
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def send(self, count: int) -> None:
        for number in range(self.sent, self.sent + count):
            headers: Headers = [("number", str(number).encode())]
            self._producer.produce(self.topic, order(number), partition=number % 3, headers=headers)
        assert self._producer.flush(30) == 0
        self.sent += count


@pytest.fixture
def topic_of_orders(broker: Broker, topic: str) -> Orders:
    return Orders(broker, topic)


def sink(topic: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "headgate.SparkSink",
        "tasks.max": "4",
        "topics": topic,
        "path": str(folder),
        "key.converter": STRING,
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
        "rotate.ms": "300",
        **more,
    }


EXACT = {"exactly.once": "true", "partition.by": "region"}


@pytest.fixture
def ids(worker: StandaloneWorker, tmp_path: Path) -> Callable[[], list[int]]:
    """As readers of the folder see them."""

    def read() -> list[int]:
        if not any((tmp_path / "out").glob("[!_.]*")):
            return []
        frame = worker.engine.session().read.parquet(str(tmp_path / "out"))
        return sorted(row.id for row in frame.select("id").collect())

    return read


@pytest.fixture
def kill_jvm(worker: StandaloneWorker) -> Iterator[Callable[[], None]]:
    def kill() -> None:
        pid = worker.engine.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    yield kill
    with warnings.catch_warnings():
        # py4j leaves the sockets open with which it did not reach the JVM any more: collected here, they fail no other.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_each_record_is_in_the_folder_once_whatever_happens_meanwhile(
    client: Client, worker: StandaloneWorker, topic_of_orders: Orders, name: str, tmp_path: Path,
    ids: Callable[[], list[int]], kill_jvm: Callable[[], None],
) -> None:  # fmt: skip
    config = sink(topic_of_orders.topic, tmp_path / "out", **EXACT, **{"rotate.records": "400"})
    client.create(name, config)
    topic_of_orders.send(1000)
    await_(ids, "the first rows", 90)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    topic_of_orders.send(1000)
    await_(lambda: committed(client, name) > 1000, "more rows", 90)
    kill_jvm()
    topic_of_orders.send(1000)
    await_(lambda: committed(client, name) == 3000, "the commit of all", 180)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    client.put(name, "resume")
    topic_of_orders.send(500)
    await_(lambda: committed(client, name) == 3500, "the rest", 90)
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    assert ids() == list(range(3500))
    frame = worker.engine.session().read.parquet(str(tmp_path / "out"))
    kinds = "struct<id:bigint,at:timestamp,tags:array<string>,region:string>"
    assert frame.schema.simpleString() == kinds
    assert sorted(path.name for path in (tmp_path / "out").glob("[!_]*")) == ["region=r0", "region=r1", "region=r2"]


def test_rows_are_not_written_one_by_one(
    client: Client, topic_of_orders: Orders, name: str, tmp_path: Path, ids: Callable[[], list[int]]
) -> None:
    """The worker commits every second, which is no reason to write: only the time that rows may wait is."""
    client.create(name, sink(topic_of_orders.topic, tmp_path / "out", **{"rotate.ms": "4000"}))
    client.await_states(name, "RUNNING", "RUNNING")
    for _ in range(3):
        topic_of_orders.send(10)
    await_(lambda: committed(client, name) == 30, "the commit", 90)
    assert ids() == list(range(30))
    assert len(list((tmp_path / "out").glob("part-*"))) <= 2


def test_a_record_that_does_not_fit_becomes_a_dead_letter(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path, ids: Callable[[], list[int]]
) -> None:
    other = [{"field": "id", "type": "string"}]
    for value in (
        order(0),
        message({"id": "seven"}, other),
        order(1),
        b'{"schema": null, "payload": "text"}',
        order(2),
    ):
        producer.produce(topic, value, b"key")
    assert producer.flush(20) == 0
    tolerant = {"errors.tolerance": "all", **dead.config}
    client.create(name, sink(topic, tmp_path / "out", **EXACT, **tolerant))
    await_(lambda: len(dead.letters()) == 2, "the dead letters", 90)
    await_(lambda: committed(client, name) == 5, "the commit", 90)
    assert ids() == [0, 1, 2]
    first, second = dead.letters()
    assert (header(first, "offset"), header(second, "offset")) == ("1", "3")
    assert (header(first, "stage"), first.key()) == ("TASK_PUT", b"key")
    problem = "A value of type STRING does not fit a column of type BIGINT (field id)"
    assert header(first, "exception.message") == problem
    assert json.loads(first.value() or b"")["payload"] == {"id": "seven"}
    assert "has no fields to be columns" in header(second, "exception.message")


def test_without_tolerance_the_task_fails_by_the_records_place(
    client: Client, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    producer.produce(topic, order(0))
    producer.produce(topic, message({"id": "seven"}, [{"field": "id", "type": "string"}]))
    assert producer.flush(20) == 0
    client.create(name, sink(topic, tmp_path / "out"))
    trace = client.await_states(name, "RUNNING", "FAILED", seconds=90)["tasks"][0]["trace"]
    assert f"Record {topic}-0 at offset 1 does not fit: A value of type STRING" in trace
    assert "(field id)" in trace


@pytest.mark.kip(875, "altering offsets")
def test_offsets_can_be_altered_and_reset(
    client: Client, topic_of_orders: Orders, name: str, tmp_path: Path, ids: Callable[[], list[int]]
) -> None:
    topic_of_orders.send(9)
    client.create(name, sink(topic_of_orders.topic, tmp_path / "out", **EXACT))
    await_(lambda: committed(client, name) == 9, "the commit", 90)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    where = {"kafka_topic": topic_of_orders.topic, "kafka_partition": 1}
    moved = {"offsets": [{"partition": where, "offset": {"kafka_offset": 2}}]}
    client.call("PATCH", f"/connectors/{name}/offsets", 200, json=moved)
    client.put(name, "resume")
    await_(lambda: committed(client, name) == 9, "the commit again", 90)
    assert ids() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 8]
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    client.call("DELETE", f"/connectors/{name}/offsets", 200)
    client.put(name, "resume")
    await_(lambda: len(ids()) == 19, "all again", 90)


def test_a_backlog_that_executors_read_is_written_piece_by_piece(
    client: Client, worker: StandaloneWorker, topic_of_orders: Orders, name: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, ids: Callable[[], list[int]],
) -> None:  # fmt: skip
    """Not when the flush interval is over: memory would not hold it. Headers come along."""
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 10_000)
    topic_of_orders.send(60_000)
    many = {"rotate.ms": "600000", "rotate.records": "20000", "metadata.columns": "_headers"}
    client.create(name, sink(topic_of_orders.topic, tmp_path / "out", **EXACT, **many))
    await_(lambda: committed(client, name) >= 40_000, "most of it", 180)
    found = ids()
    assert len(found) >= 40_000
    assert len(set(found)) == len(found)
    frame = worker.engine.session().read.parquet(str(tmp_path / "out"))
    assert frame.schema["_headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    mixed = "_headers[0].key != 'number' OR CAST(_headers[0].value AS STRING) != CAST(id AS STRING)"
    assert frame.where(f"_headers IS NULL OR size(_headers) != 1 OR {mixed}").count() == 0


@pytest.mark.kip(875, "altering offsets")
def test_a_delta_table_has_each_key_once_and_offsets_of_a_users_choice(
    client: Client, worker: StandaloneWorker, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    def send(key: str, value: bytes | None) -> None:
        producer.produce(topic, value, key.encode())

    fields = [{"field": "id", "type": "string"}, {"field": "n", "type": "int32"}]
    for number in range(30):
        send(f"k{number % 10}", message({"id": f"k{number % 10}", "n": number}, fields))
    send("k3", None)
    assert producer.flush(20) == 0
    upsert = {"format": "delta", "mode": "upsert", "key.columns": "id", "exactly.once": "true"}
    client.create(name, sink(topic, tmp_path / "out", **upsert))
    await_(lambda: committed(client, name) == 31, "the commit", 120)
    frame = worker.engine.session().read.format("delta").load(str(tmp_path / "out"))
    assert {row.id: row.n for row in frame.collect()} == {f"k{n}": 20 + n for n in range(10) if n != 3}
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    frame = worker.engine.session().read.format("delta").load(str(tmp_path / "out"))
    worker.engine.session().sql(f"DELETE FROM delta.`{tmp_path / 'out'}`").collect()
    where = {"kafka_topic": topic, "kafka_partition": 0}
    moved = {"offsets": [{"partition": where, "offset": {"kafka_offset": 26}}]}
    answer = client.call("PATCH", f"/connectors/{name}/offsets", 200, json=moved)
    assert answer["message"] == "The offsets for this connector have been altered successfully"
    client.put(name, "resume")
    await_(lambda: committed(client, name) == 31, "the commit again", 90)
    assert {row.id: row.n for row in frame.collect()} == {f"k{n}": 20 + n for n in range(6, 10)}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"mode": "overwrite"}, "String must be one of: append, upsert"),
        ({"format": "org.evil.Source"}, "headgate.tables"),
        ({"options.fs.file.impl": "evil.Files"}, "for the worker file"),
        ({"path": "s3a://a/b", "exactly.once": "true"}, "of this machine or of hdfs:// only"),
    ],
)
def test_a_wrong_configuration_is_refused(
    client: Client, name: str, topic: str, tmp_path: Path, more: dict[str, str], problem: str
) -> None:
    answer = client.create(name, {**sink(topic, tmp_path), **more}, 400)
    assert problem in answer["message"]
