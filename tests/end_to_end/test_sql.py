"""Statements as transforms: one record becomes several or none, and the offsets are still exact."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from harness import JSON, Client, await_, lines, sink_config, source_config

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker
from headgate.tasks.sink import catch_up

pytestmark = pytest.mark.spark

SCHEMALESS = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
FAULTY = {"connector.class": "FaultySink", **SCHEMALESS}
WHER = "SELECT value.id FROM records WHER value.id > 1"


def statement(text: str, alias: str = "sql", **more: str) -> dict[str, str]:
    keys = {"transforms": alias, f"transforms.{alias}.type": "headgate.transforms.Sql"}
    return {**keys, f"transforms.{alias}.statement": text, **more}


def parsed(text: str) -> dict[str, str]:
    """The statement gets maps without schema, made of the lines of a file."""
    return {**statement(text), "transforms": "parse,sql", "transforms.parse.type": "ParseJson", **SCHEMALESS}


def produce(broker: Broker, topic: str, values: Iterable[Any], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value if isinstance(value, bytes) else json.dumps(value).encode(), partition=partition)
        producer.poll(0)
    producer.flush()


def consumed(broker: Broker, topic: str, count: int) -> list[Any]:
    """The messages of a topic, from its beginning; a little time for more than are wanted."""
    config = {"bootstrap.servers": broker.bootstrap, "group.id": f"read-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "topic.metadata.refresh.interval.ms": 200})
    consumer.subscribe([topic])
    found: list[Any] = []

    def enough() -> bool:
        found.extend(consumer.consume(1000, 0.2))
        return len(found) >= count

    await_(enough, "the records", 60)
    found.extend(consumer.consume(10, 0.5))
    consumer.close()
    return [message for message in found if message.error() is None]


def values(broker: Broker, topic: str, count: int) -> list[Any]:
    return [json.loads(message.value()) for message in consumed(broker, topic, count)]


def write(file: Path, rows: Iterable[Any]) -> Path:
    with file.open("a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    return file


def put(path: Path) -> list[tuple[str, Any]]:
    """What FaultySink got: the place and the value."""
    found = [line.partition(" ") for line in lines(path.with_name(path.name + ".records"))]
    return [(place, eval(value)) for place, _, value in found]


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_source_is_filtered_and_its_offset_counts_what_was_left_out(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "in.txt", [{"id": number, "price": number * 1.5} for number in range(10)])
    query = "SELECT value.id, value.price * 2 AS double_price FROM records WHERE value.price > 3 AND value.id < 6"
    client.create(name, source_config(file, topic, **parsed(query)))
    expected = [{"id": number, "double_price": number * 3.0} for number in range(3, 6)]
    assert values(broker, topic, 3) == expected

    def stored() -> bool:
        offsets = client.offsets(name)
        return bool(offsets) and offsets[0]["offset"]["position"] == file.stat().st_size

    await_(stored, "the offset after the whole batch")
    write(file, [{"id": 0, "price": 1.0}])
    await_(stored, "the offset of a batch of which nothing is left")


def test_a_record_becomes_several_with_key_topic_and_headers_of_its_own(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "in.txt", [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}, {"id": 3, "tags": ["c"]}])
    query = f"""
        SELECT '{topic}' AS topic, tag AS key, timestamp '2024-05-06 07:08:09' AS timestamp, value.id,
               array(named_struct('key', 'came', 'value', concat('from ', value.id))) AS headers
        FROM records LATERAL VIEW explode(value.tags) AS tag
    """
    keys = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
    client.create(name, source_config(file, "elsewhere", **parsed(query), **keys))
    found = consumed(broker, topic, 3)
    assert [(m.key(), json.loads(m.value()), m.headers()) for m in found] == [
        (b"a", {"id": 1}, [("came", b"from 1")]),
        (b"b", {"id": 1}, [("came", b"from 1")]),
        (b"c", {"id": 3}, [("came", b"from 3")]),
    ]
    assert {m.timestamp() for m in found} == {(1, 1714979289000)}


def test_a_batch_is_aggregated(client: Client, broker: Broker, name: str, topic: str, tmp_path: Path) -> None:
    file = write(tmp_path / "in.txt", [{"city": city, "sold": sold} for city in ("Graz", "Wien") for sold in (1, 2)])
    query = "SELECT value.city, sum(value.sold) AS sold, max(value.sold) AS best FROM records GROUP BY value.city"
    client.create(name, source_config(file, topic, **parsed(query)))
    found = sorted(values(broker, topic, 2), key=lambda each: each["city"])
    assert found == [{"city": city, "sold": 3, "best": 2} for city in ("Graz", "Wien")]


def test_text_with_a_schema_stays_text_with_a_schema(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    config = source_config(
        tmp_path / "in.txt", topic, **statement("SELECT upper(value) AS value FROM records ORDER BY value DESC")
    )
    client.create(name, {**config, "value.converter": JSON})
    schema = {"type": "string", "optional": False}
    assert values(broker, topic, 2) == [{"schema": schema, "payload": text} for text in ("TWO", "ONE")]


def test_two_statements_and_other_transforms_between_them(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "in.txt", [{"words": "to be or not to be"}])
    config = {
        **statement("SELECT word FROM records LATERAL VIEW explode(split(value.words, ' ')) AS word"),
        "transforms": "parse,sql,mark,count",
        "transforms.parse.type": "ParseJson",
        "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.mark.static.field": "seen",
        "transforms.mark.static.value": "yes",
        "transforms.count.type": "headgate.transforms.Sql",
        "transforms.count.statement": "SELECT value.word, value.seen, count(*) AS times FROM records GROUP BY ALL",
        **SCHEMALESS,
    }
    client.create(name, source_config(file, topic, **config))
    found = sorted(values(broker, topic, 4), key=lambda each: each["word"])
    assert found == [
        {"word": word, "seen": "yes", "times": times} for word, times in (("be", 2), ("not", 1), ("or", 1), ("to", 2))
    ]


# --- sinks ------------------------------------------------------------------------------------------------------------


def test_a_sink_with_a_statement_between_two_transforms_commits_exactly_what_it_read(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [{"id": number, "price": number, "secret": "x"} for number in range(20)])
    config = {
        **FAULTY,
        **statement("SELECT offset, value.id, value.secret FROM records WHERE value.price % 5 = 0"),
        "transforms": "mask,sql,mark",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "secret",
        "transforms.mask.replacement": "***",
        "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.mark.offset.field": "at",
        "topics": topic,
        "log": str(tmp_path / "calls"),
    }
    client.create(name, config)
    await_(lambda: len(put(tmp_path / "calls")) >= 4, "the records")
    assert put(tmp_path / "calls") == [
        (f"{topic}-0@{number}", {"id": number, "secret": "***", "at": number}) for number in (0, 5, 10, 15)
    ]
    partition = {"kafka_partition": 0, "kafka_topic": topic}
    await_(lambda: client.offsets(name) == [{"partition": partition, "offset": {"kafka_offset": 20}}], "the commit")
    client.put(name, "stop")
    produce(broker, topic, [{"id": 100, "price": 100, "secret": "y"}])
    client.put(name, "resume")
    await_(lambda: len(put(tmp_path / "calls")) >= 5, "going on after it")
    assert [value["id"] for _, value in put(tmp_path / "calls")] == [0, 5, 10, 15, 100]


def test_rows_that_do_not_say_so_have_topic_partition_and_offset_of_their_batch(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    for number, each in enumerate((f"{topic}-a", f"{topic}-b"), 1):
        produce(broker, each, [{"sold": number}] * 3)
    query = "SELECT sum(value.sold) AS sold FROM records"
    client.create(
        name, {**FAULTY, **statement(query), "topics": f"{topic}-a,{topic}-b", "log": str(tmp_path / "calls")}
    )

    def sold() -> dict[str, int]:
        found: dict[str, int] = {}
        for place, value in put(tmp_path / "calls"):
            where = place.partition("-0@")[0]
            found[where] = found.get(where, 0) + value["sold"]
        return found

    await_(lambda: sold() == {f"{topic}-a": 3, f"{topic}-b": 6}, "the sums, topic by topic")
    assert all(place.endswith("@2") for place, _ in put(tmp_path / "calls")[-1:])


def test_ragged_maps_one_by_one_and_fields_that_nobody_has(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    query = "SELECT value.a, value.b.c, size(value.list) AS size, value.never, value.mixed FROM records"
    client.create(name, {**FAULTY, **statement(query), "topics": topic, "log": str(tmp_path / "calls")})
    client.await_states(name, "RUNNING", "RUNNING")
    sent = [{"a": 1}, {"b": {"c": "x"}, "list": [1, 2]}, {}, {"mixed": 1}, {"mixed": "text"}]
    for number, value in enumerate(sent):
        produce(broker, topic, [value])
        await_(lambda number=number: len(put(tmp_path / "calls")) > number, "the record")  # type: ignore[misc]
    produce(broker, topic, [{"mixed": 1}, {"mixed": {"deep": [True]}}, {"mixed": "text"}])
    await_(lambda: len(put(tmp_path / "calls")) >= 8, "the rest")
    found = [value for _, value in put(tmp_path / "calls")]
    assert found[:5] == [{"a": 1}, {"c": "x", "size": 2}, {}, {"mixed": 1}, {"mixed": "text"}]
    assert [str(each["mixed"]) for each in found[5:]] == ["1", '{"deep":[true]}', "text"]


def test_a_tombstone_may_come_first_and_may_be_made(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    config = {**FAULTY, "key.converter": "org.apache.kafka.connect.storage.StringConverter", "topics": topic}
    query = "SELECT offset, key, value.* FROM records WHERE value IS NOT NULL"
    client.create(name, {**config, **statement(query), "log": str(tmp_path / "values")})
    query = "SELECT offset, key, if(value.gone, NULL, value) AS value FROM records"
    client.create(f"{name}-made", {**config, **statement(query), "log": str(tmp_path / "made")})
    client.await_states(name, "RUNNING", "RUNNING")
    client.await_states(f"{name}-made", "RUNNING", "RUNNING")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, None, key=b"a")
    producer.flush()
    await_(lambda: put(tmp_path / "made") == [(f"{topic}-0@0", None)], "the tombstone")
    await_(lambda: client.offsets(name) and client.offsets(name)[0]["offset"]["kafka_offset"] == 1, "its offset")
    produce(broker, topic, [{"n": 1, "gone": True}])
    await_(lambda: put(tmp_path / "values") == [(f"{topic}-0@1", {"n": 1, "gone": True})], "the value")
    await_(lambda: put(tmp_path / "made")[1:] == [(f"{topic}-0@1", None)], "the tombstone that was made")


def test_json_with_schemas_keeps_its_schema_where_its_type_is_kept(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    schema = {
        "type": "struct",
        "name": "Sale",
        "optional": False,
        "fields": [
            {"field": "id", "type": "int32", "optional": False},
            {
                "field": "day",
                "type": "int32",
                "optional": False,
                "name": "org.apache.kafka.connect.data.Date",
                "version": 1,
            },
        ],
    }
    produce(broker, topic, [{"schema": schema, "payload": {"id": number, "day": number}} for number in (1, 2, 3)])
    config = {"connector.class": "FaultySink", "value.converter": JSON, "topics": topic, "log": str(tmp_path / "calls")}
    client.create(f"{name}-kept", {**config, **statement("SELECT * FROM records WHERE value.id > 1")})
    await_(lambda: len(lines(tmp_path / "calls.records")) >= 2, "the records")
    assert lines(tmp_path / "calls.records") == [
        f"{topic}-0@{number - 1} Struct{{id={number},day=1970-01-0{number + 1}}}" for number in (2, 3)
    ]
    query = "SELECT value.id, date_add(value.day, 1) AS day, CAST(value.id AS DECIMAL(9, 2)) AS price FROM records"
    client.create(f"{name}-made", {**config, **statement(query), "log": str(tmp_path / "made")})
    await_(lambda: len(lines(tmp_path / "made.records")) >= 3, "the records made")
    assert lines(tmp_path / "made.records")[0] == f"{topic}-0@2 Struct{{id=1,day=1970-01-03,price=1.00}}"


def test_a_declared_schema_is_there_from_the_first_record(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [{"id": 1}])
    query = "SELECT offset, item.sku, item.n * 2 AS n FROM records LATERAL VIEW OUTER explode(value.items) AS item"
    schema = {"transforms.sql.value.schema": "id INT, items ARRAY<STRUCT<sku: STRING, n: INT>>"}
    client.create(name, {**FAULTY, **statement(query), **schema, "topics": topic, "log": str(tmp_path / "calls")})
    await_(lambda: len(put(tmp_path / "calls")) >= 1, "the first record")
    produce(broker, topic, [{"id": 2, "items": [{"sku": "x", "n": 2}, {"sku": "y"}], "other": 1}])
    await_(lambda: len(put(tmp_path / "calls")) >= 3, "the second record")
    assert [value for _, value in put(tmp_path / "calls")] == [{}, {"sku": "x", "n": 4}, {"sku": "y"}]
    produce(broker, topic, [{"id": "three"}])
    trace = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert "value.id: three is no int32" in trace
    wrong = {**FAULTY, **statement(query), **schema, "transforms.sql.value.schema": "id INTT", "topics": topic}
    refused = client.call("PUT", f"/connectors/{name}/config", 400, json={**wrong, "log": str(tmp_path / "calls")})
    assert "Invalid value id INTT for configuration transforms.sql.value.schema: " in refused["message"]


def test_a_sink_of_columns_and_one_of_dataframes(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [{"id": number} for number in range(4)])
    query = "SELECT partition, offset, value.id FROM records WHERE value.id % 2 = 1"
    config = {**sink_config(tmp_path / "lines", topic, **statement(query)), **SCHEMALESS}
    client.create(f"{name}-lines", config)
    client.create(f"{name}-frame", {**config, "connector.class": "FrameLines", "file": str(tmp_path / "frame")})
    await_(lambda: lines(tmp_path / "lines") == ["{id=1}", "{id=3}"], "the lines")
    await_(lambda: len(lines(tmp_path / "frame")) >= 2, "the rows")
    rows = [json.loads(line) for line in lines(tmp_path / "frame")]
    assert rows == [{"topic": topic, "partition": 0, "offset": at, "value": f'{{"id":{at}}}'} for at in (1, 3)]


def test_a_large_backlog_goes_through_a_statement(
    client: Client,
    broker: Broker,
    name: str,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 10_000)
    monkeypatch.setattr(catch_up, "_TOGETHER", 10_000)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(10)
    count = 23_000
    # What is sent again, because the topic is so new, keeps its place, and is not taken for sent by what follows it.
    settings = {"max.in.flight.requests.per.connection": 1}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for number in range(2 * count):
        producer.produce(topic, b'{"id":%d,"price":%d}' % (number, number % 10), partition=number % 2)
    producer.flush()
    query = "SELECT partition, offset, value.id FROM records WHERE value.price IN (6, 7)"
    with caplog.at_level("INFO", logger="headgate.tasks.sink.loop"):
        config = {**sink_config(tmp_path / "out", topic, **statement(query)), **SCHEMALESS}
        client.create(name, config)
        await_(lambda: len(lines(tmp_path / "out")) >= 2 * count / 5, "all that is wanted", 120)
    assert "the executors read" in caplog.text
    found = [int(line[4:-1]) for line in lines(tmp_path / "out")]
    for parity in (0, 1):  # which is the partition
        assert [each for each in found if each % 2 == parity] == list(range(6 + parity, 2 * count, 10))
    await_(lambda: sum(each["offset"]["kafka_offset"] for each in client.offsets(name)) == 2 * count, "the commit")


_PAGE = Path(__file__).parents[2] / "docs" / "sql.md"


@pytest.mark.parametrize("query", re.findall(r"^```sql\n(.*?)^```$", _PAGE.read_text(), re.MULTILINE | re.DOTALL))
def test_the_statements_of_the_page_run(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path, query: str
) -> None:
    items = [{"sku": "x", "quantity": 1}, {"sku": "y", "quantity": 2}]
    order = {"id": 7, "price": 9.5, "city": "Graz", "items": items, "payload": '{"a":1,"b":"x"}'}
    produce(broker, topic, [order])
    client.create(name, {**FAULTY, **statement(query), "topics": topic, "log": str(tmp_path / "calls")})
    await_(lambda: put(tmp_path / "calls"), "a record")
    assert all(place == f"{topic}-0@0" and isinstance(value, dict) for place, value in put(tmp_path / "calls"))


# --- what fails -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT valu.id FROM records", "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("SELECT CAST(value.name AS INT) AS name FROM records", "[CAST_INVALID_INPUT] The value 'Ann'"),
        ("SELECT key, timestamp FROM records", "No column makes the value"),
        ("SELECT value, value.id AS id FROM records", "there is no place for id"),
        ("SELECT value.id, value.id FROM records", "Two columns have the name id"),
        ("SELECT 1 AS topic, value FROM records", "Column topic must be STRING"),
        ("SELECT INTERVAL 1 DAY AS wait FROM records", "Column value.wait has the type duration"),
    ],
)
def test_a_statement_that_fails_fails_the_task_and_loses_nothing(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path, query: str, said: str
) -> None:
    produce(broker, topic, [{"id": 1, "name": "Ann"}])
    tolerant = {"errors.tolerance": "all"}
    log = str(tmp_path / "calls")
    client.create(name, {**FAULTY, **statement(query), **tolerant, "topics": topic, "log": log})
    trace = client.await_states(name, "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert f"Transform sql of connector {name} failed: " in trace
    assert said in trace
    assert query in trace
    assert "py4j" not in trace
    assert "'Project" not in trace
    await_(
        lambda: client.offsets(name) in ([], None) or client.offsets(name)[0]["offset"]["kafka_offset"] == 0,
        "no commit",
    )
    fixed = {**FAULTY, **statement("SELECT value.name FROM records"), "topics": topic, "log": log}
    client.call("PUT", f"/connectors/{name}/config", 200, json=fixed)
    await_(lambda: put(tmp_path / "calls") == [(f"{topic}-0@0", {"name": "Ann"})], "the record, after all")


def test_a_record_that_fails_behind_a_statement_is_a_record_that_fails(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, [{"id": 1, "word": "good"}, {"id": 2, "word": "bad"}, {"id": 3, "word": "better"}])
    config = {
        **FAULTY,
        **statement("SELECT partition, offset, value.word AS value FROM records"),
        "transforms": "sql,check",
        "transforms.check.type": "FailingTransform",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "topics": topic,
        "log": str(tmp_path / "calls"),
    }
    client.create(name, config)
    await_(lambda: len(put(tmp_path / "calls")) >= 2, "the good ones")
    assert put(tmp_path / "calls") == [(f"{topic}-0@0", "good"), (f"{topic}-0@2", "better")]
    assert values(broker, f"{topic}-dead", 1) == ["bad"]
    await_(lambda: client.offsets(name) and client.offsets(name)[0]["offset"]["kafka_offset"] == 3, "the commit")


# --- validation -------------------------------------------------------------------------------------------------------


def test_what_can_be_seen_without_a_record_is_refused_at_once(
    client: Client, worker: StandaloneWorker, name: str, topic: str, tmp_path: Path
) -> None:
    config = {**sink_config(tmp_path / "out", topic), "name": name}

    def errors(**changes: str) -> dict[str, list[str]]:
        answer = client.call(
            "PUT", "/connector-plugins/FileStreamSink/config/validate", 200, json={**config, **changes}
        )
        found = {each["value"]["name"]: each["value"]["errors"] for each in answer["configs"]}
        return {key: said for key, said in found.items() if said}

    assert errors(**statement("SELECT * FROM records")) == {}
    for query in ("", "DROP TABLE records", "SELECT 1", "SELECT * FROM records; SELECT 1"):
        assert list(errors(**statement(query))) == ["transforms.sql.statement"]
    missing = statement("x")
    del missing["transforms.sql.statement"]
    assert list(errors(**missing)) == ["transforms.sql.statement"]
    guarded = {
        **statement("SELECT * FROM records"),
        "transforms.sql.predicate": "dead",
        "predicates": "dead",
        "predicates.dead.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    (said,) = errors(**guarded)["transforms.sql.predicate"]
    assert "whole batches" in said
    client.create(name, {**config, **statement("DROP TABLE records")}, expected=400)

    def said_of(query: str) -> str:
        (text,) = errors(**statement(query))["transforms.sql.statement"]
        return text

    # And what Spark's parser sees, with its place; no job is run for it.
    tracker = worker.engine.session().sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup()
    assert "Syntax error at or near 'value'. SQLSTATE: 42601 (line 1, pos 34)" in said_of(WHER)
    assert "It must be a query" in said_of("WITH x AS (SELECT * FROM records) INSERT INTO t SELECT * FROM x")
    assert tracker.getJobIdsForGroup() == before
    answer = client.create(name, {**config, **statement(WHER)}, expected=400)
    assert "[PARSE_SYNTAX_ERROR]" in answer["message"]


def test_the_transform_is_listed_with_its_keys(client: Client) -> None:
    listed = client.call("GET", "/connector-plugins?connectorsOnly=false", 200)
    (found,) = [each for each in listed if each["class"].endswith(".Sql")]
    assert found["type"] == "transformation"
    keys = client.call("GET", "/connector-plugins/headgate.transforms.Sql/config", 200)
    assert [each["name"] for each in keys] == ["statement", "value.schema"]
