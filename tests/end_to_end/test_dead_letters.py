"""Bad records on a real worker: retried, left out, kept as dead letters; and no offset goes ahead of these."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from dead_letters_support import PREFIX, Dead, committed, header, metric, send, send_backlog
from harness import JSON, SOURCE, STRING, Client, Headers, await_, headers_of, lines, sink_config, source_config

from headgate.dev.broker import Broker
from headgate.tasks import reporter
from headgate.tasks.sink import catch_up

pytestmark = [pytest.mark.spark, pytest.mark.kip(298, "error handling in Connect")]


def faulty_sink(topic: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "connector.class": "FaultySink",
        "topics": topic,
        "log": str(folder / "calls"),
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter": STRING,
        **more,
    }


def put(folder: Path) -> list[str]:
    """Values as the task got them."""
    return [line.split(" ", 1)[1] for line in lines(folder / "calls.records")]


def test_a_sink_goes_on_and_keeps_the_bad_record_as_it_was(
    client: Client,
    dead: Dead,
    producer: Producer,
    name: str,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    original: Headers = [("h", b"\x00\xff"), ("h", None), ("x", b"")]
    send(producer, topic, b'"one"')
    producer.produce(topic, b'{"not": \xff', b"\xfekey", headers=original, timestamp=1700000000123)
    send(producer, topic, b'"two"')
    log = {"errors.log.enable": "true", "errors.log.include.messages": "true"}
    client.create(name, faulty_sink(topic, tmp_path, **{"errors.tolerance": "all"}, **dead.config, **log))
    await_(lambda: len(put(tmp_path)) == 2, "the good records")
    assert put(tmp_path) == ["'one'", "'two'"]
    letter = dead.one()
    assert (letter.key(), letter.value(), letter.timestamp()) == (b"\xfekey", b'{"not": \xff', (1, 1700000000123))
    headers = headers_of(letter)
    assert headers[:3] == original
    assert [(key.removeprefix(PREFIX), value) for key, value in headers[3:10]] == [
        ("topic", topic.encode()),
        ("partition", b"0"),
        ("offset", b"1"),
        ("connector.name", name.encode()),
        ("task.id", b"0"),
        ("stage", b"VALUE_CONVERTER"),
        ("class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    ]
    rest = ["exception.class.name", "exception.message", "exception.stacktrace"]
    assert [key for key, _ in headers[10:]] == [PREFIX + each for each in rest]
    assert header(letter, "exception.class.name") == "org.apache.kafka.connect.errors.DataException"
    assert "Traceback" in header(letter, "exception.stacktrace")
    assert dead.partitions() == 1
    await_(lambda: committed(client, name) == 3, "the commit of all three")
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    line = (
        f"Error encountered in task {name}-0. Executing stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.json.JsonConverter', where consumed record is "
        f"{{topic='{topic}', partition=0, offset=1, timestamp=1700000000123, timestampType=CreateTime}}. Data"
    )
    assert any(message.startswith(line) for message in caplog.messages)
    counts = {
        what: metric(client, name, what)
        for what in (
            "total_record_failures",
            "total_record_errors",
            "total_records_skipped",
            "total_retries",
            "total_errors_logged",
            "deadletterqueue_produce_requests",
            "deadletterqueue_produce_failures",
        )
    }
    assert list(counts.values()) == [1, 1, 1, 0, 1, 1, 0], counts
    assert abs(metric(client, name, "last_error_timestamp") / 1000 - time.time()) < 120


@pytest.mark.kip(610, "errant record reporter")
def test_a_task_reports_a_record_itself(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'"one"', b' "errant" ', b'"two"')
    more = {"fail.in": "report", "errors.tolerance": "all", **dead.config}
    client.create(name, faulty_sink(topic, tmp_path, **more))
    letter = dead.one()
    assert letter.value() == b' "errant" '
    assert (header(letter, "stage"), header(letter, "offset")) == ("TASK_PUT", "1")
    assert header(letter, "class.name") == "faulty.FaultySinkTask"
    assert header(letter, "exception.message") == "the table does not like it"
    await_(lambda: put(tmp_path) == ["'one'", "'two'"], "the others")
    await_(lambda: committed(client, name) == 3, "the commit")


def test_a_source_has_dead_letters_too(
    client: Client, dead: Dead, name: str, topic: str, broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\nbad\ntwo\n")
    transform = {"transforms": "f", "transforms.f.type": "faulty.FailingTransform"}
    config = source_config(tmp_path / "in.txt", topic, **{"errors.tolerance": "all"}, **transform, **dead.config)
    client.create(name, config)
    letter = dead.one()
    assert (letter.key(), letter.value()) == (None, b"bad")
    keys = [key.removeprefix(PREFIX) for key, _ in headers_of(letter)]
    assert keys[:5] == ["topic", "source.partition", "source.offset", "connector.name", "task.id"]
    assert header(letter, "topic") == topic
    assert header(letter, "source.partition") == f'{{"filename":"{tmp_path / "in.txt"}"}}'
    assert header(letter, "source.offset") == '{"position":12}'
    assert (header(letter, "stage"), header(letter, "class.name")) == ("TRANSFORMATION", "faulty.FailingTransform")
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two"], "the good lines")
    await_(lambda: client.offsets(name), "the commit")
    assert client.offsets(name)[0]["offset"] == {"position": 12}


# --- what Kafka refuses of a source -----------------------------------------------------------------------------------


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, topic: str, **config: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(20)


SMALL = {"max.message.bytes": "1000"}


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_a_source_goes_on_after_a_record_that_is_too_large_for_its_topic(
    client: Client,
    admin: AdminClient,
    dead: Dead,
    name: str,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create(admin, topic, **SMALL)
    large = "x" * 3000
    few = [f"line {number}" for number in range(60)]
    (tmp_path / "in.txt").write_text("\n".join([*few[:30], large, *few[30:], ""]))
    log = {"errors.log.enable": "true", "errors.log.include.messages": "true"}
    config = source_config(tmp_path / "in.txt", topic, **{"errors.tolerance": "all"}, **dead.config, **log)
    client.create(name, config)
    letter = dead.one()
    assert (letter.key(), letter.value()) == (None, large.encode())
    end = (tmp_path / "in.txt").stat().st_size
    assert (header(letter, "topic"), header(letter, "stage")) == (topic, "KAFKA_PRODUCE")
    assert header(letter, "class.name") == "org.apache.kafka.connect.runtime.WorkerSourceTask"
    assert header(letter, "source.offset") == f'{{"position":{end}}}'
    reason = f"Broker: Message size too large, record of 3000 bytes for topic {topic}"
    assert reason in header(letter, "exception.message")
    await_(lambda: client.offsets(name), "the commit")
    assert client.offsets(name)[0]["offset"] == {"position": end}
    with (tmp_path / "in.txt").open("a") as file:
        file.write("and on\n")
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == [*few, "and on"], "the others, in their order")
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    assert (
        "stage 'KAFKA_PRODUCE' with class 'org.apache.kafka.connect.runtime.WorkerSourceTask', where source"
        in caplog.text
    )
    assert f"value={large}" in caplog.text
    whats = ("failures", "errors", "records_skipped", "retries", "errors_logged")
    counts = [metric(client, name, f"total_record_{what}") for what in whats[:2]]
    counts += [metric(client, name, f"total_{what}") for what in whats[2:]]
    assert counts == [1, 1, 1, 0, 1]


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_without_tolerance_a_refused_record_fails_the_source_by_topic_and_reason(
    client: Client, admin: AdminClient, dead: Dead, name: str, topic: str, tmp_path: Path
) -> None:
    create(admin, topic, **SMALL)
    (tmp_path / "in.txt").write_text("one\n" + "x" * 3000 + "\n")
    client.create(f"{name}-plain", source_config(tmp_path / "in.txt", topic))
    client.create(name, source_config(tmp_path / "in.txt", topic, **dead.config))
    for each in (name, f"{name}-plain"):
        trace = client.await_states(each, "RUNNING", "FAILED")["tasks"][0]["trace"]
        assert trace.splitlines()[-1].endswith(
            "Unrecoverable exception from producer send callback: Broker: Message size too large, record of 3000 bytes"
            f" for topic {topic}"
        )
        assert client.offsets(each) == []
    assert dead.one().value() == b"x" * 3000


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_a_topic_that_can_never_be_is_tolerated_too(
    client: Client, dead: Dead, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    router = {"transforms": "r", "transforms.r.regex": ".*", "transforms.r.replacement": "no topic!"}
    router["transforms.r.type"] = "org.apache.kafka.connect.transforms.RegexRouter"
    config = source_config(tmp_path / "in.txt", topic, **{"errors.tolerance": "all"}, **router, **dead.config)
    client.create(name, config)
    await_(lambda: len(dead.letters()) == 2, "the dead letters")
    assert [letter.value() for letter in dead.letters()] == [b"one", b"two"]
    # Whichever Kafka's client hears first: that the name is wrong, or that there is no such topic.
    told = header(dead.letters()[0], "exception.message")
    assert re.search("Broker: Invalid topic|Local: Unknown topic", told)
    assert "for topic no topic!" in told
    assert header(dead.letters()[0], "topic") == "no topic!"
    await_(lambda: client.offsets(name), "the commit")
    assert client.states(name) == ("RUNNING", ["RUNNING"])


@pytest.mark.kip(298, "KAFKA_PRODUCE")
def test_no_source_offset_is_stored_before_the_dead_letter_of_a_refused_record_is_acknowledged(
    client: Client,
    admin: AdminClient,
    dead: Dead,
    name: str,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(admin, topic, **SMALL)
    (tmp_path / "in.txt").write_text("one\n" + "x" * 3000 + "\ntwo\n")
    config = source_config(tmp_path / "in.txt", topic, **{"errors.tolerance": "all"}, **dead.config)
    with monkeypatch.context() as patch:  # the letters go nowhere; the other records of a source do not go with them
        patch.setattr(reporter, "producer_config", lambda _: {"bootstrap.servers": "127.0.0.1:1"})
        client.create(name, config)
        await_(lambda: metric(client, name, "deadletterqueue_produce_requests") == 1, "the dead letter")
    time.sleep(7.0)  # more than one commit, each of which waits for five seconds
    assert client.offsets(name) == []
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    client.call("POST", f"/connectors/{name}/tasks/0/restart", 204)
    assert dead.one().value() == b"x" * 3000
    await_(lambda: client.offsets(name), "the commit")


def test_without_tolerance_the_task_fails_and_the_record_is_kept_all_the_same(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'"one"')
    client.create(name, faulty_sink(topic, tmp_path, **dead.config))
    await_(lambda: committed(client, name) == 1, "the first commit")
    send(producer, topic, b"{", b'"two"')
    trace = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert "Tolerance exceeded in error handler" in trace
    assert f"{{topic='{topic}', partition=0, offset=1}}" in trace
    assert "headgate.api.errors.DataError" in trace
    assert dead.one().value() == b"{"
    assert committed(client, name) == 1


def test_a_queue_that_cannot_be_made_fails_the_task(client: Client, dead: Dead, name: str, topic: str) -> None:
    config = {**dead.config, "errors.deadletterqueue.topic.replication.factor": "3"}
    for kind, own in (("in", source_config(Path("/no/such"), topic)), ("out", sink_config(Path("/dev/null"), topic))):
        client.create(f"{name}-{kind}", {**own, **config})
        trace = client.await_states(f"{name}-{kind}", "RUNNING", "FAILED")["tasks"][0]["trace"]
        assert f"Could not initialize dead letter queue with topic={dead.topic}" in trace
        assert "Set errors.deadletterqueue.topic.replication.factor to" in trace


def test_no_offset_is_committed_before_its_dead_letter_is_acknowledged(
    client: Client, dead: Dead, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    send(producer, topic, b'"one"', b"{", b'"two"')
    config = faulty_sink(topic, tmp_path, **{"errors.tolerance": "all"}, **dead.config)
    nowhere = {"producer.override.bootstrap.servers": "127.0.0.1:1"}
    client.create(name, {**config, **nowhere})
    await_(lambda: len(put(tmp_path)) == 2, "the good records")
    time.sleep(7.0)  # more than one commit, each of which waits for five seconds
    assert committed(client, name) == 0
    assert client.states(name) == ("RUNNING", ["RUNNING"])
    client.call("PUT", f"/connectors/{name}/config", 200, json=config)
    assert dead.one().value() == b"{"
    await_(lambda: committed(client, name) == 3, "the commit")


@pytest.mark.kip(298, "retries")
def test_a_record_is_tried_again_until_it_goes_and_nobody_else_waits(
    client: Client, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    send(producer, topic, b'"one"', b'"later"', b'"two"')
    retry: dict[str, Any] = {
        "errors.retry.timeout": "-1",
        "errors.retry.delay.max.ms": "500",
        "transforms": "p",
        "transforms.p.type": "faulty.PatientTransform",
        "transforms.p.while": str(gate),
    }
    client.create(name, faulty_sink(topic, tmp_path, **retry))
    await_(lambda: put(tmp_path) == ["'one'"], "what comes before it")
    await_(lambda: metric(client, name, "total_retries") >= 3, "some retries")
    (tmp_path / "in.txt").write_text("meanwhile\n")
    client.create(f"{name}-in", {**source_config(tmp_path / "in.txt", f"{topic}-2"), "connector.class": SOURCE})
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", f"{topic}-2"))
    await_(lambda: lines(tmp_path / "out.txt") == ["meanwhile"], "somebody else's record")
    began = time.monotonic()
    client.put(name, "stop")
    assert time.monotonic() - began < 4, "a task that waits must stop at once"
    client.put(name, "resume")
    await_(lambda: metric(client, name, "total_retries") >= 1, "the retries to go on")
    gate.unlink()
    await_(lambda: put(tmp_path)[-2:] == ["'later'", "'two'"], "the rest")
    await_(lambda: committed(client, name) == 3, "the commit")
    assert metric(client, name, "total_record_errors") == 0


def test_partitions_go_and_come_while_a_record_waits_to_be_tried_again(
    client: Client, broker: Broker, producer: Producer, name: str, topic: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
    gate = tmp_path / "gate"
    gate.touch()
    for partition, value in enumerate((b'"later"', b'"one"')):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(20) == 0
    transform = {"transforms": "p", "transforms.p.type": "faulty.PatientTransform", "transforms.p.while": str(gate)}
    client.create(name, faulty_sink(topic, tmp_path, **{"errors.retry.timeout": "-1"}, **transform))
    await_(lambda: metric(client, name, "total_retries") >= 1, "a retry")
    group = {"group.id": f"connect-{name}", "enable.auto.commit": False}
    other = Consumer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **group})
    other.subscribe([topic])
    await_(lambda: other.poll(0.1) is None and other.assignment(), "a partition for somebody else", 40)
    other.close()
    gate.unlink()
    await_(lambda: {"'later'", "'one'"} <= set(put(tmp_path)), "both records", 15)
    await_(lambda: committed(client, name) == 2, "the commit", 40)
    assert client.states(name) == ("RUNNING", ["RUNNING"])


def test_one_bad_record_in_a_large_backlog(
    client: Client,
    dead: Dead,
    producer: Producer,
    name: str,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 10_000)
    count, bad = send_backlog(producer, topic)
    converter = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    config = sink_config(tmp_path / "out.txt", topic, **converter, **{"errors.tolerance": "all"}, **dead.config)
    with caplog.at_level("INFO", logger="headgate.tasks.sink.loop"):
        client.create(name, config)
        await_(lambda: len(lines(tmp_path / "out.txt")) >= count - 1, "all good lines", 90)
    assert "the executors read" in caplog.text
    assert lines(tmp_path / "out.txt") == [str(number) for number in range(count) if number != bad]
    letter = dead.one()
    assert (letter.value(), header(letter, "offset")) == (b"{", str(bad))
    await_(lambda: committed(client, name) == count, "the commit")
