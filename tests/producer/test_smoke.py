"""The producer on a real broker: what the numbered cases do not ask for."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import checks
import pytest
from job import Job, MakeJob, T
from proxy import Action, Proxy
from spoken import Api

from headgate.producer import (
    CommitFailedError,
    CommitTimeoutError,
    FailureType,
    InvalidConfigurationError,
    OperationTimeoutError,
    ProduceFailedError,
    ProducerClosedError,
    ProducerFencedError,
    ProducerStateError,
    State,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalProducer,
)

pytestmark = pytest.mark.broker


# --- transactions -----------------------------------------------------------------------------------------------------


def test_everything_of_a_record_arrives(job: Job) -> None:
    from confluent_kafka import Consumer, TopicPartition

    with job.start() as producer:
        producer.begin()
        headers = [("trace", b"1"), ("trace", None)]
        producer.send(job.target, b"value", key="key", partition=0, headers=headers, timestamp=1_700_000_000_000)
        producer.send(job.target, None, key=b"key")
        producer.commit(T)
    reader = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "smoke", "isolation.level": "read_committed"})
    reader.assign([TopicPartition(job.target, 0, 0)])
    first, second = reader.consume(2, T)
    reader.close()
    assert (first.value(), first.key(), first.headers()) == (b"value", b"key", headers)
    assert first.timestamp()[1] == 1_700_000_000_000
    assert (second.value(), second.key()) == (None, b"key")


def test_many_records_in_one_transaction_all_arrive(job: Job) -> None:
    job.inputs = tuple(b"%d" % number for number in range(20_000))
    job.finish(job.start())
    job.check()


def test_an_empty_transaction_can_be_committed_and_aborted(job: Job) -> None:
    producer = job.start()
    for _ in range(2):
        producer.begin()
        producer.send_offsets([], b"")
        producer.commit(T)
        producer.begin()
        producer.abort(T)
    job.finish(producer)
    job.check()


def test_callbacks_are_told_of_arrivals_with_their_offsets(job: Job) -> None:
    producer = job.start()
    told: list[tuple[Any, int | None]] = []
    for _ in range(2):
        producer.begin()
        for value in (b"a", b"b"):
            producer.send(job.target, value, on_delivery=lambda error, message: told.append((error, message.offset())))
        producer.send(job.target, b"without")
        producer.commit(T)
    assert [error for error, _ in told] == [None] * 4
    offsets = [offset for _, offset in told if offset is not None]
    assert len(offsets) == 4
    assert offsets == sorted(set(offsets))
    assert offsets[0] == 0


def test_the_first_callback_in_the_middle_of_a_transaction_is_refused_and_works_in_the_next(job: Job) -> None:
    producer = job.start()
    told: list[object] = []
    producer.begin()
    producer.send(job.target, b"a")
    with pytest.raises(ProducerStateError, match="from the first record"):
        producer.send(job.target, b"b", on_delivery=lambda *report: told.append(report))
    producer.commit(T)
    producer.begin()
    producer.send(job.target, b"c")
    producer.send(job.target, b"d", on_delivery=lambda *report: told.append(report))
    producer.commit(T)
    assert len(told) == 1
    checks.assert_output(job.bootstrap, job.target, [b"a", b"c", b"d"])


def test_who_asks_for_failures_only_gets_them(job: Job) -> None:
    producer = job.start(**{"delivery.report.only.error": True, "linger.ms": 10_000})
    told: list[Any] = []
    producer.begin()
    producer.send(job.target, b"a", on_delivery=lambda error, _: told.append(error))
    producer.flush(T)
    assert told == []
    producer.send(job.target, b"a", on_delivery=lambda error, _: told.append(error))
    producer.abort(T)
    (error,) = told
    assert type(error) is TransactionAbortedError
    assert error.failure_type is FailureType.TRANSACTION_FAILED


def test_a_failure_is_told_to_callback_and_transaction_alike(new_job: MakeJob) -> None:
    job = new_job(topic={"max.message.bytes": "2000"})
    producer = job.start()
    told: list[Any] = []
    producer.begin()
    producer.send(job.target, b"x" * 5000, key=b"k", on_delivery=lambda error, _: told.append(error))
    with pytest.raises(CommitFailedError) as caught:
        producer.commit(T)
    (error,) = told
    assert isinstance(error, ProduceFailedError)
    assert (error.code, error.failure_type) == (10, FailureType.MESSAGE_REJECTED)
    assert isinstance(caught.value.cause, ProduceFailedError)
    assert caught.value.failed_records.count == 1
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.failed_records == caught.value.failed_records
    producer.abort(T)
    job.finish(producer)
    job.check()


def test_the_task_is_asked_for_its_owner_before_the_handle_is_replaced(new_job: MakeJob) -> None:
    job = new_job(topic={"max.message.bytes": "2000"})
    mine = True
    config = {"bootstrap.servers": job.bootstrap, "transactional.id": job.transactional_id}
    with TransactionalProducer(config, still_mine=lambda: mine) as producer:
        producer.init(T)
        for _ in range(2):
            producer.begin()
            producer.send(job.target, b"x" * 5000)
            with pytest.raises(CommitFailedError):
                producer.commit(T)
            if mine:
                producer.abort(T)
                mine = False
        newer = job.start()
        newer.begin()
        with pytest.raises(ProducerFencedError):
            producer.abort(T)
        assert producer.state is State.FATAL_ERROR
        newer.send(job.target, b"mine")
        newer.commit(T)  # it was not fenced
    checks.assert_output(job.bootstrap, job.target, [b"mine"])


def test_an_abort_gives_up_on_answers_that_never_come(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    proxy.after(Api.PRODUCE, Action.SWALLOW)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(OperationTimeoutError):
        producer.flush(0.5)
    begun = time.monotonic()
    producer.abort(T)
    assert time.monotonic() - begun < 10
    proxied.finish(producer)
    proxied.check()


def test_a_commit_that_somebody_interrupts_can_be_repeated(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = job.start()
    job.fill(producer, 0, 3)
    call = producer._handle.call

    def interrupted(function: Any, *args: Any) -> Any:
        result = call(function, *args)
        if function.__name__ == "commit_transaction":
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(producer._handle, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.commit(T)
    monkeypatch.undo()
    assert producer.state is State.COMMITTING
    with pytest.raises(ProducerStateError):
        producer.abort(T)
    producer.commit(T)
    job.finish(producer)
    job.check()


def test_offsets_that_somebody_interrupts_cost_the_transaction(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 3)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.producer.producer.within", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job.offsets(producer, 3)
    monkeypatch.undo()
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    job.finish(producer)
    job.check()


def test_wrong_arguments_are_the_callers_bugs_and_cost_nothing(job: Job) -> None:
    producer = job.start()
    producer.begin()
    job.send(producer, 0, 6)
    for wrong in ({"value": 1}, {"value": b"", "partition": "x"}, {"value": b"", "headers": 7}):
        with pytest.raises(TypeError):
            producer.send(job.target, **wrong)
    with pytest.raises(TypeError):
        producer.send_offsets([object()], b"")  # type: ignore[list-item]
    from confluent_kafka import TopicPartition

    with pytest.raises(TypeError):
        producer.send_offsets([TopicPartition(job.source, 0, 1)], None)
    assert producer.state is State.IN_TRANSACTION
    job.offsets(producer, 6)
    producer.commit(T)
    job.check()


def test_another_thread_may_close_it_and_do_nothing_else(job: Job, proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxied.fill(producer, 0, 2)
    rule = proxy.before(Api.END_TXN, Action.SWALLOW, kind="commit")
    outcome: list[BaseException] = []

    def commit() -> None:
        try:
            producer.commit(3.0)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    assert rule.hit.wait(T)
    with pytest.raises(ProducerStateError):
        producer.commit(T)
    begun = time.monotonic()
    producer.close(0.5)
    assert time.monotonic() - begun < 2
    thread.join()
    assert [type(error) for error in outcome] == [CommitTimeoutError]
    with pytest.raises(ProducerClosedError):
        producer.begin()


def test_a_with_block_that_fails_leaves_no_transaction_open(job: Job) -> None:
    def fail() -> None:
        with job.start() as producer:
            job.fill(producer, 0, 3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    job.check(0)  # at once: nothing is pending
    job.finish(job.start())
    job.check()


def test_a_configuration_that_cannot_be_is_refused_by_the_constructor() -> None:
    for wrong in (
        {"no.such.key": "1"},
        {"transactional.id": "x", "acks": "1"},
        {"transactional.id": "x", "transaction.timeout.ms": "soon"},
        {"on_delivery": print},
        {"max.block.ms": "often"},
    ):
        with pytest.raises(InvalidConfigurationError):
            TransactionalProducer({"bootstrap.servers": "127.0.0.1:1", **wrong})


def test_a_producer_does_not_travel(job: Job) -> None:
    with pytest.raises(TypeError, match="process that uses it"):
        pickle.dumps(job.make())


# --- without transactions ---------------------------------------------------------------------------------------------


@pytest.fixture
def plain(job: Job) -> Any:
    with TransactionalProducer({"bootstrap.servers": job.bootstrap}) as producer:
        yield producer


@pytest.mark.kip(691, "a callback's error has one of three failure types")
def test_futures_tell_what_became_of_records(plain: TransactionalProducer, job: Job) -> None:
    futures = [plain.send(job.target, b"%d" % number) for number in range(3)]
    assert [future.result(T).offset() for future in futures if future] == [0, 1, 2]
    told: list[Any] = []
    large = plain.send(job.target, b"x" * 2_000_000, on_delivery=lambda error, message: told.append((error, message)))
    nowhere = plain.send(job.target, b"", partition=7)
    invalid = plain.send("a b/c!", b"")
    # The broker refuses a name (17); where its answer comes before librdkafka looks, there is no such topic (-188).
    for future, codes in ((large, {10}), (nowhere, {-190}), (invalid, {17, -188})):
        assert future is not None
        with pytest.raises(ProduceFailedError) as caught:
            future.result(T)
        assert caught.value.failure_type is FailureType.MESSAGE_REJECTED
        assert caught.value.code in codes
    ((error, message),) = told
    assert error is large.exception(0) if large else False
    assert message.topic() == job.target
    assert plain.flush(T) == 0
    checks.assert_output(job.bootstrap, job.target, [b"0", b"1", b"2"])


def test_a_full_queue_makes_a_plain_sender_wait(job: Job) -> None:
    config = {"bootstrap.servers": job.bootstrap, "queue.buffering.max.messages": 3}
    with TransactionalProducer(config) as producer:
        futures = [producer.send(job.target, b"%d" % number) for number in range(200)]
        assert all(future and future.result(T) for future in futures)
    checks.assert_output(job.bootstrap, job.target, [b"%d" % number for number in range(200)])


def test_a_callback_that_raises_costs_no_record(plain: TransactionalProducer, job: Job) -> None:
    def broken(*_: object) -> None:
        raise ValueError("broken on purpose")

    future = plain.send(job.target, b"a", on_delivery=broken)
    assert future is not None
    future.result(T)
    plain.flush(T)


def test_records_that_never_left_fail_when_their_producer_is_closed() -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "max.block.ms": 300, "queue.buffering.max.messages": 2}
    producer = TransactionalProducer(config)
    futures = [producer.send("topic", b"a") for _ in range(3)]
    with pytest.raises(OperationTimeoutError):
        producer.flush(0.2)
    producer.close(1.0)
    for future, code in zip(futures, (-152, -152, -184), strict=True):
        assert future is not None
        error = future.exception(5)
        assert isinstance(error, ProduceFailedError)
        assert error.failure_type is FailureType.DELIVERY_FAILED
        assert error.code == code


def test_a_lost_transaction_is_not_told_as_plain_failure() -> None:
    assert not issubclass(TransactionAbortableError, ProduceFailedError)
