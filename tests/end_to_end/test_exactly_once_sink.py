"""FileStreamSink with exactly.once=true on a running worker: restarts, changed offsets, backlogs, transforms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import JSON, Client, await_, sink_config

from headgate.dev.broker import Broker
from headgate.spark.ranges import ResidentRanges
from headgate.tasks.sink import catch_up

pytestmark = pytest.mark.spark

PARTITIONS = 3


class Topic:
    """Numbered lines, spread over its partitions."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(20)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self.lines: dict[int, list[str]] = {number: [] for number in range(PARTITIONS)}

    def send(self, count: int, text: str = "line {0}") -> None:
        for number in range(count):
            partition = number % PARTITIONS
            line = text.format(len(self.lines[partition]))
            self.lines[partition].append(line)
            self._producer.produce(self.name, line.encode(), partition=partition)
        assert self._producer.flush(30) == 0

    @property
    def expected(self) -> dict[str, list[str]]:
        return {f"{self.name}-{number}": lines for number, lines in self.lines.items()}


@pytest.fixture
def lines(broker: Broker, topic: str) -> Topic:
    return Topic(broker, topic)


def written(folder: Path) -> dict[str, list[str]]:
    """By partition, in the order of the sorted paths."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("[!.]*/*/until-*.txt")):  # what is staged comes and goes meanwhile
        found.setdefault(file.parent.parent.name, []).extend(file.read_text().splitlines())
    return found


def count(folder: Path) -> int:
    return sum(map(len, written(folder).values()))


def config(folder: Path, topic: str, **more: str) -> dict[str, str]:
    return sink_config(folder, topic, **{"exactly.once": "true", **more})


def restart(client: Client, name: str, task: int) -> None:
    client.call("POST", f"/connectors/{name}/tasks/{task}/restart", 204)


def alter(client: Client, name: str, topic: str, offset: int) -> None:
    """As a group that has forgotten, or never heard: all partitions."""
    entries = [
        {"partition": {"kafka_topic": topic, "kafka_partition": number}, "offset": {"kafka_offset": offset}}
        for number in range(PARTITIONS)
    ]
    client.call("PATCH", f"/connectors/{name}/offsets", 200, json={"offsets": entries})


def stop(client: Client, name: str) -> None:
    client.put(name, "stop")
    client.await_states(name, "STOPPED")


def test_every_line_once_and_in_order_while_tasks_are_restarted(
    client: Client, name: str, lines: Topic, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    client.create(name, config(folder, lines.name, **{"tasks.max": "2"}))
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING", seconds=180)
    for round_ in range(4):
        lines.send(500)
        restart(client, name, round_ % 2)
        lines.send(500)
        client.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    await_(lambda: count(folder) >= 4000, "all lines", 90)
    assert written(folder) == lines.expected
    ends = sorted(map(len, lines.lines.values()))
    await_(lambda: sorted(each["offset"]["kafka_offset"] for each in client.offsets(name)) == ends, "the commit")


def test_the_folder_wins_over_a_group_that_was_set_back(
    client: Client, broker: Broker, name: str, lines: Topic, tmp_path: Path
) -> None:
    """By somebody who is not the connector: what the folder has does not come again, and nothing is left out."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Native

    folder = tmp_path / "out"
    lines.send(30)
    client.create(name, config(folder, lines.name))
    await_(lambda: count(folder) == 30, "the lines")
    for offset in (0, 3, 10):
        stop(client, name)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        group = f"connect-{name}"
        natives = [Native(lines.name, number, offset) for number in range(PARTITIONS)]
        admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, natives)])[group].result(20)
        lines.send(30)
        client.put(name, "resume")
        await_(lambda: count(folder) >= len(lines.lines[0]) * PARTITIONS, "the new lines")
        assert written(folder) == lines.expected


@pytest.mark.kip(875, "Can alter the offsets of a stopped sink, they are returned and used when it is resumed")
@pytest.mark.kip(875, "Can reset the offsets of a stopped sink and source connector")
def test_changed_offsets_are_used_and_nothing_is_taken_away(
    client: Client, name: str, lines: Topic, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    lines.send(30)
    client.create(name, config(folder, lines.name))
    await_(lambda: count(folder) == 30, "the lines")

    stop(client, name)
    alter(client, name, lines.name, 7)
    client.put(name, "resume")
    await_(lambda: count(folder) >= 39, "three lines of each partition again")
    again = {where: found + found[7:] for where, found in lines.expected.items()}
    assert written(folder) == again

    stop(client, name)
    answer = client.call("DELETE", f"/connectors/{name}/offsets", 200)
    assert answer == {"message": "The offsets for this connector have been reset successfully"}
    client.put(name, "resume")
    await_(lambda: count(folder) >= 69, "all lines again")
    assert written(folder) == {where: again[where] + found for where, found in lines.expected.items()}
    client.await_states(name, "RUNNING", "RUNNING")


def test_a_large_backlog_that_the_executors_read(
    client: Client, name: str, lines: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 2000)
    monkeypatch.setattr(ResidentRanges, "most", 6000)
    lines.send(30_000)
    folder = tmp_path / "out"
    client.create(name, config(folder, lines.name, **{"consumer.override.max.poll.records": "100"}))
    client.await_states(name, "RUNNING", "RUNNING")
    await_(lambda: count(folder) > 0, "the first lines", 60)
    restart(client, name, 0)
    await_(lambda: count(folder) >= 30_000, "all lines", 120)
    assert written(folder) == lines.expected


def test_transforms_change_topic_and_text_but_not_where_a_record_belongs(
    client: Client, name: str, lines: Topic, tmp_path: Path
) -> None:
    """The text is that of the default mode, and records that are dropped are not read again."""
    lines.send(300, '{{"n":{0},"keep":true}}')
    lines.send(30, "null")
    lines.send(300, '{{"n":{0},"keep":true}}')
    chain = {
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "transforms": "drop,route,mask",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "nothing",
        "predicates": "nothing",
        "predicates.nothing.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "everything",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "keep",
    }
    plain, folder = tmp_path / "plain.txt", tmp_path / "out"
    client.create(f"{name}-plain", sink_config(plain, lines.name, **chain))
    client.create(name, config(folder, lines.name, **chain))
    await_(lambda: count(folder) >= 600, "all lines", 60)
    await_(lambda: plain.exists() and len(plain.read_text().splitlines()) == 600, "those of the default mode")
    found = written(folder)
    assert sorted(found) == sorted(lines.expected)
    assert Counter(line for each in found.values() for line in each) == Counter(plain.read_text().splitlines())
    assert found[f"{lines.name}-0"][:2] == ["{n=0, keep=false}", "{n=1, keep=false}"]


def test_what_cannot_be_is_said(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    body: dict[str, Any] = config(tmp_path, topic)
    del body["file"]
    answer = client.create(name, body, 400)
    assert "for configuration file: exactly.once needs a folder to write to" in answer["message"]
