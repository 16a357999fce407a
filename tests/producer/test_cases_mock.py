"""Cases 22 and 24, each code once or for as long as the producer asks: in librdkafka's mock cluster.

It keeps nothing that could be read back, so these tests end with what the producer says and with what it sends next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from job import IN_VAIN, T
from mock_cluster import MockCluster
from spoken import Api

from headgate.producer import (
    ClusterAuthorizationError,
    CommitFailedError,
    FatalProducerError,
    GroupAuthorizationError,
    GroupFencedError,
    OperationTimeoutError,
    ProducerError,
    ProducerFencedError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionalProducer,
    TransactionStateError,
    UnsupportedFeatureError,
)

pytestmark = [pytest.mark.process, pytest.mark.kip(691, "one class for each thing that a caller can do")]

FOR_EVER = 1000

REFUSED: dict[int, type[ProducerError]] = {
    -1: TransactionStateError,
    12: TransactionAbortableError,
    22: GroupFencedError,
    25: GroupFencedError,
    29: TopicAuthorizationError,
    30: GroupAuthorizationError,
    31: ClusterAuthorizationError,
    35: UnsupportedFeatureError,
    43: UnsupportedFeatureError,
    47: ProducerFencedError,
    48: TransactionStateError,
    49: TransactionAbortableError,
    53: TransactionalIdAuthorizationError,
    82: GroupFencedError,
    90: ProducerFencedError,
    120: TransactionAbortableError,
    9999: TransactionStateError,
}
OFFSETS = (Api.ADD_OFFSETS, Api.TXN_OFFSET_COMMIT)
# Here librdkafka takes it for fatal, and no abort could tell whether the broker does not know better.
SPECIAL = {(Api.TXN_OFFSET_COMMIT, 49): TransactionStateError}


@pytest.fixture(scope="module")
def brokers() -> Iterator[MockCluster]:
    with MockCluster() as cluster:
        cluster.topic("source")
        cluster.topic("target")
        yield cluster


@pytest.fixture
def cluster(brokers: MockCluster) -> MockCluster:
    for api in Api:
        brokers.heal(api)
    brokers.forget()
    return brokers


@pytest.fixture
def producer(cluster: MockCluster, unique: Callable[[str], str]) -> Iterator[TransactionalProducer]:
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("task"), "log_level": 0}
    with TransactionalProducer(settings) as producer:
        yield producer


def send_offsets(cluster: MockCluster, producer: TransactionalProducer, timeout: float = T) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "group", "log_level": 0})
    try:
        producer.send_offsets([TopicPartition("source", 0, 3)], consumer.consumer_group_metadata(), timeout)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("api", "code", "why"),
    [(api, code, SPECIAL.get((api, code), why)) for api in OFFSETS for code, why in REFUSED.items()],
)
def test_case_22_refused_offsets_are_told_by_class(
    cluster: MockCluster, producer: TransactionalProducer, api: Api, code: int, why: type[ProducerError]
) -> None:
    producer.init(T)
    producer.begin()
    producer.send("target", b"value")
    producer.flush(T)
    cluster.fail(api, code)
    with pytest.raises(why) as caught:
        send_offsets(cluster, producer)
    if isinstance(caught.value, FatalProducerError):
        with pytest.raises(why):
            producer.commit(T)
        return
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    producer.begin()
    producer.send("target", b"value")
    send_offsets(cluster, producer)
    producer.commit(T)


@pytest.mark.parametrize("code", [3, 7, 14, 15, 16, 51])
@pytest.mark.parametrize("api", OFFSETS)
def test_case_22_a_busy_coordinator_is_asked_again(
    cluster: MockCluster, producer: TransactionalProducer, api: Api, code: int
) -> None:
    producer.init(T)
    producer.begin()
    cluster.fail(api, code)
    send_offsets(cluster, producer)
    assert cluster.requests(api) == 2
    producer.commit(T)


@pytest.mark.parametrize("code", [14, 51, 7])
@pytest.mark.parametrize("api", OFFSETS)
def test_case_22_offsets_that_were_never_taken_forbid_the_commit(
    cluster: MockCluster, producer: TransactionalProducer, api: Api, code: int
) -> None:
    producer.init(T)
    producer.begin()
    producer.send("target", b"value")
    cluster.fail(api, *[code] * FOR_EVER)
    with pytest.raises(TransactionAbortableError):
        send_offsets(cluster, producer, IN_VAIN)
    assert cluster.requests(api) > 1
    cluster.heal(api)
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    assert cluster.requests(Api.END_TXN) == 0
    producer.abort(T)
    producer.begin()
    send_offsets(cluster, producer)
    producer.commit(T)


def test_case_22_a_coordinator_that_is_asked_rarely_is_busy_and_not_gone(
    cluster: MockCluster, unique: Callable[[str], str]
) -> None:
    pause = {"retry.backoff.ms": 2000, "retry.backoff.max.ms": 2000}
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("task"), "log_level": 0, **pause}
    with TransactionalProducer(settings) as producer:
        producer.init(T)
        producer.begin()
        cluster.fail(Api.ADD_OFFSETS, *[14] * FOR_EVER)
        with pytest.raises(TransactionAbortableError):
            send_offsets(cluster, producer, IN_VAIN)
        cluster.heal(Api.ADD_OFFSETS)
        producer.abort(T)
        producer.begin()
        send_offsets(cluster, producer)
        producer.commit(T)


@pytest.mark.parametrize("code", [51, 14])
def test_case_24_an_init_that_takes_too_long_can_be_repeated(
    cluster: MockCluster, producer: TransactionalProducer, code: int
) -> None:
    cluster.fail(Api.INIT_PRODUCER_ID, *[code] * FOR_EVER)
    while cluster.requests(Api.INIT_PRODUCER_ID) < 2:
        with pytest.raises(OperationTimeoutError):
            producer.init(0.5)
    cluster.heal(Api.INIT_PRODUCER_ID)
    producer.init(T)
    producer.begin()
    producer.send("target", b"value")
    producer.commit(T)


@pytest.mark.parametrize(
    ("code", "count", "why"),
    [
        (50, 1, UnsupportedFeatureError),
        (53, 1, TransactionalIdAuthorizationError),
        (31, 1, ClusterAuthorizationError),
        (47, 1, ProducerFencedError),
        (90, 1, ProducerFencedError),
        (35, FOR_EVER, UnsupportedFeatureError),
    ],
)
def test_case_24_an_init_refused_for_good_ends_the_producer(
    cluster: MockCluster, producer: TransactionalProducer, code: int, count: int, why: type[FatalProducerError]
) -> None:
    cluster.fail(Api.INIT_PRODUCER_ID, *[code] * count)
    with pytest.raises(why):
        producer.init(T if count == 1 else IN_VAIN)
    for call in (producer.init, producer.begin, producer.commit, producer.abort):
        with pytest.raises(why):
            call()
