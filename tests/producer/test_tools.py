"""The fault tools do what the cases believe of them; with a bare client, so that they are proved by themselves."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import checks
import pytest
import spoken
from access import LOGIN, Access
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from mock_cluster import MockCluster
from proxy import Action, Proxy
from spoken import Api
from stopped import stopped

from headgate.dev.broker import Broker

pytestmark = pytest.mark.broker


def client(bootstrap: str, transactional_id: str, **settings: Any) -> Producer:
    more = {key.replace("_", "."): value for key, value in settings.items()}
    config = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
    producer = Producer({**config, **more})
    producer.init_transactions(20)
    return producer


def error_of(call: Callable[..., object], *arguments: object) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        call(*arguments)
    error: KafkaError = caught.value.args[0]
    return error


@pytest.mark.parametrize(("api", "code"), [(Api.END_TXN, 48), (Api.ADD_PARTITIONS, 29), (Api.PRODUCE, 87)])
def test_the_proxy_answers_in_the_place_of_the_broker(
    proxy: Proxy, broker: Broker, unique: Callable[[str], str], api: Api, code: int
) -> None:
    producer = client(proxy.address, unique("task"))
    rule = proxy.before(api, Action.CODE, code)
    producer.begin_transaction()
    producer.produce(unique("topic"), b"never")
    assert error_of(producer.commit_transaction, 20).code() == code
    assert rule.hits == 1
    client(broker.bootstrap, unique("task"))  # which ends what the first one has left open
    assert checks.read_committed(broker.bootstrap, unique("topic")) == []


def test_the_proxy_changes_an_answer_after_the_broker_acted(
    proxy: Proxy, broker: Broker, unique: Callable[[str], str]
) -> None:
    producer = client(proxy.address, unique("task"))
    proxy.after(Api.END_TXN, Action.CODE, 48, kind="commit")
    producer.begin_transaction()
    producer.produce(unique("topic"), b"committed")
    assert error_of(producer.commit_transaction, 20).code() == 48
    checks.assert_output(broker.bootstrap, unique("topic"), [b"committed"])


@pytest.mark.parametrize("action", [Action.DROP, Action.SWALLOW])
def test_the_proxy_drops_and_swallows(proxy: Proxy, unique: Callable[[str], str], action: Action) -> None:
    producer = client(proxy.address, unique("task"), socket_timeout_ms=1000)
    rule = proxy.after(Api.END_TXN, action)
    producer.begin_transaction()
    producer.produce(unique("topic"), b"value")
    producer.commit_transaction(20)
    assert rule.hits == 1
    assert proxy.requests(Api.END_TXN, "commit") > 1


def test_the_proxy_delays(proxy: Proxy, unique: Callable[[str], str]) -> None:
    producer = client(proxy.address, unique("task"))
    proxy.late(Api.END_TXN, 0.5)
    producer.begin_transaction()
    producer.produce(unique("topic"), b"value")
    producer.flush(20)
    begun = time.monotonic()
    producer.commit_transaction(20)
    assert time.monotonic() - begun >= 0.5


def test_rules_can_skip_messages_and_hold_for_several(proxy: Proxy, unique: Callable[[str], str]) -> None:
    producer = client(proxy.address, unique("task"))
    rule = proxy.before(Api.END_TXN, Action.CODE, 51, skip=1, count=2)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(unique("topic"), b"value")
        producer.commit_transaction(20)
    assert (rule.hits, proxy.requests(Api.END_TXN)) == (2, 4)


def test_the_proxy_notes_versions_that_its_rules_are_not_for(
    proxy: Proxy, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = client(proxy.address, unique("task"))
    monkeypatch.setitem(spoken.VERSIONS, Api.ADD_PARTITIONS, 4)
    proxy.before(Api.ADD_PARTITIONS, Action.CODE, 29)
    producer.begin_transaction()
    producer.produce(unique("topic"), b"value")
    producer.commit_transaction(20)
    assert "ADD_PARTITIONS is spoken in version 0" in proxy.problems[0]
    proxy.clear()


def test_the_mock_cluster_gives_the_errors_it_was_told() -> None:
    with MockCluster() as cluster:
        producer = client(cluster.bootstrap, "task")
        cluster.fail(Api.END_TXN, 51, 51, 51, 48)
        producer.begin_transaction()
        producer.produce(cluster.topic("topic"), b"value")
        assert error_of(producer.commit_transaction, 20).code() == 48
        assert cluster.requests(Api.END_TXN) == 4


def test_a_mock_broker_goes_down_comes_up_and_takes_its_time() -> None:
    with MockCluster() as cluster:
        producer = client(cluster.bootstrap, "task", reconnect_backoff_max_ms=100)
        cluster.topic("topic")
        cluster.down()
        producer.begin_transaction()
        producer.produce("topic", b"value")
        assert error_of(producer.commit_transaction, 0.5).code() == KafkaError._TIMED_OUT
        cluster.up()
        cluster.rtt(300)
        begun = time.monotonic()
        producer.commit_transaction(20)
        assert time.monotonic() - begun >= 0.3


def test_who_logs_in_may_do_what_was_granted(broker: Broker, unique: Callable[[str], str]) -> None:
    access = Access(broker.bootstrap)
    door = {"bootstrap.servers": broker.address("SASL"), "log_level": 0, **LOGIN}
    producer = Producer({**door, "transactional.id": unique("task")})
    assert error_of(producer.init_transactions, 20).code() == 53
    access.grant(ResourceType.TRANSACTIONAL_ID, unique("task"), AclOperation.WRITE, AclOperation.DESCRIBE)
    Producer({**door, "transactional.id": unique("task")}).init_transactions(20)
    access.revoke(ResourceType.TRANSACTIONAL_ID, unique("task"))
    producer = Producer({**door, "transactional.id": unique("task")})
    assert error_of(producer.init_transactions, 20).code() == 53


def test_a_broker_knows_the_addresses_of_its_listeners(broker: Broker, proxy: Proxy) -> None:
    assert broker.address("PROXY") == proxy.upstream
    metadata = AdminClient({"bootstrap.servers": broker.address("PROXY"), "log_level": 0}).list_topics(timeout=20)
    assert [f"{node.host}:{node.port}" for node in metadata.brokers.values()] == [proxy.address]
    with pytest.raises(RuntimeError, match="no listener OTHER"):
        broker.address("OTHER")


def test_a_stopped_broker_takes_nothing_from_the_first_moment_on(broker: Broker) -> None:
    question = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # which versions it speaks, of a client without a name
    with socket.create_connection(("127.0.0.1", broker.port), 20) as line, line.makefile("rb") as answers:
        for _ in range(40):
            with stopped(broker):
                line.sendall(question)
                assert not select.select([line], [], [], 0.03)[0]
            (size,) = struct.unpack(">i", answers.read(4))
            assert len(answers.read(size)) == size


def test_rules_that_met_nothing_are_problems(proxy: Proxy) -> None:
    rule = proxy.before(Api.END_TXN, Action.DROP)
    proxy.heal()
    assert proxy.problems == [f"no message came for {rule}"]
    proxy.clear()


def test_the_checks_see_duplicates_losses_and_open_transactions(
    broker: Broker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = unique("topic")
    producer = client(broker.bootstrap, unique("task"))
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.commit_transaction(20)
    checks.assert_output(broker.bootstrap, topic, [b"one"])
    for expected in ([], [b"one", b"one"], [b"two"]):
        with pytest.raises(AssertionError):
            checks.assert_output(broker.bootstrap, topic, expected)
    producer.begin_transaction()
    producer.produce(topic, b"two")
    assert producer.flush(20) == 0
    monkeypatch.setattr(checks, "PATIENCE_S", 0.2)
    with pytest.raises(AssertionError, match="stays open"):
        checks.read_committed(broker.bootstrap, topic)
    producer.abort_transaction(20)
