"""What a broker refuses for a moment arrives all the same, also if that broker takes what was sent after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from mock_cluster import MockCluster
from spoken import Api

from headgate.kafka.native import delivery
from headgate.kafka.native.delivery import Delivery
from headgate.kafka.sender import Sender

pytestmark = pytest.mark.process


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    """Its broker does not lead the partition yet when the first batch comes. It knows nothing of the producer, so it
    takes any batch, as real ones do."""
    with MockCluster() as made:
        made.topic("orders")
        made.rtt(200)
        made.fail(Api.PRODUCE, KafkaError.NOT_LEADER_FOR_PARTITION)
        yield made


def config(cluster: MockCluster) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": "true", "linger.ms": "0"}


def test_records_of_a_task(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    monkeypatch.setattr(delivery, "settings_of", lambda *_: {})
    sender = Delivery(config(cluster), lambda: True, lambda refused: pytest.fail(refused.reason))
    for value in (b"first", b"second"):
        sender.send(pa.table({"topic": ["orders"], "value": [value]}))
        eventually(lambda: cluster.requests(Api.PRODUCE))
    assert sender.flush(20)
    sender.close()
    assert cluster.requests(Api.PRODUCE) == 3, "the first was sent again"


def test_dead_letters(cluster: MockCluster, eventually: Callable[..., None]) -> None:
    sender = Sender(config(cluster), "dead-letters")
    first = sender.send("orders", b"first")
    eventually(lambda: cluster.requests(Api.PRODUCE))
    second = sender.send("orders", b"second")
    first.result(20)
    second.result(20)
    sender.close()
    assert cluster.requests(Api.PRODUCE) == 3, "the first was sent again"
