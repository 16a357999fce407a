"""Cases 14 to 16 and 28: a broker that stops, dies and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from job import SHORT_MS, START_S, Job, MakeJob, T, assert_finished, warm
from mock_cluster import MockCluster
from stopped import stopped

from headgate.dev.broker import Broker
from headgate.dev.server_config import TO_BE_KILLED
from headgate.producer import (
    CommitFailedError,
    CommitTimeoutError,
    FailureType,
    OperationTimeoutError,
    ProducerStateError,
    TransactionAbortableError,
    TransactionalProducer,
    TransactionTimedOutError,
)

pytestmark = [pytest.mark.broker, pytest.mark.process]

Call = Callable[[], object]
QUICK = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 100}


@pytest.fixture(scope="module")
def own() -> Iterator[Broker]:
    """A broker that may be stopped and killed; each test leaves it running."""
    # Not more often: a scan while a broker starts would end transactions whose partitions it does not know yet, without
    # markers, and then nobody ever reads beyond them (Kafka 4.3.1).
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "3000", **TO_BE_KILLED}
    with Broker(properties=properties, heap="256m", start_seconds=START_S) as broker:
        warm(broker.bootstrap)
        yield broker


@pytest.fixture
def job(new_job: MakeJob, own: Broker) -> Iterator[Job]:
    job = new_job(own, **QUICK)
    yield job
    assert own.running()


def refused(*calls: Call) -> None:
    for call in calls:
        with pytest.raises(ProducerStateError):
            call()


@pytest.mark.parametrize("delivered", [True, False], ids=["delivered", "undelivered"])
def test_case_14_a_commit_without_an_answer_may_only_be_repeated(job: Job, own: Broker, delivered: bool) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    producer.begin()
    job.send(producer, 2, 3)
    job.offsets(producer, 4)
    producer.flush(T)
    if delivered:
        job.send(producer, 3, 4)
        producer.flush(T)
    with stopped(own):
        if not delivered:
            job.send(producer, 3, 4)
        for _ in range(2):
            with pytest.raises(CommitTimeoutError) as caught:
                producer.commit(0.7)
            assert caught.value.outcome_unknown
        refused(lambda: producer.abort(0.1), producer.begin, lambda: job.send(producer, 4, 5))
    refused(lambda: producer.abort(0.1))
    producer.commit(T)
    job.check(4)
    job.finish(producer)
    job.check()


def test_case_14_an_abort_without_an_answer_may_only_be_repeated(job: Job, own: Broker) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    job.fill(producer, 2, 4)
    with stopped(own):
        for _ in range(2):
            with pytest.raises(OperationTimeoutError) as caught:
                producer.abort(0.7)
            assert not isinstance(caught.value, CommitTimeoutError)
        refused(lambda: producer.commit(0.1), producer.begin, lambda: job.send(producer, 4, 5))
    producer.abort(T)
    job.check(2)
    job.finish(producer)
    job.check()


@pytest.mark.parametrize("sent", [True, False], ids=["sent", "never sent"])
def test_case_15_records_that_the_broker_never_takes_cost_their_transaction(job: Job, own: Broker, sent: bool) -> None:
    producer = job.start(message_timeout_ms=SHORT_MS)
    job.move(producer, 0, 2)
    producer.begin()
    if sent:
        job.send(producer, 2, 3)
        producer.flush(T)
    with stopped(own):
        job.send(producer, 3, 4)
        with pytest.raises(TransactionAbortableError) as caught:
            producer.flush(T)
        assert caught.value.failure_type is FailureType.DELIVERY_FAILED
        with pytest.raises(CommitFailedError) as failed:
            producer.commit(T)
        assert failed.value.failure_type is FailureType.DELIVERY_FAILED
    producer.abort(T)
    job.check(2)
    job.finish(producer)
    job.check()


def test_case_16_a_broker_that_comes_back_in_time_commits_the_same_transaction(job: Job, own: Broker) -> None:
    producer = job.start(transaction_timeout_ms=600_000)  # in time, however long a busy machine needs for a restart
    job.move(producer, 0, 2)
    job.fill(producer, 2, 4)
    own.kill()
    try:
        with pytest.raises(CommitTimeoutError):
            producer.commit(0.5)
    finally:
        own.restart()
    producer.commit(60)
    job.check(4)
    job.finish(producer)
    job.check()


def test_case_16_a_broker_that_comes_back_too_late_has_ended_the_transaction(job: Job, own: Broker) -> None:
    job.move(job.start(), 0, 2)
    producer = job.start(message_timeout_ms=SHORT_MS, transaction_timeout_ms=SHORT_MS)
    job.fill(producer, 2, 3)
    own.kill()
    try:
        job.send(producer, 3, 4)
        with pytest.raises(TransactionAbortableError):
            producer.flush(T)
    finally:
        own.restart()
    job.check(2)  # which waits until the broker has ended the transaction
    with pytest.raises(TransactionTimedOutError):
        producer.abort(60)
    assert_finished(job, producer, TransactionTimedOutError)
    job.finish(job.start())
    job.check()


def test_case_28_closing_takes_no_longer_than_its_limit_when_the_broker_is_silent(job: Job, own: Broker) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    job.fill(producer, 2, 4)
    with stopped(own):
        begun = time.monotonic()
        producer.close(1.0)
        assert time.monotonic() - begun < 3.0
    job.finish(job.start())
    job.check()


@pytest.mark.parametrize("undelivered", [0, 3])
def test_case_28_closing_takes_no_longer_than_its_limit_when_the_broker_is_gone(undelivered: int) -> None:
    with MockCluster() as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "task", "log_level": 0}
        producer = TransactionalProducer(settings)
        producer.init(T)
        producer.begin()
        producer.send(cluster.topic("target"), b"value")
        producer.flush(T)
        cluster.down()
        for _ in range(undelivered):
            producer.send("target", b"value")
        begun = time.monotonic()
        producer.close(1.0)
        assert time.monotonic() - begun < 3.0
        cluster.up()
