"""Records out of nothing: all of them arrive, whatever happens in between, and they are those that were expected."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from harness import JSON, Client, await_
from mirror_support import Seen, create, seen

from headgate.connectors.datagen.compact import read_compact
from headgate.connectors.datagen.random_rows import RandomRows
from headgate.connectors.datagen.slices import BLOCK, SLICES
from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

CONVERTERS = {
    "key.converter": JSON,
    "key.converter.schemas.enable": "false",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
}
SCHEMA = "id sequence, user long(1, 50), name name by user, tags array(word, 0, 3), home { city city } ?0.2"
COUNT = 5_000


def expected(seed: int, count: int) -> list[Any]:
    numbers = np.arange(count)
    rows: list[Any] = read_compact(SCHEMA).column(RandomRows.of(seed, numbers, numbers), 0).to_pylist()
    return rows


def end(broker: Broker, topic: str) -> int:
    """How many there are, also while more are coming."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        found = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
        return 0 if found is None else found[1]
    finally:
        reader.close()


def values(found: list[Seen]) -> list[Any]:
    return [json.loads(each.value or b"") for each in found]


def test_after_a_restart_and_with_other_tasks_it_goes_on_with_what_would_have_come(
    client: Client, broker: Broker, name: str, topic: str
) -> None:
    create(broker.bootstrap, topic)
    start = int(time.time()) * 1000
    config = {
        "connector.class": "headgate.connectors.Datagen",
        "topic": topic,
        "schema": SCHEMA,
        "rate": "250",
        "records": str(COUNT),
        "seed": "7",
        "key.field": "user",
        "timestamp.start": str(start),
        "timestamp.step.ms": "10",
        **CONVERTERS,
    }
    client.create(name, config)
    await_(lambda: end(broker, topic) >= 300, "the first records", 120)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    await_(lambda: end(broker, topic) >= 1000, "records after the restart", 120)
    assert end(broker, topic) < COUNT, "it shall be in the middle"
    client.call("PUT", f"/connectors/{name}/config", 200, json={**config, "tasks.max": "3", "rate": "20000"})
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING", "RUNNING")
    ends = {block % SLICES: (block + 1) * BLOCK for block in range(COUNT // BLOCK)}

    def all_stored() -> bool:
        return ends == {each["partition"]["datagen"]: each["offset"]["records"] for each in client.offsets(name)}

    await_(all_stored, "the offsets of the last records", 60)
    found = seen(broker.bootstrap, topic)
    # At least once: some may have come again.
    by_number = {row["id"]: row for row in values(found)}
    assert [by_number[number] for number in sorted(by_number)] == expected(7, COUNT)
    assert len(found) < COUNT + 1500
    for each, row in zip(found, values(found), strict=True):
        assert json.loads(each.key or b"") == row["user"]
        assert each.timestamp == start + 10 * row["id"]
    first = list(dict.fromkeys(row["id"] for row in values(found)))[:1000]
    assert first == list(range(1000)), "one task makes them in their order"


def test_offsets_that_are_altered_move_the_sequence(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    config = {"connector.class": "Datagen", "topic": topic, "schema": SCHEMA, "rate": "0", "records": "250"}
    client.create(name, {**config, **CONVERTERS}, state="STOPPED")
    moved = [{"partition": {"datagen": number}, "offset": {"records": 240}} for number in range(3)]
    client.call("PATCH", f"/connectors/{name}/offsets", 200, json={"offsets": moved})
    bad = [{"partition": {"datagen": 0}, "offset": {"records": "many"}}]
    refused = client.call("PATCH", f"/connectors/{name}/offsets", 500, json={"offsets": bad})
    assert "An offset is" in refused["message"]
    client.put(name, "resume")
    await_(lambda: end(broker, topic) >= 10, "the last records", 120)
    assert [row["id"] for row in values(seen(broker.bootstrap, topic))] == list(range(240, 250))


def test_a_configuration_of_confluent_s_works(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    config = {
        "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
        "kafka.topic": topic,
        "quickstart": "users_",
        "max.interval": "2",
        "iterations": "300",
        "tasks.max": "2",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
    }
    client.create(name, config)
    await_(lambda: end(broker, topic) >= 600, "two times the iterations", 120)
    found = seen(broker.bootstrap, topic)
    assert len(found) == 600
    for each, row in zip(found, values(found), strict=True):
        assert row["schema"]["name"] == "users_"
        assert (each.key or b"").decode() == row["payload"]["userid"]
        assert 1 <= len(row["payload"]["contactinfo"]) <= 3


def test_a_schema_that_makes_no_sense_is_a_400_that_names_the_place(client: Client, name: str, topic: str) -> None:
    config = {"connector.class": "Datagen", "topic": topic, "schema": "id sequence, city town"}
    answer = client.create(name, config, expected=400)
    assert "line 1, column 19: there is no generator town" in answer["message"]
    avro = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "number"}]}'
    answer = client.create(name, {**config, "schema": avro}, expected=400)
    assert "field a: there is no type number" in answer["message"]
