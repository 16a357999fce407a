"""A broker that cannot be reached: nothing that clients say of themselves pretends otherwise. There is none here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.kafka import consumer as module
from headgate.kafka.consumer import GroupConsumer
from headgate.kafka.native import delivery as delivery_module
from headgate.kafka.native.delivery import Delivery
from headgate.model import TopicPartition
from headgate.pipeline.batch import Produced, produced, slim

NOBODY = {"bootstrap.servers": "127.0.0.1:1"}
WHERE = TopicPartition("t", 0)


@pytest.fixture
def delivery(monkeypatch: pytest.MonkeyPatch) -> Iterator[Delivery]:
    monkeypatch.setattr(delivery_module, "_ASK_S", 0.2)
    made = Delivery(NOBODY, lambda: True, lambda _: None)
    yield made
    made.close()


def test_what_was_sent_and_did_not_get_there_is_unanswered(delivery: Delivery) -> None:
    delivery.send(slim(produced(Produced(row, "t", None, None, b"v", None, None) for row in range(3))))
    assert not delivery.flush(0.2)
    assert (delivery.count, delivery.unanswered) == (3, 3)


@pytest.mark.parametrize("ask", [True, False])
def test_how_far_behind_a_consumer_is_nobody_knows(ask: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LAG_S", 0.2)
    consumer = GroupConsumer({**NOBODY, "group.id": "g"}, None)
    try:
        assert consumer.lag({WHERE: 0}, ask=ask) is None
        assert consumer.lag({}, ask=ask) is None, "and of nothing there is no lag"
    finally:
        consumer.close()
