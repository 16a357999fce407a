"""Records go from a file through Kafka to a file: nothing lost, doubled or out of order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import JSON, Client, await_, lines, sink_config, source_config

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


def test_lines_of_a_file_arrive_in_another_file_in_order(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    written = [f"line {number}" for number in range(5000)]
    (tmp_path / "in.txt").write_text("\n".join(written) + "\n")
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: len(lines(tmp_path / "out.txt")) >= 5000, "all lines arriving", 60)
    assert lines(tmp_path / "out.txt") == written


def test_lines_appended_later_arrive_too(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("one\n")
    client.create(f"{name}-in", source_config(source, topic))
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one"], "the first line")
    with source.open("a") as file:
        file.write("two\nthree, not yet ended")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two"], "the second line")
    with source.open("a") as file:
        file.write("\n")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three, not yet ended"], "the third line")


@pytest.mark.parametrize("schemas", ["true", "false"])
def test_json_with_and_without_schemas_arrives_as_it_was(
    client: Client, name: str, topic: str, tmp_path: Path, schemas: str
) -> None:
    (tmp_path / "in.txt").write_text('plain text\n"quoted", é\n')
    converter = {"value.converter": JSON, "value.converter.schemas.enable": schemas}
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic, **converter))
    client.create(f"{name}-raw", sink_config(tmp_path / "raw.txt", topic))
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic, **converter))
    await_(lambda: lines(tmp_path / "out.txt") == ["plain text", '"quoted", é'], "the lines")
    await_(lambda: len(lines(tmp_path / "raw.txt")) == 2, "the bytes")
    first = json.loads(lines(tmp_path / "raw.txt")[0])
    schema = {"schema": {"type": "string", "optional": False}, "payload": "plain text"}
    assert first == (schema if schemas == "true" else "plain text")


def test_a_large_backlog_is_read_by_the_executors_and_loses_nothing(
    client: Client, name: str, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    count = 450_000
    with (tmp_path / "in.txt").open("w") as file:
        file.writelines(f"{number}\n" for number in range(count))
    client.create(f"{name}-in", source_config(tmp_path / "in.txt", topic, **{"batch.size": "20000"}))

    def all_sent() -> bool:
        offsets = client.offsets(f"{name}-in")
        return bool(offsets) and offsets[0]["offset"]["position"] == (tmp_path / "in.txt").stat().st_size

    await_(all_sent, "the whole file sent", 90)
    with caplog.at_level("INFO", logger="headgate.tasks.sink.loop"):
        client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
        await_(lambda: _size(tmp_path / "out.txt") >= (tmp_path / "in.txt").stat().st_size, "all lines", 90)
    assert "the executors read" in caplog.text
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "in.txt").read_text()

    def committed() -> bool:
        offsets: list[int] = [each["offset"]["kafka_offset"] for each in client.offsets(f"{name}-out")]
        return sum(offsets) == count

    await_(committed, "the commit")
    with (tmp_path / "in.txt").open("a") as file:
        file.write("after the backlog\n")
    await_(lambda: lines(tmp_path / "out.txt")[-1] == "after the backlog", "going on after it")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_a_paused_sink_stays_in_its_group_and_goes_on_where_it_was(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\n")
    client.create(f"{name}-in", source_config(source, topic))
    client.create(f"{name}-out", sink_config(out, topic))
    await_(lambda: lines(out) == ["one"], "the first line")
    client.put(f"{name}-out", "pause")
    client.await_states(f"{name}-out", "PAUSED", "PAUSED")
    partition = {"kafka_partition": 0, "kafka_topic": topic}
    assert client.offsets(f"{name}-out") == [{"partition": partition, "offset": {"kafka_offset": 1}}]
    with source.open("a") as file:
        file.write("two\n")
    stored = {"partition": {"filename": str(source)}, "offset": {"position": 8}}
    await_(lambda: client.offsets(f"{name}-in") == [stored], "the second line in Kafka")
    assert lines(out) == ["one"]
    client.put(f"{name}-out", "resume")
    client.await_states(f"{name}-out", "RUNNING", "RUNNING")
    await_(lambda: lines(out) == ["one", "two"], "the second line")


def test_two_sink_tasks_share_the_partitions_and_each_keeps_its_order(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(10)
    config = {"connector.class": "FaultySink", "topics": topic, "log": str(tmp_path / "calls"), "tasks.max": "2"}
    string = "org.apache.kafka.connect.storage.StringConverter"
    client.create(name, {**config, "value.converter": string})
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(400):
        producer.produce(topic, f"{number}".encode(), partition=number % 4)
    producer.flush()
    records = tmp_path / "calls.records"
    await_(lambda: len(lines(records)) >= 400, "all records")
    assert len(set(lines(records))) == len(lines(records)) == 400, "a record came twice"
    for partition in range(4):
        mine = [line.split() for line in lines(records) if line.startswith(f"{topic}-{partition}@")]
        assert [int(text.strip("'")) for _, text in mine] == list(range(partition, 400, 4))
    await_(lambda: sum(each["offset"]["kafka_offset"] for each in client.offsets(name)) == 400, "the commits")
    members = admin.describe_consumer_groups([f"connect-{name}"])[f"connect-{name}"].result(10).members
    assert len(members) == 2


def test_topics_by_pattern_made_later_and_deleted(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    config = {**sink_config(tmp_path / "out.txt", ""), "topics.regex": rf"{topic}-\p{{Lower}}"}
    del config["topics"]
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "c.txt").write_text("c\n")
    client.create(f"{name}-a", source_config(tmp_path / "a.txt", f"{topic}-a"))
    client.create(f"{name}-c", source_config(tmp_path / "c.txt", f"{topic}-abc"))
    fresh = {"consumer.override.metadata.max.age.ms": "500"}
    client.create(f"{name}-out", {**config, **fresh})
    await_(lambda: lines(tmp_path / "out.txt") == ["a"], "the first topic")
    (tmp_path / "b.txt").write_text("b\n")
    client.create(f"{name}-b", source_config(tmp_path / "b.txt", f"{topic}-b"))
    await_(lambda: sorted(lines(tmp_path / "out.txt")) == ["a", "b"], "the topic made later")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    group = f"connect-{name}-out"

    def assigned() -> set[str]:
        members = admin.describe_consumer_groups([group])[group].result(10).members
        return {each.topic for member in members for each in member.assignment.topic_partitions}

    client.delete(f"{name}-a")
    admin.delete_topics([f"{topic}-a"])[f"{topic}-a"].result(10)
    await_(lambda: assigned() == {f"{topic}-b"}, "the group without the deleted topic")
    assert f"{topic}-a" not in admin.list_topics(timeout=10).topics, "it was made anew"


def test_only_committed_records_are_read_when_asked_for(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush()
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"committed")
    producer.commit_transaction(30)
    config = sink_config(tmp_path / "out.txt", topic, **{"consumer.override.isolation.level": "read_committed"})
    client.create(name, config)
    await_(lambda: lines(tmp_path / "out.txt") == ["committed"], "the committed record alone")
