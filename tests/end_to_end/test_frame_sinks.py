"""Sinks that take DataFrames, when records are bad: the frame has the good ones, the queue the others."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from dead_letters_support import Dead, committed, header, metric, send, send_backlog
from harness import JSON, STRING, Client, await_

from headgate.cli.assembly import StandaloneWorker
from headgate.tasks.sink import catch_up

pytestmark = [pytest.mark.spark, pytest.mark.kip(298, "error handling in Connect")]


@pytest.fixture(autouse=True, scope="module")
def warm(worker: StandaloneWorker, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first frame of a JVM takes it up to half a minute on a busy machine, which is not what is tested."""
    frame = worker.engine.session().range(1).selectExpr("id AS offset", "'x' AS value")
    frame.write.json(str(tmp_path_factory.mktemp("warm") / "out"))


def frame_sink(topic: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "FrameSink",
        "topics": topic,
        "folder": str(folder),
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter": STRING,
        **more,
    }


def written(folder: Path) -> dict[int, object]:
    """By their offsets, what was written to the end."""
    rows = [
        json.loads(line)
        for done in folder.glob("*/_SUCCESS")
        for part in done.parent.glob("part-*")
        for line in part.read_text().splitlines()
    ]
    return {row["offset"]: json.loads(row["value"]) if "value" in row else None for row in rows}


TOLERANT = {"errors.tolerance": "all"}


def test_a_frame_has_the_good_records_and_the_queue_the_bad_one(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'{"n":1}', b'{"not": \xff', b'{"n":2}')
    client.create(name, frame_sink(topic, tmp_path, **TOLERANT, **dead.config))
    await_(lambda: len(written(tmp_path)) == 2, "the good records")
    assert written(tmp_path) == {0: {"n": 1}, 2: {"n": 2}}
    letter = dead.one()
    assert (letter.value(), header(letter, "offset")) == (b'{"not": \xff', "1")
    assert header(letter, "stage") == "VALUE_CONVERTER"
    await_(lambda: committed(client, name) == 3, "the commit")
    send(producer, topic, b"{", b"[")  # a batch without any good record
    await_(lambda: len(dead.letters()) == 3, "their dead letters")
    await_(lambda: committed(client, name) == 5, "their commit")
    send(producer, topic, b'{"n":3}')
    await_(lambda: written(tmp_path).get(5) == {"n": 3}, "what comes after them")
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    assert metric(client, name, "total_records_skipped") == 3


def test_a_transform_that_fails_and_one_that_is_to_be_tried_again(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    send(producer, topic, b'"one"', b'"bad"', b'"later"', b'"two"')
    transforms = {
        "transforms": "f,p",
        "transforms.f.type": "faulty.FailingTransform",
        "transforms.p.type": "faulty.PatientTransform",
        "transforms.p.while": str(gate),
        "errors.retry.timeout": "-1",
        "errors.retry.delay.max.ms": "300",
    }
    client.create(name, frame_sink(topic, tmp_path / "out", **TOLERANT, **dead.config, **transforms))
    await_(lambda: metric(client, name, "total_retries") >= 2, "some retries")
    gate.unlink()
    await_(lambda: written(tmp_path / "out") == {0: "one", 2: "later", 3: "two"}, "all but the bad one")
    letter = dead.one()
    assert (letter.value(), header(letter, "class.name")) == (b'"bad"', "faulty.FailingTransform")
    await_(lambda: committed(client, name) == 4, "the commit")


@pytest.mark.kip(610, "errant record reporter")
def test_a_task_reports_a_row_itself(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'"one"', b'"errant"', b'"two"')
    client.create(name, frame_sink(topic, tmp_path, report='"errant"', **TOLERANT, **dead.config))
    letter = dead.one()
    assert (header(letter, "stage"), header(letter, "topic"), header(letter, "offset")) == ("TASK_PUT", topic, "1")
    assert header(letter, "exception.message") == "the warehouse does not like it"
    await_(lambda: written(tmp_path) == {0: "one", 2: "two"}, "the others")
    await_(lambda: committed(client, name) == 3, "the commit")


def test_a_frame_is_put_again_without_its_bad_records_being_told_twice(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    send(producer, topic, b'"one"', b"{", b'"two"')
    out = tmp_path / "out"
    client.create(name, frame_sink(topic, out, **{"retry.while": str(gate)}, **TOLERANT, **dead.config))
    await_(lambda: metric(client, name, "total_retries") >= 2, "some retries")
    assert committed(client, name) == 0
    gate.unlink()
    await_(lambda: written(out) == {0: "one", 2: "two"}, "the good records")
    assert dead.one().value() == b"{"
    await_(lambda: committed(client, name) == 3, "the commit")


def test_without_tolerance_the_task_fails_by_the_records_place(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'"one"', b"{")
    client.create(name, frame_sink(topic, tmp_path, **dead.config))
    trace = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert f"{{topic='{topic}', partition=0, offset=1}}" in trace
    assert dead.one().value() == b"{"
    assert committed(client, name) == 0


def test_typed_frames_have_the_columns_of_the_records_and_end_where_these_change(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    whole, half = b'{"n":1,"tags":["a"],"in":{"x":null}}', b'{"n":1.5}'
    send(producer, topic, whole, b"{", whole, half)
    client.create(name, frame_sink(topic, tmp_path, **TOLERANT, **dead.config) | {"connector.class": "TypedFrameSink"})
    await_(lambda: committed(client, name) == 4, "the commit")
    tables = [pq.read_table(done.parent) for done in tmp_path.glob("*/_SUCCESS")]
    rows = sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["offset"])
    assert rows == [
        {"offset": 0, "n": 1, "tags": ["a"], "in": {"x": None}},
        {"offset": 2, "n": 1, "tags": ["a"], "in": {"x": None}},
        {"offset": 3, "n": 1.5},
    ]
    assert {str(table.schema.field("n").type) for table in tables} == {"int64", "double"}
    assert dead.one().value() == b"{"


@pytest.mark.parametrize("tolerant", [True, False])
def test_one_bad_record_in_a_large_backlog_of_frames(
    client: Client,
    dead: Dead,
    producer: Producer,
    name: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tolerant: bool,
) -> None:
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 10_000)
    count, bad = send_backlog(producer, topic)
    config = frame_sink(topic, tmp_path)
    client.create(name, {**config, **TOLERANT, **dead.config} if tolerant else config)
    if not tolerant:
        trace = client.await_states(name, "RUNNING", "FAILED", seconds=90)["tasks"][0]["trace"]
        assert f"{{topic='{topic}', partition=0, offset={bad}}}" in trace
        assert committed(client, name) < bad
        return
    await_(lambda: committed(client, name) == count, "the commit", 90)
    assert written(tmp_path) == {number: number for number in range(count) if number != bad}
    letter = dead.one()
    assert (letter.value(), header(letter, "offset")) == (b"{", str(bad))
    assert client.states(name) == ("RUNNING", ["RUNNING"])
