"""The loop on a real broker: every input is in the output once, whatever happens in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from job import Job

from headgate.producer import (
    FailureType,
    GroupFencedError,
    ProducerClosedError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalProducer,
)
from headgate.producer.loop import Loop, Patience, ProducerRecord, Times, consumer_config, next_positions

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "the usage template: one phase to send, one to commit or abort")]

Transform = Callable[[list[Message]], Iterable[ProducerRecord]]
QUICK = Patience(tries=5, first=0.01)
TIMES = Times(wait=0.3)


class Bench:
    """A loop over the job's inputs, in a thread of its own."""

    def __init__(self, job: Job) -> None:
        self.job = job
        job.inputs = tuple(b"input-%d" % number for number in range(30))
        filler = Producer({"bootstrap.servers": job.bootstrap, "log_level": 0})
        for value in job.inputs:
            filler.produce(job.source, value, partition=0)
        assert filler.flush(20) == 0
        # Not by the admin client, which librdkafka lets crash while a coordinator is starting.
        observer = {"bootstrap.servers": job.bootstrap, "group.id": job.group, "isolation.level": "read_uncommitted"}
        self._observer = Consumer({**observer, "log_level": 0})
        job.open.callback(self._observer.close)
        self.producer = job.make()
        self.raised: BaseException | None = None
        self.loop: Loop | None = None

    def consumer(self, kind: type[Consumer] = Consumer, **more: Any) -> Consumer:
        config = {
            "bootstrap.servers": self.job.bootstrap,
            "group.id": self.job.group,
            "group.protocol": "classic",
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        consumer = kind(consumer_config(config))
        self.job.open.callback(consumer.close)
        return consumer

    def committed(self) -> int:
        """Without waiting for what is pending."""
        try:
            (found,) = self._observer.committed([TopicPartition(self.job.source, 0)], 20)
        except KafkaException:  # the coordinator is starting
            return -1
        return int(found.offset)

    def run(self, transform: Transform, consumer: Consumer | None = None) -> None:
        """Until the last input is committed, or the loop ends by itself."""
        consumer = consumer or self.consumer()
        loop = Loop(consumer, self.producer, [self.job.source], transform, max_records=10, patience=QUICK, times=TIMES)

        def work() -> None:
            try:
                loop.run()
            except BaseException as error:
                self.raised = error

        thread = threading.Thread(target=work)
        thread.start()
        deadline = time.monotonic() + 60
        while thread.is_alive() and self.committed() < len(self.job.inputs):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        loop.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def bench(job: Job) -> Bench:
    return Bench(job)


def copied(bench: Bench, batch: list[Message]) -> list[ProducerRecord]:
    return [ProducerRecord(bench.job.target, message.value(), partition=0) for message in batch]


def test_what_is_read_is_written_once(bench: Bench) -> None:
    sizes: list[int] = []

    def copy(batch: list[Message]) -> list[ProducerRecord]:
        sizes.append(len(batch))
        return copied(bench, batch)

    bench.run(copy)
    assert bench.raised is None
    assert max(sizes) <= 10
    bench.job.check()
    bench.producer.begin()  # both are left open after a regular end
    bench.producer.abort(20)


def test_what_failed_is_read_again(bench: Bench) -> None:
    failures = iter(range(3))

    def fails_at_first(batch: list[Message]) -> Iterator[ProducerRecord]:
        for record in copied(bench, batch):
            yield record
            if next(failures, None) is not None:
                raise ValueError("broken on purpose")

    bench.run(fails_at_first)
    assert bench.raised is None
    bench.job.check()


def test_a_failure_in_the_middle_goes_back_to_what_was_committed(bench: Bench) -> None:
    seen: list[bytes | None] = []
    broken = [True]

    def copy(batch: list[Message]) -> list[ProducerRecord]:
        seen.extend(message.value() for message in batch)
        if bench.job.inputs[15] in seen and broken:
            broken.pop()
            raise ValueError("broken on purpose")
        return copied(bench, batch)

    bench.run(copy)
    assert bench.raised is None
    assert len(seen) > 30
    assert seen[0] == seen[-1] or seen.count(seen[0]) == 1  # what was committed is not read again
    bench.job.check()


def test_what_always_fails_ends_the_loop_and_closes_both(bench: Bench) -> None:
    tries: list[int] = []

    def too_large(batch: list[Message]) -> list[ProducerRecord]:
        tries.append(len(batch))
        return [ProducerRecord(bench.job.target, b"x" * 2_000_000)]

    consumer = bench.consumer()
    bench.run(too_large, consumer)
    assert isinstance(bench.raised, TransactionAbortableError)
    assert bench.raised.failure_type is FailureType.MESSAGE_REJECTED
    assert len(tries) == QUICK.tries
    with pytest.raises(ProducerClosedError):
        bench.producer.begin()
    with pytest.raises(RuntimeError):
        consumer.consume(1, 0)
    bench.job.check(0)


def test_a_fenced_producer_ends_the_loop(bench: Bench) -> None:
    newer: list[TransactionalProducer] = []

    def fenced(batch: list[Message]) -> list[ProducerRecord]:
        newer.append(bench.job.start())
        return copied(bench, batch)

    bench.run(fenced)
    assert type(bench.raised) is ProducerFencedError
    assert len(newer) == 1
    bench.job.finish(newer[0])
    bench.job.check()


class Left(Consumer):
    """Shows, once, the membership of one that has left."""

    stale: Any = None
    asked = 0

    def consumer_group_metadata(self) -> object:
        type(self).asked += 1
        return self.stale if self.asked <= 2 else super().consumer_group_metadata()


@pytest.mark.kip(691, "the same producer goes on after rejoining the group")
def test_out_of_the_group_it_joins_again_and_goes_on_with_the_same_producer(
    bench: Bench, eventually: Callable[..., None]
) -> None:
    former = bench.consumer()
    former.subscribe([bench.job.source])

    def joined() -> bool:
        former.poll(0.05)
        return bool(former.assignment())

    eventually(joined)
    Left.stale, Left.asked = former.consumer_group_metadata(), 0
    former.close()
    reset: list[object] = []
    real = bench.producer.reset
    bench.producer.reset = lambda: reset.append(real())  # type: ignore[method-assign]
    bench.run(lambda batch: copied(bench, batch), bench.consumer(Left))
    assert bench.raised is None
    assert len(reset) == 1
    bench.job.check()


def test_who_takes_too_long_loses_the_group_and_doubles_nothing(bench: Bench) -> None:
    slow = [True]

    def sleepy(batch: list[Message]) -> list[ProducerRecord]:
        if slow:
            slow.pop()
            time.sleep(4)
        return copied(bench, batch)

    bench.run(sleepy, bench.consumer(session_timeout_ms=1000, max_poll_interval_ms=1500))
    assert bench.raised is None or isinstance(bench.raised, GroupFencedError)
    bench.job.check()


def test_the_next_position_is_behind_the_last_message_of_each_partition() -> None:
    def message(partition: int, offset: int) -> Message:
        return Message(topic="t", partition=partition, offset=offset)

    found = next_positions([message(0, 5), message(1, 2), message(0, 9)])
    assert [(each.partition, each.offset) for each in found] == [(0, 10), (1, 3)]


def test_a_consumer_that_would_break_the_promise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"enable\.auto\.commit"):
        consumer_config({"enable.auto.commit": "true"})
    made = consumer_config({"group.id": "g", "isolation.level": "read_committed"})
    assert made["enable.auto.commit"] is False
