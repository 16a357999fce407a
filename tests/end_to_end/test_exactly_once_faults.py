"""Transactions that fail: aborted, and gone on from the committed offsets; or the task fails and says why (KIP-691)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from exactly_once_support import Bench, CountingTask, Desk, Running, TellingTask, metrics
from harness import await_
from proxy import ALWAYS, Action, Proxy
from spoken import Api

from headgate.api import ConnectError
from headgate.model import Boundary
from headgate.producer import TransactionalProducer

pytestmark = [pytest.mark.spark, pytest.mark.kip(691, "exactly-once source")]


def first_ten(bench: Bench, proxy: Proxy, **producer: Any) -> Running:
    """A task behind the proxy that has committed one transaction, and waits."""
    bench.script.released = 10
    running = bench.start(bench.spec(bootstrap_servers=proxy.address, **producer))
    bench.check(10)
    return running


# --- put right by an abort --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [87, 45, 13, 120], ids=["invalid record", "sequence", "network", "abortable"])
def test_a_refused_batch_is_polled_again_from_the_committed_offsets(bench: Bench, proxy: Proxy, code: int) -> None:
    running = first_ten(bench, proxy)
    proxy.before(Api.PRODUCE, Action.CODE, code)
    bench.script.released = 40
    bench.check(40)
    running.stop()
    assert bench.script.starts == [0, 10]
    assert bench.script.stops == 2
    assert running.desk.events.count("running") == 1, "a rewind is not seen from outside"


@pytest.mark.parametrize("code", [49, 55], ids=["unknown id", "not attempted"])
def test_a_refused_partition_is_no_reason_to_fail(bench: Bench, proxy: Proxy, code: int) -> None:
    running = first_ten(bench, proxy)
    proxy.before(Api.ADD_PARTITIONS, Action.CODE, code)
    bench.script.released = 40
    bench.check(40)
    running.stop()
    assert bench.script.starts == [0, 10]


def test_transactions_that_fail_again_and_again_fail_the_task_in_the_end(bench: Bench, proxy: Proxy) -> None:
    running = first_ten(bench, proxy)
    proxy.before(Api.PRODUCE, Action.CODE, 87, count=ALWAYS)
    bench.script.released = 40
    trace = running.await_failure()
    assert "INVALID_RECORD" in trace
    assert bench.script.starts == [0, 10, 10], "of a record that is refused for what it is, three times are enough"
    proxy.clear()
    bench.check(10)
    again = bench.start()
    bench.check(40)
    again.stop()


def test_a_commit_in_between_makes_good_for_failures_before(bench: Bench, proxy: Proxy) -> None:
    running = first_ten(bench, proxy)
    for done in (20, 30, 40, 50):
        proxy.before(Api.PRODUCE, Action.CODE, 87)
        bench.script.released = done
        bench.check(done)
    running.stop()


# --- the end of a transaction -----------------------------------------------------------------------------------------


def test_a_commit_whose_answer_was_cut_off_is_repeated(bench: Bench, proxy: Proxy) -> None:
    running = first_ten(bench, proxy)
    proxy.after(Api.END_TXN, Action.DROP, kind="commit")
    bench.script.released = 40
    bench.check(40)
    running.stop()
    assert bench.script.starts == [0]


def test_a_commit_without_an_answer_is_never_followed_by_an_abort(bench: Bench, proxy: Proxy) -> None:
    running = first_ten(bench, proxy, request_timeout_ms=3_000)
    proxy.after(Api.END_TXN, Action.SWALLOW, kind="commit")
    bench.script.released = 40
    bench.check(40)
    running.stop()
    assert bench.script.starts == [0]
    assert proxy.requests(Api.END_TXN, "abort") == 0


@pytest.mark.parametrize("code", [48, 120], ids=["state", "abortable"])
def test_a_commit_refused_after_it_happened_is_not_written_again(bench: Bench, proxy: Proxy, code: int) -> None:
    running = first_ten(bench, proxy)
    proxy.after(Api.END_TXN, Action.CODE, code, kind="commit")
    bench.script.released = 20
    bench.check(20)
    bench.script.released = 40
    bench.check(40)
    running.stop()
    assert bench.script.starts == [0, 20]


@pytest.mark.parametrize("code", [48, 120], ids=["state", "abortable"])
def test_a_commit_refused_before_it_happened_is_written_again(bench: Bench, proxy: Proxy, code: int) -> None:
    running = first_ten(bench, proxy)
    proxy.before(Api.END_TXN, Action.CODE, code, kind="commit")
    bench.script.released = 20
    bench.check(20)
    running.stop()
    assert bench.script.starts == [0, 10]


# --- records that cannot be taken -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5_000, 1_100_000], ids=["for the topic", "for the client"])
def test_a_record_that_is_too_large_fails_the_task_whatever_is_tolerated(bench: Bench, size: int) -> None:
    bench.alter(bench.target, max_message_bytes="2000")
    bench.script.released = 10
    running = bench.start(bench.spec(errors={"errors.tolerance": "all"}))
    bench.check(10)
    bench.script.value = lambda number: "x" * size if number == 15 else str(number)
    bench.script.released = 20
    assert "MESSAGE_TOO_LARGE" in running.await_failure()
    bench.script.value = str
    bench.check(10)
    again = bench.start()
    bench.check(20)
    again.stop()


def test_records_that_are_too_large_only_together_go_in_smaller_batches(bench: Bench) -> None:
    bench.alter(bench.target, max_message_bytes="20000")
    bench.script.released, bench.script.per_poll = 3_000, 1_000
    bench.script.value = lambda number: f"{number:0100d}"
    running = bench.start()
    bench.check(3_000)
    running.stop()


def test_without_its_offsets_no_record_is_seen_either(bench: Bench) -> None:
    bench.alter(bench.offsets_topic, max_message_bytes="90")  # enough for the markers of transactions
    bench.script.released = 10
    running = bench.start()
    assert "MESSAGE_TOO_LARGE" in running.await_failure()
    bench.check(0)
    bench.alter(bench.offsets_topic, max_message_bytes="1000000")
    again = bench.start()
    bench.check(10)
    again.stop()


def test_offsets_that_cannot_be_written_fail_the_task_and_commit_nothing(bench: Bench) -> None:
    bench.script.asks = lambda _, records: [each.source_offset.update(next=object()) for each in records]  # type: ignore[union-attr]
    bench.script.released = 10
    running = bench.start()
    assert "InvalidOffset" in running.await_failure()
    bench.check(0)


def test_its_own_offsets_topic_is_no_place_for_records(bench: Bench) -> None:
    bench.script.topic, bench.script.released = bench.offsets_topic, 10
    running = bench.start()
    trace = running.await_failure()
    assert "Source tasks may not produce to their own offsets topics when exactly-once support is enabled" in trace
    assert bench.offset() == 0


# --- time -------------------------------------------------------------------------------------------------------------


def commit(task: CountingTask, _: object) -> None:
    assert task.context.transaction_context is not None
    task.context.transaction_context.commit_transaction()


def test_a_transaction_that_expires_fails_the_task_and_says_what_to_do(bench: Bench) -> None:
    bench.script.released = 10
    running = bench.start(bench.spec(Boundary.CONNECTOR, transaction_timeout_ms=2_000))
    await_(lambda: metrics(running).polled.total == 10, "polled")
    time.sleep(4)  # nobody ends it
    bench.script.asks = commit
    bench.script.released = 20
    trace = running.await_failure()
    assert f"The task {bench.name}-0 was unable to finish writing records to Kafka before its producer" in trace
    bench.check(0)
    bench.script.asks = lambda *_: None
    again = bench.start()
    bench.check(20)
    again.stop()


def test_an_interval_alone_does_not_let_a_transaction_expire(bench: Bench) -> None:
    bench.script.released = 10
    running = bench.start(bench.spec(Boundary.INTERVAL, 3_600_000, transaction_timeout_ms=3_000))
    bench.check(10)
    running.stop()


# --- fenced -----------------------------------------------------------------------------------------------------------


def other_producer(bench: Bench) -> TransactionalProducer:
    """Somebody else takes the transactional id."""
    taken = TransactionalProducer({"bootstrap.servers": bench.bootstrap, "transactional.id": bench.transactional_id})
    bench.open.callback(taken.close, 5.0)
    taken.init(20)
    return taken


def test_a_second_instance_of_the_task_fences_the_first(bench: Bench) -> None:
    bench.script.released = 1_000
    first = bench.start(bench.spec(Boundary.INTERVAL, 60_000))
    await_(lambda: metrics(first).polled.total == 1_000, "polled")
    elsewhere = bench.elsewhere()
    second = elsewhere.start(elsewhere.spec(Boundary.POLL))
    bench.check(1_000)
    assert elsewhere.script.starts == [0], "nothing of the first was committed"
    bench.script.released = 2_000
    first.thread.pause()  # it is to commit now
    trace = first.await_failure()
    assert "another cluster of workers with the same group.id" in trace
    elsewhere.script.released = 2_000
    bench.check(2_000)
    second.stop()


def test_a_fenced_task_that_is_no_longer_ours_ends_without_a_word(bench: Bench) -> None:
    desk = Desk()
    bench.script.released = 10
    running = bench.start(desk=desk)
    bench.check(10)

    def revoked() -> None:
        raise ConnectError("Cannot start source task: it has already been revoked from this worker")

    desk.confirm = revoked
    other_producer(bench)
    bench.script.released = 20
    running.await_event("stopped")
    bench.check(10)


def test_a_task_that_is_no_longer_ours_does_not_take_its_id_again(bench: Bench, proxy: Proxy) -> None:
    """After an abort that needs a new producer."""
    running = first_ten(bench, proxy)

    def revoked() -> None:
        raise ConnectError("revoked")

    running.desk.confirm = revoked
    proxy.before(Api.PRODUCE, Action.CODE, 87)
    before = proxy.requests(Api.INIT_PRODUCER_ID)
    bench.script.released = 20
    running.await_event("stopped")
    assert proxy.requests(Api.INIT_PRODUCER_ID) == before
    bench.check(10)


def test_a_task_of_which_nobody_knows_whose_it_is_fails(bench: Bench, proxy: Proxy) -> None:
    running = first_ten(bench, proxy)

    def unknown() -> None:
        raise TimeoutError("the config topic could not be read")

    running.desk.confirm = unknown
    proxy.before(Api.PRODUCE, Action.CODE, 87)
    before = proxy.requests(Api.INIT_PRODUCER_ID)
    bench.script.released = 20
    assert "the config topic could not be read" in running.await_failure()
    assert proxy.requests(Api.INIT_PRODUCER_ID) == before
    bench.check(10)


# --- the start --------------------------------------------------------------------------------------------------------


@pytest.mark.kip(618, "zombie fencing")
def test_nothing_is_taken_before_the_fencing_is_done(bench: Bench) -> None:
    def refused() -> None:
        raise ConnectError("the round of fencing failed")

    desk = Desk()
    desk.fence = refused
    owner = other_producer(bench)
    owner.begin()
    bench.script.released = 10
    assert "the round of fencing failed" in bench.start(desk=desk).await_failure()
    assert desk.events == ["fencing", "failed"]
    owner.send(bench.target, b"still there")
    owner.commit(20)
    assert bench.written() == ["still there"]


@pytest.mark.kip(618, "zombie fencing")
def test_a_task_that_must_not_start_never_does(bench: Bench) -> None:
    text = "Cannot start source task with exactly-once support as the connector has already generated new configs"

    def outdated() -> None:
        raise ConnectError(text)

    desk = Desk()
    desk.confirm = outdated
    assert text in bench.start(desk=desk).await_failure()
    assert bench.script.starts == []


def test_what_another_left_open_is_ended_before_offsets_are_read(bench: Bench) -> None:
    zombie = other_producer(bench)
    zombie.begin()
    zombie.send(bench.target, b"never seen")
    zombie.send(bench.offsets_topic, b'{"next":7}', key=f'["{bench.name}",{{"source":"numbers"}}]'.encode())
    zombie.flush(20)
    bench.script.released = 10
    running = bench.start()
    bench.check(10)
    running.stop()
    assert bench.script.starts == [0]


def test_a_setting_that_the_broker_refuses_is_named(bench: Bench) -> None:
    running = bench.start(bench.spec(transaction_timeout_ms=3_600_000))
    trace = running.await_failure()
    assert "producer.override.transaction.timeout.ms to no more than the broker's transaction.max.timeout.ms" in trace


# --- what the task is told --------------------------------------------------------------------------------------------


def test_records_are_told_once_they_are_committed(bench: Bench, proxy: Proxy) -> None:
    bench.script.released = 10
    running = bench.start(bench.spec(task=TellingTask, bootstrap_servers=proxy.address))
    bench.check(10)
    await_(lambda: len(bench.script.told) == 10, "told")
    proxy.before(Api.PRODUCE, Action.CODE, 87)
    bench.script.released = 30
    bench.check(30)
    running.stop()
    assert bench.script.told == [str(number) for number in range(30)]
