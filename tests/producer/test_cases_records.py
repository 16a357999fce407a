"""Cases 4 to 8, 13 and 26: records and offsets that Kafka does not take."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import checks
import pytest
from confluent_kafka import TopicPartition
from job import IN_VAIN, Job, MakeJob, T
from proxy import ALWAYS, Action, Proxy
from spoken import Api

from headgate.producer import (
    CommitFailedError,
    FailureType,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalProducer,
)

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "what one record suffers, its transaction suffers")]


def assert_rejected(producer: TransactionalProducer, *codes: int) -> None:
    """The commit is refused for the record's sake, as often as it is tried."""
    for _ in range(2):
        with pytest.raises(CommitFailedError) as caught:
            producer.commit(T)
        assert caught.value.failure_type is FailureType.MESSAGE_REJECTED
        assert not codes or caught.value.code in codes


def test_case_04_a_record_too_large_for_the_client_costs_its_transaction(job: Job) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    producer.begin()
    job.send(producer, 2, 4)
    job.offsets(producer, 4)
    with pytest.raises(TransactionAbortableError) as caught:
        producer.send(job.target, b"x" * 2_000_000)
    assert caught.value.failure_type is FailureType.MESSAGE_REJECTED
    assert_rejected(producer, 10)
    producer.abort(T)
    job.finish(producer)
    job.check()


def test_case_04_a_record_too_large_for_the_topic_costs_its_transaction(new_job: MakeJob) -> None:
    job = new_job(topic={"max.message.bytes": "2000"})
    producer = job.start()
    job.move(producer, 0, 2)
    producer.begin()
    job.send(producer, 2, 4)
    producer.flush(T)
    job.offsets(producer, 4)
    producer.send(job.target, b"x" * 5000)
    assert_rejected(producer, 10)
    producer.abort(T)
    job.finish(producer)  # the very next transaction, to the same partition
    job.check()


@pytest.mark.parametrize(
    ("topic", "partition"),
    [("a b/c!", None), ("", None), ("t" * 300, None), (None, 7)],
    ids=["characters", "empty", "too long", "no such partition"],
)
def test_case_05_a_record_for_nowhere_costs_its_transaction(job: Job, topic: str | None, partition: int | None) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    name = job.target if topic is None else topic
    for _ in range(2):  # the second time the client knows already, and refuses the record itself
        producer.begin()
        job.send(producer, 2, 4)
        job.offsets(producer, 4)
        with pytest.raises(TransactionAbortableError) as caught:  # noqa: PT012, either of the two
            producer.send(name, b"lost", partition=partition)
            producer.flush(T)
        assert caught.value.failure_type is FailureType.MESSAGE_REJECTED
        assert_rejected(producer)
        producer.abort(T)
    job.finish(producer)
    job.check()


def test_case_05_only_the_commit_may_notice_and_it_does(job: Job) -> None:
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 2)
    job.offsets(producer, 2)
    # The broker refuses the name (17); where its answer comes before librdkafka looks, `send` is told already (-188).
    with suppress(TransactionAbortableError):
        producer.send("a b/c!", b"lost")
    assert_rejected(producer, 17, -188)
    producer.abort(T)
    job.finish(producer)
    job.check()


def test_case_06_what_a_delivery_callback_raises_costs_no_record_and_doubles_none(job: Job) -> None:
    producer = job.start()
    called: list[object] = []

    def broken(*report: object) -> None:
        called.append(report)
        raise ValueError("broken on purpose")

    producer.begin()
    for value in job.inputs[:2]:
        producer.send(job.target, value, on_delivery=broken)
    job.offsets(producer, 2)
    producer.commit(T)
    assert len(called) == 2
    job.check(2)
    job.finish(producer)
    job.check()


def test_case_07_a_full_queue_makes_the_sender_wait(new_job: MakeJob) -> None:
    job = new_job(queue_buffering_max_messages=3)
    job.inputs = tuple(b"input-%d" % number for number in range(100))
    job.finish(job.start())
    job.check()


def test_case_07_a_queue_that_stays_full_costs_the_transaction(new_job: MakeJob, proxy: Proxy) -> None:
    job = new_job(bootstrap_servers=proxy.address, queue_buffering_max_messages=3, max_block_ms=1000)
    producer = job.start(socket_timeout_ms=1500)
    job.move(producer, 0, 2)
    proxy.before(Api.PRODUCE, Action.SWALLOW, count=ALWAYS)
    producer.begin()
    with pytest.raises(TransactionAbortableError) as caught:
        job.send(producer, 2, 6)
    assert caught.value.failure_type is FailureType.DELIVERY_FAILED
    proxy.heal()
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    job.finish(producer)
    job.check()


@pytest.mark.kip(654, "aborting with unsent records is no error")
def test_case_08_an_abort_with_unsent_records_succeeds_and_tells_their_callbacks(job: Job) -> None:
    producer = job.start(linger_ms=20_000)
    producer.begin()
    reports: list[tuple[object, ...]] = []
    for value in job.inputs[:3]:
        producer.send(job.target, value, on_delivery=lambda *report: reports.append(report))
    assert reports == []
    producer.abort(T)
    assert [type(error) for error, _ in reports] == [TransactionAbortedError] * 3
    job.finish(producer)
    job.check()


def test_case_08_what_was_still_queued_at_an_abort_is_not_missed_by_the_next_transaction(job: Job) -> None:
    job.inputs = tuple(b"input-%d" % number for number in range(24))
    producer = job.start()
    for start in range(0, 24, 2):
        producer.begin()
        job.send(producer, start, start + 2)
        with pytest.raises(TransactionAbortableError):  # noqa: PT012, either of the two
            producer.send(job.target, b"lost", partition=7)
            producer.flush(T)
        producer.abort(T)
        job.move(producer, start, start + 2)
    job.check()


def test_case_13_offsets_of_an_unknown_topic_cost_the_transaction(job: Job, unique: Callable[[str], str]) -> None:
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 2)
    with pytest.raises(TransactionAbortableError) as caught:
        producer.send_offsets([TopicPartition(unique("nowhere"), 0, 1)], job.metadata(), IN_VAIN)
    assert caught.value.code == 3
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    job.finish(producer)
    job.check()


def test_case_13_offsets_with_too_much_metadata_cost_the_transaction(job: Job) -> None:
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 2)
    with pytest.raises(TransactionAbortableError) as caught:
        producer.send_offsets([TopicPartition(job.source, 0, 2, metadata="x" * 5000)], job.metadata(), T)
    assert caught.value.code == 12
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    job.finish(producer)
    job.check()


@pytest.mark.kip(618, "a source's records and offsets are visible together or not at all")
def test_case_26_without_the_source_offsets_the_records_are_not_visible_either(new_job: MakeJob, job: Job) -> None:
    offsets = new_job(topic={"max.message.bytes": "300"}).target
    producer = job.start()

    def commit_with(position: dict[str, str]) -> None:
        producer.begin()
        job.send(producer, 0, 6)
        job.offsets(producer, 6)  # for the check; a source has none
        key = json.dumps(["connector", {"file": "a"}]).encode()
        producer.send(offsets, json.dumps(position).encode(), key=key)
        producer.commit(T)

    with pytest.raises(CommitFailedError) as caught:
        commit_with({"position": "6" * 1000})
    assert [failed.topic for failed in caught.value.failed_records.first] == [offsets]
    producer.abort(T)
    job.check(0)
    checks.assert_output(job.bootstrap, offsets, [])
    commit_with({"position": "6"})
    checks.assert_output(job.bootstrap, offsets, [b'{"position": "6"}'])
    job.check()
