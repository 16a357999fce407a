"""Cases 1 to 3, 12 and 25: who may go on, and who must not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from job import SHORT_MS, Job, T, assert_finished

from headgate.producer import (
    GroupFencedError,
    ProducerClosedError,
    ProducerFencedError,
    ProducerStateError,
    TransactionalProducer,
    TransactionTimedOutError,
)

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "fatal and abortable errors are told apart by class")]

Detect = Callable[[Job, TransactionalProducer], None]


def at_send(job: Job, producer: TransactionalProducer) -> None:
    job.send(producer, 3, 4)
    producer.flush(T)


def at_send_offsets(job: Job, producer: TransactionalProducer) -> None:
    job.offsets(producer, 4)


def at_commit(job: Job, producer: TransactionalProducer) -> None:
    producer.commit(T)


def at_abort(job: Job, producer: TransactionalProducer) -> None:
    producer.abort(T)


@pytest.mark.parametrize("detect", [at_send, at_send_offsets, at_commit, at_abort])
def test_case_01_a_producer_with_a_newer_owner_of_its_id_is_finished(job: Job, detect: Detect) -> None:
    first = job.start()
    job.move(first, 0, 2)
    job.fill(first, 2, 3)
    second = job.start()
    with pytest.raises(ProducerFencedError) as caught:
        detect(job, first)
    assert caught.value.transactional_id == job.transactional_id
    assert_finished(job, first, ProducerFencedError)
    with pytest.raises(ProducerFencedError):
        first.reset()
    first.close(T)
    assert job.position() == 2
    job.finish(second)  # nothing of all that has fenced the newer one in turn
    job.check()


def test_case_01_a_fenced_producer_learns_it_with_the_first_record_of_its_next_transaction(job: Job) -> None:
    first = job.start()
    job.move(first, 0, 2)
    second = job.start()
    first.begin()
    with pytest.raises(ProducerFencedError):
        at_send(job, first)
    assert_finished(job, first, ProducerFencedError)
    job.finish(second)
    job.check()


@pytest.mark.kip(588, "a transaction that timed out is told apart from a fenced producer")
@pytest.mark.parametrize("detect", [at_send, at_commit])
@pytest.mark.parametrize("again", ["restart", "reset"])
def test_case_02_a_transaction_older_than_its_timeout_says_so(job: Job, detect: Detect, again: str) -> None:
    job.move(job.start(), 0, 2)
    slow = job.start(lambda: True, transaction_timeout_ms=SHORT_MS, message_timeout_ms=SHORT_MS)
    job.fill(slow, 2, 3)
    job.check(2)  # which waits until the broker has aborted the open transaction
    with pytest.raises(TransactionTimedOutError, match=r"transaction\.timeout\.ms"):
        detect(job, slow)
    assert_finished(job, slow, TransactionTimedOutError)
    if again == "reset":
        slow.reset()
        slow.init(T)
        producer = slow
    else:
        producer = job.start()
    job.finish(producer)
    job.check()


@pytest.mark.kip(691, "a producer that was late does not come back by itself")
@pytest.mark.parametrize("detect", [at_send, at_commit])
@pytest.mark.parametrize("still_mine", [None, lambda: False], ids=["nobody to ask", "not ours"])
def test_case_02_a_producer_that_was_late_does_not_fence_its_successor(
    job: Job, detect: Detect, still_mine: Callable[[], bool] | None
) -> None:
    first = job.start(still_mine, transaction_timeout_ms=SHORT_MS, message_timeout_ms=SHORT_MS)
    job.fill(first, 0, 2)
    job.check(0)  # which waits until the broker has aborted it
    second = job.start()
    job.fill(second, 0, 3)
    with pytest.raises(TransactionTimedOutError):
        detect(job, first)
    with pytest.raises(ProducerFencedError):
        first.reset()
    assert_finished(job, first, ProducerFencedError)
    second.commit(T)
    job.finish(second)
    job.check()


@pytest.mark.kip(691, "bugs are raised directly and change no state")
def test_case_03_calls_out_of_order_are_bugs_of_the_caller_and_change_nothing(job: Job) -> None:
    producer = job.make()
    for call in (producer.begin, producer.commit, producer.abort, lambda: job.send(producer, 0, 1)):
        with pytest.raises(ProducerStateError):
            call()
    producer.init(T)
    for call in (lambda: producer.init(T), producer.commit, producer.abort, lambda: job.send(producer, 0, 1)):
        with pytest.raises(ProducerStateError):
            call()
    producer.begin()
    job.send(producer, 0, 2)
    for call in (lambda: producer.init(T), producer.begin, producer.reset):
        with pytest.raises(ProducerStateError):
            call()
    job.offsets(producer, 2)
    producer.commit(T)
    job.finish(producer)
    producer.close(T)
    producer.close(T)
    for call in (lambda: producer.init(T), producer.begin, producer.commit, producer.abort, producer.reset):
        with pytest.raises(ProducerClosedError):
            call()
    with pytest.raises(ProducerClosedError):
        job.send(producer, 0, 1)
    job.check()


# Group fencing needs real members; in the classic protocol, for the newer one takes a stale generation as it is.


def member(job: Job, **settings: Any) -> Consumer:
    more = {key.replace("_", "."): value for key, value in settings.items()}
    config = {
        "bootstrap.servers": job.bootstrap,
        "group.id": job.group,
        "group.protocol": "classic",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "session.timeout.ms": 30_000,
        "heartbeat.interval.ms": 100,
        "log_level": 0,
    }
    consumer = Consumer({**config, **more})
    consumer.subscribe([job.source])
    job.open.callback(consumer.close)
    return consumer


def joined(eventually: Callable[..., None], *consumers: Consumer) -> None:
    def settled() -> bool:
        for consumer in consumers:
            consumer.poll(0.02)
        return sum(len(consumer.assignment()) for consumer in consumers) == 1

    eventually(settled)


def left(job: Job, consumer: Consumer, eventually: Callable[..., None]) -> Consumer:
    consumer.unsubscribe()
    consumer.close()
    newer = member(job)
    joined(eventually, newer)
    return newer


def rebalanced(job: Job, consumer: Consumer, eventually: Callable[..., None]) -> Consumer:
    before = consumer.consumer_group_metadata()
    newer = member(job)

    def changed() -> bool:
        consumer.poll(0.02)
        newer.poll(0.02)
        assigned = len(consumer.assignment()) + len(newer.assignment()) == 1
        return assigned and consumer.consumer_group_metadata() != before

    eventually(changed)
    return newer if newer.assignment() else consumer


def replaced(job: Job, consumer: Consumer, eventually: Callable[..., None]) -> Consumer:
    newer = member(job, group_instance_id="static")
    joined(eventually, newer)
    return newer


@pytest.mark.kip(447, "offsets of a stale group member are refused")
@pytest.mark.parametrize(
    ("lose", "code", "settings"),
    [(left, 25, {}), (rebalanced, 22, {}), (replaced, 82, {"group_instance_id": "static"})],
    ids=["member left", "group rebalanced", "static instance replaced"],
)
def test_case_12_offsets_of_a_lost_membership_are_refused_and_rejoining_goes_on(
    job: Job, eventually: Callable[..., None], lose: Any, code: int, settings: dict[str, str]
) -> None:
    consumer = member(job, **settings)
    joined(eventually, consumer)
    stale = consumer.consumer_group_metadata()
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 2)
    producer.send_offsets([TopicPartition(job.source, 0, 2)], stale, T)
    producer.commit(T)

    owner = lose(job, consumer, eventually)
    producer.begin()
    job.send(producer, 2, 4)
    with pytest.raises(GroupFencedError) as caught:
        producer.send_offsets([TopicPartition(job.source, 0, 4)], stale, T)
    assert caught.value.code == code
    assert_finished(job, producer, GroupFencedError)

    producer.reset()
    producer.init(T)
    assert job.position() == 2
    producer.begin()
    job.send(producer, 2, 6)
    producer.send_offsets([TopicPartition(job.source, 0, 6)], owner.consumer_group_metadata(), T)
    producer.commit(T)
    job.check()


@pytest.mark.process
@pytest.mark.parametrize(("word", "position"), [("sent", 2), ("committed", 4)])
def test_case_25_after_a_kill_offsets_and_records_agree(job: Job, word: str, position: int) -> None:
    job.move(job.start(), 0, 2)
    program = [sys.executable, str(Path(__file__).with_name("victim.py")), word]
    arguments = [job.bootstrap, job.source, job.target, job.group, job.transactional_id]
    with subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline().strip() == word
        victim.send_signal(signal.SIGKILL)
    assert victim.returncode == -signal.SIGKILL
    producer = job.start()  # whose init ends what the victim has left open
    job.check(position)
    job.finish(producer)
    job.check()
