"""Connections and bytes of clients: those of a real broker, as the kernel and librdkafka count them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from headgate.dev.broker import Broker
from headgate.kafka import statistics
from headgate.kafka.admin_clients import AdminClients
from headgate.kafka.consumer import GroupConsumer
from headgate.kafka.native.delivery import Delivery
from headgate.kafka.sender import Sender
from headgate.metrics import ClientFigures
from headgate.model import PartitionStart, TopicPartition
from headgate.pipeline.batch import Produced, produced, slim

pytestmark = pytest.mark.broker

Eventually = Callable[..., None]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "_EVERY_S", 0.1)


@pytest.fixture
def config(broker: Broker, unique: Callable[[str], str]) -> Iterator[dict[str, str]]:
    yield {"bootstrap.servers": broker.bootstrap, "client.id": unique("client")}
    gc.collect()


def figures(config: dict[str, str]) -> ClientFigures | None:
    return next((each for each in statistics.client_figures() if each.client_id == config["client.id"]), None)


def send(delivery: Delivery, topic: str, *values: bytes) -> None:
    delivery.send(slim(produced(Produced(row, topic, None, None, each, None, None) for row, each in enumerate(values))))
    assert delivery.flush(20)


def test_a_native_producer_is_counted_by_its_sockets(config: dict[str, str], unique: Callable[[str], str]) -> None:
    delivery = Delivery(config, lambda: True, lambda _: None)
    send(delivery, unique("t"), b"x" * 100_000)
    found = figures(config)
    assert found is not None
    assert (found.kind, delivery.unanswered) == ("producer", 0)
    assert found.connections >= 1
    assert 100_000 < found.sent < 120_000
    assert 100 < found.received < 100_000
    delivery.close()
    closed = figures(config)
    assert closed is not None
    assert (closed.connections, closed.sent >= found.sent) == (0, True), "what went through them is not forgotten"
    del delivery
    assert figures(config) is None


class Beginning:
    """A task that takes what it is given, from its beginning."""

    def on_assigned(self, starts: dict[TopicPartition, PartitionStart]) -> dict[TopicPartition, int]:
        return {where: start.low for where, start in starts.items()}


def test_a_consumer_tells_of_itself_when_it_is_polled_and_knows_its_lag(
    config: dict[str, str], unique: Callable[[str], str], eventually: Eventually
) -> None:
    topic = unique("t")
    with closing(Delivery(config, lambda: True, lambda _: None)) as delivery:
        send(delivery, topic, b"1", b"2", b"3")
    mine = {**config, "client.id": unique("consumer"), "group.id": unique("group")}
    with closing(GroupConsumer(mine, Beginning())) as consumer:
        consumer.subscribe([topic], None)
        read: list[Any] = []

        def told() -> bool:
            fetched = consumer.fetch(10, 0.1)
            read.extend([] if fetched is None else [fetched])
            found = figures(mine)
            return bool(read) and found is not None and found.connections >= 1 and found.received > 100

        eventually(told)
        where = TopicPartition(topic, 0)
        assert [consumer.lag({where: 1}, ask=ask) for ask in (True, False)] == [2, 2]


def test_clients_that_nobody_polls_are_polled(
    config: dict[str, str], unique: Callable[[str], str], eventually: Eventually
) -> None:
    sender, admins = Sender(config, "letters"), AdminClients()
    admin = {**config, "client.id": unique("admin")}
    client = admins.get(admin)
    sender.send(unique("t"), b"1").result(20)

    def both() -> bool:
        found = [figures(config), figures(admin)]
        return [each and each.kind for each in found] == ["producer", "admin_client"] and all(
            each and each.connections for each in found
        )

    eventually(both)
    sender.close()
    admins.close()
    del sender, client
    eventually(lambda: (gc.collect(), figures(config), figures(admin))[1:] == (None, None))
