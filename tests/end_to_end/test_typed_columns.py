"""Columns as they are, from a source's table through Kafka to a sink's: structs, headers, several source partitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from harness import Client, await_, headers_of, lines

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

COUNT = 500
PARTITIONS = ("left", "right")
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


def order(number: int, side: str) -> dict[str, Any]:
    """As tests/plugins/typed_columns.py makes them."""
    return {"number": number, "side": side, "tags": None if number % 7 == 0 else [side, str(number)]}


def schemas(enabled: bool) -> dict[str, str]:
    """Of values; keys are text."""
    return {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": str(enabled).lower()}


def source(client: Client, name: str, topic: str, **more: str) -> None:
    config = {"connector.class": "ColumnsSource", "topic": topic, "count": str(COUNT), "tasks.max": "1", **more}
    client.create(name, config)


def tables(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(path)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [row for table in tables(path) for row in table["rows"]]


@pytest.mark.parametrize("enabled", [True, False], ids=["schemas", "no schemas"])
def test_structs_come_as_columns_of_their_types(
    client: Client, name: str, topic: str, tmp_path: Path, enabled: bool
) -> None:
    source(client, f"{name}-in", topic, **schemas(enabled))
    file = tmp_path / "tables"
    config = {"connector.class": "TypedSink", "topics": topic, "file": str(file), "tasks.max": "1"}
    client.create(f"{name}-out", {**config, **schemas(enabled)})
    await_(lambda: len(rows(file)) >= 2 * COUNT, "all rows", 60)
    for side in PARTITIONS:
        found = [row for row in rows(file) if row["value"]["side"] == side]
        assert found == [{"key": f"k{number}", "value": order(number, side)} for number in range(COUNT)]
    kinds = {(table["key"], table["value"].replace("element:", "item:"), table["schema"]) for table in tables(file)}
    named = "order" if enabled else None
    tagged, untagged = (
        ("string", f"struct<number: int64, side: string, tags: {tags}>", named)
        for tags in ("list<item: string>", "null")
    )
    # Without a schema, a table knows of its own rows only, and a small one may have none with tags.
    assert kinds - ({untagged} if not enabled else set()) == {tagged}


def test_each_source_partition_has_its_offset_and_each_record_its_headers(
    client: Client, broker: Broker, name: str, topic: str
) -> None:
    source(client, name, topic, **schemas(False))
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "auto.offset.reset": "earliest"})
    reader.subscribe([topic])
    found: list[Any] = []

    def all_there() -> bool:
        found.extend(message for message in reader.consume(1000, 0.2) if message.error() is None)
        return len(found) >= 2 * COUNT

    await_(all_there, "all records", 60)
    reader.close()
    for message in found:
        number = json.loads(message.value())["number"]
        assert (message.key(), headers_of(message)) == (f"k{number}".encode(), [("h", f"header {number}".encode())])

    def at(offsets: Any) -> dict[str, int]:
        return {each["partition"]["side"]: each["offset"]["number"] for each in offsets}

    await_(lambda: at(client.offsets(name)) == dict.fromkeys(PARTITIONS, COUNT), "the commit of both")
    client.put(name, "stop")
    moved = {"offsets": [{"partition": {"side": "right"}, "offset": {"number": COUNT - 3}}]}
    client.call("PATCH", f"/connectors/{name}/offsets", 200, json=moved)
    client.put(name, "resume")
    await_(lambda: at(client.offsets(name)) == dict.fromkeys(PARTITIONS, COUNT), "the rest of the one that was moved")
