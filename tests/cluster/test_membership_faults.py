"""Brokers that restart, hang, or refuse: the place in the group is lost, and found again."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from group_node import Configs, Node, settled

from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener

# kafka-python leaves sockets that could not be connected to the garbage collector.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

PROPERTIES = {
    "group.min.session.timeout.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_worker="secret";'
    ),
}
QUICK = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 200, "rebalance_timeout_ms": 5000}

Start = Callable[..., Node]
Eventually = Callable[..., None]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data: Path = tmp_path_factory.mktemp("broker")
    with Broker(
        data, properties=PROPERTIES, listeners=[BrokerListener("SASL", "SASL_PLAINTEXT")], heap="256m"
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What is left to the garbage collector is collected here, where nobody minds."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def configs() -> Configs:
    made = Configs()
    made.create("orders", tasks=3)
    return made


@pytest.fixture
def start(own_broker: Broker, unique: Callable[[str], str], configs: Configs) -> Iterator[Start]:
    group = unique("faulty-cluster")
    with ExitStack() as nodes:

        def one(name: str, **clients: str) -> Node:
            settings = {"bootstrap.servers": own_broker.bootstrap} | {
                k.replace("_", "."): v for k, v in clients.items()
            }
            return nodes.enter_context(Node(name, group, settings, configs, max_delay_ms=500, timeouts=QUICK))

        yield one


def test_a_worker_that_was_held_is_sure_of_nothing_until_the_group_answers(
    start: Start, eventually: Eventually
) -> None:
    held, other = nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    assert held.membership.in_session
    before, go_on = held.membership.member_id, threading.Event()

    def hold() -> None:
        go_on.wait()

    held.membership._do(hold)  # as if the whole process were held
    eventually(lambda: not held.membership.in_session)
    assert held.membership.member_id == before, "it does not know better yet"
    eventually(lambda: other.membership.in_session and not other.membership.rebalancing)
    go_on.set()
    eventually(lambda: settled(nodes) and held.membership.in_session)
    assert held.membership.member_id != before


def test_a_broker_that_is_restarted(start: Start, own_broker: Broker, eventually: Eventually) -> None:
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    before = [node.membership.member_id for node in nodes]
    own_broker.stop()
    try:
        eventually(lambda: all(node.given_up[-1:] == [None] for node in nodes), 5)
        assert not any(node.held for node in nodes), "nobody works without a place in the group"
        assert all(node.membership.rebalancing for node in nodes)
    finally:
        own_broker.start()
    eventually(lambda: settled(nodes))
    assert [node.membership.member_id for node in nodes] == before, "the broker knew them still"


def test_a_broker_that_was_not_there_yet(start: Start, own_broker: Broker, eventually: Eventually) -> None:
    own_broker.stop()
    try:
        node = start("w1")
        time.sleep(1)
        assert node.membership.member_id == ""
    finally:
        own_broker.start()
    eventually(lambda: settled([node]))
    assert node.given_up == []


def test_a_broker_that_hangs(start: Start, own_broker: Broker, eventually: Eventually) -> None:
    nodes = [start("w1"), start("w2")]
    eventually(lambda: settled(nodes))
    os.kill(own_broker.pid, signal.SIGSTOP)
    try:
        eventually(lambda: all(node.given_up[-1:] == [None] for node in nodes), 10)
    finally:
        os.kill(own_broker.pid, signal.SIGCONT)
    eventually(lambda: settled(nodes))


def test_stop_while_the_broker_is_away(start: Start, own_broker: Broker, eventually: Eventually) -> None:
    node = start("w1")
    eventually(lambda: settled([node]))
    own_broker.stop()
    try:
        began = time.monotonic()
        node.stop()
        assert time.monotonic() - began < 5
    finally:
        own_broker.start()


def login(password: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_jaas_config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required username="worker" password="{password}";'
        ),
    }


def test_who_may_not_join_is_let_in_once_it_may(
    start: Start, own_broker: Broker, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    node = start("w1", bootstrap_servers=own_broker.address("SASL"), **login("secret"))
    eventually(lambda: "GroupAuthorizationFailedError" in caplog.text, 10)
    assert node.membership.member_id == ""
    rule = (ResourceType.GROUP, node.group, ResourcePatternType.LITERAL, "User:worker", "*")
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap, "log_level": 0})
    for made in admin.create_acls([AclBinding(*rule, AclOperation.ALL, AclPermissionType.ALLOW)]).values():
        made.result(20)
    eventually(lambda: settled([node]))


def test_who_has_no_login_keeps_trying_and_says_so(
    start: Start, own_broker: Broker, eventually: Eventually, caplog: pytest.LogCaptureFixture
) -> None:
    node = start("w1", bootstrap_servers=own_broker.address("SASL"), **login("wrong"))
    eventually(lambda: "its coordinator cannot be reached" in caplog.text, 10)
    time.sleep(2)
    assert caplog.text.count("its coordinator cannot be reached") <= 3, "not again and again"
    began = time.monotonic()
    node.stop()
    assert time.monotonic() - began < 5
    assert "wrong" not in caplog.text
