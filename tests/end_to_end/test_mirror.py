"""Topics of one cluster in another, or in the same, through the pipeline; at least once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from access import JAAS, PASSWORD, USER, Access
from confluent_kafka.admin import AclOperation, ResourceType
from harness import JSON, Client, await_
from mirror_support import MIRROR, NOW, Seen, by_partition, create, partitions, seen, some, write

from headgate.connectors.mirror import connector
from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener

pytestmark = pytest.mark.spark

SCHEMALESS = {"value.converter": JSON, "value.converter.schemas.enable": "false"}


@pytest.fixture(scope="module")
def far() -> Iterator[Broker]:
    """Another cluster. By its door SASL come only those who log in, and they may do what was granted."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": JAAS,
    }
    listeners = [BrokerListener("SASL", "SASL_PLAINTEXT")]
    with Broker(properties=properties, listeners=listeners, heap="384m") as running:
        yield running


def login(far: Broker, password: str = PASSWORD) -> dict[str, str]:
    """As people have it in the files of Java clients."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "source.bootstrap.servers": far.address("SASL"),
        "source.security.protocol": "SASL_PLAINTEXT",
        "source.sasl.mechanism": "PLAIN",
        "source.sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


def message(value: object, number: int = 0, partition: int = 0) -> Seen:
    data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return Seen(partition, None, data, NOW + number, [])


def await_copy(broker: Broker, topic: str, expected: list[Seen]) -> None:
    def there() -> bool:
        return partitions(broker.bootstrap, topic) > 0 and len(seen(broker.bootstrap, topic)) >= len(expected)

    await_(there, f"{len(expected)} messages in {topic}", 120)
    assert seen(broker.bootstrap, topic) == expected


def test_a_topic_of_another_cluster_is_copied_byte_for_byte(
    client: Client, broker: Broker, far: Broker, name: str, topic: str
) -> None:
    create(far.bootstrap, topic, 3)
    sent = write(far.bootstrap, topic, some(300, 3))
    config = {**MIRROR, "topics": topic, "source.bootstrap.servers": far.bootstrap, "source.alias": "far"}
    client.create(name, {**config, "tasks.max": "2"})
    client.await_states(name, "RUNNING", "RUNNING", "RUNNING", seconds=150)
    await_copy(broker, topic, by_partition(sent))
    assert partitions(broker.bootstrap, topic) == 3
    sent += write(far.bootstrap, topic, some(30, 3, start=300))
    await_copy(broker, topic, by_partition(sent))

    def stored() -> bool:
        found = {each["partition"]["partition"]: each["offset"]["offset"] for each in client.offsets(name)}
        return found == {0: 110, 1: 110, 2: 110}

    await_(stored, "the offsets")
    assert client.offsets(name)[0]["partition"] | {"partition": 0} == {"cluster": "far", "topic": topic, "partition": 0}


def test_topics_of_the_same_cluster_are_copied_under_other_names_as_they_appear(
    client: Client, broker: Broker, name: str, topic: str
) -> None:
    create(broker.bootstrap, f"{topic}.a")
    first = write(broker.bootstrap, f"{topic}.a", some(20))
    client.create(name, {**MIRROR, "topics.regex": rf"{topic}\..*", "topic.format": f"{topic}.copy.${{topic}}"})
    await_copy(broker, f"{topic}.copy.{topic}.a", first)
    create(broker.bootstrap, f"{topic}.b", 2)
    second = write(broker.bootstrap, f"{topic}.b", some(20, 2))
    await_copy(broker, f"{topic}.copy.{topic}.b", by_partition(second))
    await_copy(broker, f"{topic}.copy.{topic}.a", first)
    assert partitions(broker.bootstrap, f"{topic}.copy.{topic}.copy.{topic}.a") == 0


def test_a_copy_may_be_transformed(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    write(broker.bootstrap, topic, [message({"id": number, "name": "x"}, number) for number in range(10)])
    client.create(
        name,
        {
            **MIRROR,
            **SCHEMALESS,
            "topics": topic,
            "value.format": "json",
            "transforms": "mask,where",
            "transforms.mask.type": "MaskField$Value",
            "transforms.mask.fields": "name",
            "transforms.where.type": "InsertField$Value",
            "transforms.where.topic.field": "copy",
        },
    )
    expected = [message({"id": number, "name": "", "copy": f"source.{topic}"}, number) for number in range(10)]

    def parsed() -> list[object]:
        if not partitions(broker.bootstrap, f"source.{topic}"):
            return []
        return [(json.loads(each.value or b""), each.timestamp) for each in seen(broker.bootstrap, f"source.{topic}")]

    await_(lambda: len(parsed()) >= 10, "the copies", 60)
    assert parsed() == [(json.loads(each.value or b""), each.timestamp) for each in expected]


def test_a_copy_may_be_what_a_statement_makes_of_it(
    client: Client, broker: Broker, far: Broker, name: str, topic: str
) -> None:
    create(far.bootstrap, topic)
    write(far.bootstrap, topic, [message({"id": number, "tags": ["a", "b"]}, number) for number in range(10)])
    statement = "SELECT tag AS key, value.id FROM records LATERAL VIEW explode(value.tags) AS tag WHERE value.id >= 8"
    client.create(
        name,
        {
            **MIRROR,
            **SCHEMALESS,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "topics": topic,
            "source.bootstrap.servers": far.bootstrap,
            "value.format": "json",
            "transforms": "sql",
            "transforms.sql.type": "headgate.transforms.Sql",
            "transforms.sql.statement": statement,
        },
    )

    def made() -> list[tuple[bytes | None, object]]:
        if not partitions(broker.bootstrap, topic):
            return []
        return [(each.key, json.loads(each.value or b"")) for each in seen(broker.bootstrap, topic)]

    await_(lambda: len(made()) >= 4, "the rows", 90)
    assert made() == [(b"a", {"id": 8}), (b"b", {"id": 8}), (b"a", {"id": 9}), (b"b", {"id": 9})]
    await_(lambda: [each["offset"] for each in client.offsets(name)] == [{"offset": 10}], "the offset")


def test_what_is_no_json_is_treated_as_the_user_says(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    write(broker.bootstrap, topic, [message({"id": 1}), message(b"{no json"), message({"id": 2})])
    letters = f"{topic}-letters"
    client.create(
        name,
        {
            **MIRROR,
            **SCHEMALESS,
            "topics": topic,
            "value.format": "json",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": letters,
            "errors.deadletterqueue.topic.replication.factor": "1",
        },
    )
    await_copy(broker, f"source.{topic}", [message({"id": 1}), message({"id": 2})])
    await_(lambda: partitions(broker.bootstrap, letters), "the dead letter queue")
    await_(lambda: len(seen(broker.bootstrap, letters)) == 1, "the dead letter")


def test_offsets_can_be_altered_and_reset(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    sent = write(broker.bootstrap, topic, some(10))
    copy = f"source.{topic}"
    client.create(name, {**MIRROR, "topics": topic})
    await_copy(broker, copy, sent)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    place = {"cluster": "source", "topic": topic, "partition": 0}

    def patch(partition: object, offset: object, expected: int) -> str:
        body = {"offsets": [{"partition": partition, "offset": offset}]}
        answer = client.call("PATCH", f"/connectors/{name}/offsets", expected, json=body)
        return str(answer["message"])

    assert "number of a partition" in patch({**place, "partition": "x"}, {"offset": 1}, 500)
    assert "altered successfully" in patch(place, {"offset": 7}, 200)
    client.put(name, "resume")
    await_copy(broker, copy, [*sent, *sent[7:]])
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    client.call("DELETE", f"/connectors/{name}/offsets", 200)
    client.put(name, "resume")
    await_copy(broker, copy, [*sent, *sent[7:], *sent])


def test_nothing_is_copied_onto_itself(client: Client, broker: Broker, name: str, topic: str) -> None:
    create(broker.bootstrap, topic)
    config = {**MIRROR, "topics": topic, "topic.format": "${topic}"}
    assert "would be copied onto itself" in client.create(name, config, 400)["message"]
    # By another name of the same broker that cannot be told beforehand.
    port = broker.bootstrap.rpartition(":")[2]
    hidden = {**MIRROR, "topics": topic, "source.bootstrap.servers": f"localhost:{port}"}
    assert "would be copied onto itself" in client.create(name, hidden, 500)["message"]
    await_(lambda: client.states(name)[0] == "FAILED", "the failure")
    assert seen(broker.bootstrap, topic) == []


def test_who_logs_in_copies_what_may_be_read(
    client: Client, broker: Broker, far: Broker, name: str, topic: str
) -> None:
    create(far.bootstrap, topic)
    sent = write(far.bootstrap, topic, some(20))
    create(far.bootstrap, f"{topic}-secret")
    write(far.bootstrap, f"{topic}-secret", some(20))
    Access(far.bootstrap).grant(ResourceType.TOPIC, topic, AclOperation.READ, AclOperation.DESCRIBE)
    client.create(name, {**MIRROR, "topics.regex": f"{topic}.*", **login(far)})
    await_copy(broker, topic, sent)
    assert partitions(broker.bootstrap, f"{topic}-secret") == 0
    client.delete(name)


def test_who_is_not_let_in_is_told_so(client: Client, far: Broker, name: str, topic: str) -> None:
    create(far.bootstrap, topic)
    assert (
        "does not let us in" in client.create(name, {**MIRROR, "topics": topic, **login(far, "wrong")}, 500)["message"]
    )
    await_(lambda: client.states(name)[0] == "FAILED", "the failure")
    trace = client.status(name)["connector"]["trace"]
    assert "Authentication failed" in trace
    assert "sasl.*" in trace
    assert "wrong" not in trace
    client.delete(name)


def test_a_source_that_is_away_is_waited_for(
    client: Client, broker: Broker, far: Broker, name: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "_FIRST_LOOK_S", 2.0)  # it looks in vain, however long
    create(far.bootstrap, topic)
    sent = write(far.bootstrap, topic, some(10))
    far.kill()
    soon = {"source.reconnect.backoff.max.ms": "500"}  # not up to 10 s after the broker has come back
    client.create(name, {**MIRROR, **soon, "topics": topic, "source.bootstrap.servers": far.bootstrap})
    assert client.states(name) == ("RUNNING", [])
    far.restart()
    await_copy(broker, topic, sent)
    far.kill()
    far.restart()
    sent += write(far.bootstrap, topic, some(10, start=10))
    await_copy(broker, topic, sent)
    assert client.states(name) == ("RUNNING", ["RUNNING"])
