"""Cases 17 to 24: single requests and responses spoiled between the producer and a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from job import IN_VAIN, SHORT_MS, Job, T, assert_finished
from proxy import ALWAYS, Action, Proxy, Rule
from spoken import Api

from headgate.producer import (
    CommitFailedError,
    CommitTimeoutError,
    FailureType,
    FatalProducerError,
    OperationTimeoutError,
    ProducerFencedError,
    ProducerStateError,
    ProtocolBugError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionStateError,
)

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "one class for each thing that a caller can do")]

Provoke = Callable[..., Rule]


@pytest.fixture(params=["before", "after"])
def provoke(request: pytest.FixtureRequest, proxy: Proxy) -> Provoke:
    """Gives an error before the broker sees the request, or after it did what was asked."""
    rule: Provoke = getattr(proxy, request.param)
    return rule


# The commit whose answer is lost


def test_case_17_a_commit_whose_answer_is_cut_off_succeeds_by_itself(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxy.after(Api.END_TXN, Action.DROP, kind="commit")
    proxied.move(producer, 0, 3)
    assert proxy.requests(Api.END_TXN, "commit") == 2
    proxied.finish(producer)
    proxied.check()


def test_case_17_a_commit_whose_answer_never_comes_succeeds_when_repeated(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start(socket_timeout_ms=2000)
    proxied.fill(producer, 0, 3)
    proxy.after(Api.END_TXN, Action.SWALLOW, kind="commit")
    with pytest.raises(CommitTimeoutError) as caught:
        producer.commit(0.5)
    assert caught.value.outcome_unknown
    with pytest.raises(ProducerStateError):
        producer.abort(T)
    producer.commit(T)
    proxied.finish(producer)
    proxied.check()


def test_case_17_after_a_commit_without_an_answer_a_new_start_finds_what_was_committed(
    proxied: Job, proxy: Proxy
) -> None:
    producer = proxied.start()
    proxied.fill(producer, 0, 3)
    rule = proxy.after(Api.END_TXN, Action.SWALLOW, kind="commit")
    with pytest.raises(CommitTimeoutError):
        producer.commit(0.5)
    assert rule.hit.wait(T)
    producer.close(1.0)
    restarted = proxied.start()
    proxied.check(3)
    proxied.finish(restarted)
    proxied.check()


def test_case_17_after_a_commit_that_never_arrived_a_new_start_finds_nothing(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxied.fill(producer, 0, 3)
    rule = proxy.before(Api.END_TXN, Action.SWALLOW, kind="commit")
    with pytest.raises(CommitTimeoutError):
        producer.commit(0.5)
    assert rule.hit.wait(T)
    producer.close(1.0)
    restarted = proxied.start()
    proxied.check(0)
    proxied.finish(restarted)
    proxied.check()


def test_case_18_a_commit_refused_after_it_happened_has_an_unknown_outcome(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxy.after(Api.END_TXN, Action.CODE, 48, kind="commit")
    with pytest.raises(TransactionStateError) as caught:
        proxied.move(producer, 0, 3)
    assert caught.value.outcome_unknown
    assert_finished(proxied, producer, TransactionStateError)
    restarted = proxied.start()
    proxied.check(3)
    proxied.finish(restarted)
    proxied.check()


def test_case_18_an_abort_after_a_refused_commit_does_not_count_as_one(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxy.after(Api.END_TXN, Action.CODE, 120, kind="commit")
    with pytest.raises(CommitFailedError):
        proxied.move(producer, 0, 3)
    with pytest.raises(TransactionStateError) as caught:
        producer.abort(T)
    assert caught.value.outcome_unknown
    restarted = proxied.start()
    proxied.check(3)
    proxied.finish(restarted)
    proxied.check()


# The end of a transaction, refused before the broker heard of it


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (48, TransactionStateError),
        (47, ProducerFencedError),
        (90, ProducerFencedError),
        (53, TransactionalIdAuthorizationError),
    ],
)
def test_case_19_a_commit_refused_for_good_ends_the_producer(
    proxied: Job, proxy: Proxy, code: int, why: type[FatalProducerError]
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    proxy.before(Api.END_TXN, Action.CODE, code, kind="commit")
    with pytest.raises(why):
        proxied.move(producer, 2, 4)
    assert_finished(proxied, producer, why)
    restarted = proxied.start()
    proxied.check(2)
    proxied.finish(restarted)
    proxied.check()


@pytest.mark.parametrize(
    ("code", "why"),
    [(47, ProducerFencedError), (90, ProducerFencedError), (53, TransactionalIdAuthorizationError)],
)
def test_case_19_an_abort_refused_for_good_ends_the_producer(
    proxied: Job, proxy: Proxy, code: int, why: type[FatalProducerError]
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    proxied.fill(producer, 2, 4)
    proxy.before(Api.END_TXN, Action.CODE, code, kind="abort")
    with pytest.raises(why):
        producer.abort(T)
    assert_finished(proxied, producer, why)
    proxied.finish(proxied.start())
    proxied.check()


def test_case_19_an_abort_of_what_the_broker_does_not_know_is_an_abort(proxied: Job, proxy: Proxy) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    proxied.fill(producer, 2, 4)
    proxy.before(Api.END_TXN, Action.CODE, 48, kind="abort")
    producer.abort(T)
    proxied.finish(producer)
    proxied.check()


@pytest.mark.parametrize("code", [51, 16])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_case_19_a_busy_coordinator_is_asked_again(proxied: Job, proxy: Proxy, end: str, code: int) -> None:
    producer = proxied.start()
    proxied.fill(producer, 0, 3)
    proxy.before(Api.END_TXN, Action.CODE, code, kind=end)
    getattr(producer, end)(T)
    assert proxy.requests(Api.END_TXN, end) == 2
    assert proxied.position() == (3 if end == "commit" else 0)
    proxied.finish(producer)
    proxied.check()


# Records refused by the broker


@pytest.mark.parametrize(
    ("code", "failure_type"),
    [
        (45, FailureType.DELIVERY_FAILED),
        (59, FailureType.DELIVERY_FAILED),
        (87, FailureType.MESSAGE_REJECTED),
        (18, FailureType.MESSAGE_REJECTED),
        (120, FailureType.TRANSACTION_FAILED),
        (13, FailureType.DELIVERY_FAILED),
    ],
)
def test_case_20_a_refused_batch_costs_its_transaction_and_nothing_else(
    proxied: Job, provoke: Provoke, code: int, failure_type: FailureType
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    provoke(Api.PRODUCE, Action.CODE, code)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(CommitFailedError) as caught:
        producer.commit(T)
    assert (caught.value.code, caught.value.failure_type) == (code, failure_type)
    producer.abort(T)
    proxied.finish(producer)
    proxied.check()


@pytest.mark.parametrize("code", [47, 90])
def test_case_20_a_leader_that_saw_a_newer_epoch_ends_the_producer(proxied: Job, provoke: Provoke, code: int) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    provoke(Api.PRODUCE, Action.CODE, code)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(ProducerFencedError):
        producer.commit(T)
    assert_finished(proxied, producer, ProducerFencedError)
    proxied.finish(proxied.start())
    proxied.check()


PASSES = pytest.mark.parametrize(
    "code", [2, 6, 19, 20], ids=["corrupt", "not the leader", "too few replicas", "too few replicas after the append"]
)


@PASSES
def test_case_20_what_a_leader_refuses_for_a_moment_is_not_seen(
    proxied: Job, proxy: Proxy, provoke: Provoke, code: int
) -> None:
    producer = proxied.start()
    provoke(Api.PRODUCE, Action.CODE, code)
    proxied.move(producer, 0, 6)
    assert proxy.requests(Api.PRODUCE) > 1
    proxied.check()


@PASSES
def test_case_20_what_a_leader_refuses_for_good_costs_the_transaction(proxied: Job, proxy: Proxy, code: int) -> None:
    producer = proxied.start(message_timeout_ms=SHORT_MS)
    proxied.move(producer, 0, 2)
    rule = proxy.before(Api.PRODUCE, Action.CODE, code, count=ALWAYS)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(CommitFailedError) as caught:
        producer.commit(T)
    assert caught.value.failure_type is FailureType.DELIVERY_FAILED
    assert rule.hits > 1
    proxy.heal()
    producer.abort(T)
    proxied.finish(producer)
    proxied.check()


# Partitions refused by the coordinator


@pytest.mark.parametrize(("code", "why"), [(29, TopicAuthorizationError), (48, TransactionStateError)])
def test_case_21_a_partition_refused_for_good_ends_the_producer(
    proxied: Job, proxy: Proxy, code: int, why: type[FatalProducerError]
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    proxy.before(Api.ADD_PARTITIONS, Action.CODE, code)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(why):
        producer.commit(T)
    assert_finished(proxied, producer, why)
    proxied.finish(proxied.start())
    proxied.check()


@pytest.mark.parametrize("code", [49, 55])
def test_case_21_a_refused_partition_costs_its_transaction_and_nothing_else(
    proxied: Job, provoke: Provoke, code: int
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    provoke(Api.ADD_PARTITIONS, Action.CODE, code)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(TransactionAbortableError):
        producer.commit(T)
    producer.abort(T)
    proxied.finish(producer)
    proxied.check()


@pytest.mark.parametrize("code", [3, 51])
def test_case_21_a_partition_not_ready_yet_is_asked_for_again(proxied: Job, proxy: Proxy, code: int) -> None:
    producer = proxied.start()
    rule = proxy.before(Api.ADD_PARTITIONS, Action.CODE, code, count=2)
    proxied.move(producer, 0, 6)
    assert rule.hits == 2
    proxied.check()


# Offsets and ids that come late or never; the codes one by one are tried in the mock cluster


@pytest.mark.parametrize("code", [14, 51])
@pytest.mark.parametrize("api", [Api.ADD_OFFSETS, Api.TXN_OFFSET_COMMIT])
def test_case_22_records_are_not_committed_without_their_offsets(
    proxied: Job, proxy: Proxy, api: Api, code: int
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    producer.begin()
    proxied.send(producer, 2, 4)
    proxy.before(api, Action.CODE, code, count=ALWAYS)
    with pytest.raises(TransactionAbortableError):
        proxied.offsets(producer, 4, timeout=IN_VAIN)
    proxy.heal()
    with pytest.raises(CommitFailedError):
        producer.commit(T)
    producer.abort(T)
    proxied.check(2)
    proxied.finish(producer)
    proxied.check()


def test_case_24_an_id_that_comes_late_is_waited_for_again(proxied: Job, proxy: Proxy) -> None:
    proxied.move(proxied.start(), 0, 2)
    producer = proxied.make()
    rule = proxy.before(Api.INIT_PRODUCER_ID, Action.CODE, 51, count=ALWAYS)
    while rule.hits < 2:
        with pytest.raises(OperationTimeoutError):
            producer.init(0.5)
    with pytest.raises(ProducerStateError):
        producer.begin()
    proxy.heal()
    producer.init(T)
    proxied.finish(producer)
    proxied.check()


# Responses without a body


@pytest.mark.kip(691, "a response without a body is a bug, raised as it is")
@pytest.mark.parametrize("api", [Api.ADD_PARTITIONS, Api.ADD_OFFSETS, Api.TXN_OFFSET_COMMIT, Api.END_TXN])
def test_case_30_a_coordinators_response_without_a_body_is_a_bug(proxied: Job, provoke: Provoke, api: Api) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    provoke(api, Action.EMPTY)
    with pytest.raises(ProtocolBugError):
        proxied.move(producer, 2, 4)
    with pytest.raises(ProtocolBugError):
        producer.commit(T)  # it is not committed as if nothing had been
    producer.close(1.0)
    proxied.finish(proxied.start())
    proxied.check()


def test_case_30_records_that_a_leader_answers_without_a_body_cost_their_transaction_and_nothing_else(
    proxied: Job, provoke: Provoke
) -> None:
    producer = proxied.start()
    proxied.move(producer, 0, 2)
    provoke(Api.PRODUCE, Action.EMPTY)
    producer.begin()
    proxied.send(producer, 2, 4)
    with pytest.raises(CommitFailedError) as caught:
        producer.commit(T)
    assert caught.value.failure_type is FailureType.DELIVERY_FAILED
    producer.abort(T)
    proxied.finish(producer)
    proxied.check()


def test_case_30_what_may_be_asked_again_is_asked_again_after_a_response_without_a_body(
    proxied: Job, proxy: Proxy, provoke: Provoke
) -> None:
    provoke(Api.INIT_PRODUCER_ID, Action.EMPTY)
    producer = proxied.start()
    proxied.fill(producer, 0, 3)
    provoke(Api.END_TXN, Action.EMPTY, kind="abort")
    producer.abort(T)
    assert proxy.requests(Api.END_TXN, "abort") > 1
    proxied.finish(producer)
    proxied.check()


# The call that never comes back


@pytest.mark.parametrize("code", [5, 6, 16])
def test_case_23_offsets_whose_coordinator_is_never_found_end_the_producer_in_time(
    proxied: Job, proxy: Proxy, code: int
) -> None:
    producer = proxied.start()
    producer.begin()
    proxied.send(producer, 0, 3)
    proxy.before(Api.FIND_COORDINATOR, Action.CODE, code, kind="group")
    begun = time.monotonic()
    with pytest.raises(FatalProducerError):
        proxied.offsets(producer, 3, timeout=IN_VAIN)
    assert time.monotonic() - begun < 8.0
    assert_finished(proxied, producer, FatalProducerError)
    producer.close(1.0)
    proxied.finish(proxied.start())
    proxied.check()
