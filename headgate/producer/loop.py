"""Consume, transform, produce, exactly once: KIP-691's template of two phases as code.

In the first phase records and offsets are sent; whatever is raised there only means: do not commit. The second commits
or aborts, and does nothing else. Bugs and fatal errors leave the loop.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headgate.backoff import Backoff
from headgate.kafka.asking import ask_for
from headgate.producer.errors import (
    CommitFailedError,
    FatalProducerError,
    GroupFencedError,
    OperationTimeoutError,
    ProducerStateError,
    ProtocolBugError,
)
from headgate.producer.producer import TransactionalProducer

log = logging.getLogger(__name__)


class GroupChanged(Exception):
    """The consumer's membership is another one than at the beginning of the transaction."""


class ProducerRecord(NamedTuple):
    """A record to be sent."""

    topic: str
    value: str | bytes | None
    key: str | bytes | None = None
    partition: int | None = None
    headers: Any = None
    timestamp: int | None = None


Transform = Callable[[list[Message]], Iterable[ProducerRecord]]
"""From a batch of messages to what shall be sent for them. It is called again for the same messages after an abort."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often in a row a transaction may fail, and how long to wait before the next."""

    tries: int = 10
    first: float = 0.1
    most: float = 10.0

    def pause(self, failures: int) -> float:
        """Seconds after that many failures in a row."""
        return Backoff(self.first, 2.0, self.most).after(failures)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that each step may take."""

    wait: float = 1.0
    """For a first message, and for a batch to get full."""
    init: float = 60.0
    offsets: float = 30.0
    commit: float = 120.0
    """In all. When it is over, the outcome is not known, and the loop ends."""
    commit_try: float = 30.0
    abort: float = 120.0
    rewind: float = 30.0


_DEFAULT_PATIENCE: Final = Patience()
_DEFAULT_TIMES: Final = Times()

_PASSING: Final = frozenset(
    {
        KafkaError._PARTITION_EOF,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a consumer says in place of a message, and gets over by itself."""

REQUIRED: Final[Mapping[str, Any]] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
}
"""Settings that the loop's consumer needs."""


def consumer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a consumer for the loop. Raises ValueError for one that contradicts them."""
    for key, needed in REQUIRED.items():
        given = config.get(key, needed)
        if str(given).lower() != str(needed).lower():
            raise ValueError(f"{key} must be {needed} here, not {given}")
    return {"auto.offset.reset": "earliest", **config, **REQUIRED}


class Loop:
    """Reads `topics` as a member of the consumer's group, calls `transform` for each batch, and sends what it returns,
    with the batch's offsets, in one transaction. Messages whose transaction was aborted are read again.

    The consumer is made with `consumer_config`; nobody else uses it or the producer while `run` runs."""

    def __init__(
        self,
        consumer: Consumer,
        producer: TransactionalProducer,
        topics: Sequence[str],
        transform: Transform,
        *,
        max_records: int = 10_000,
        patience: Patience = _DEFAULT_PATIENCE,
        times: Times = _DEFAULT_TIMES,
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._topics = list(topics)
        self._transform = transform
        self._max_records = max_records
        self._patience = patience
        self._times = times
        self._ended = threading.Event()
        self._failures = 0
        self._starts: dict[tuple[str, int], int] = {}
        """Where this member began to read partitions that have no committed offset yet."""

    def stop(self) -> None:
        """From any thread: `run` returns after the transaction at hand."""
        self._ended.set()

    def run(self) -> None:
        """Until `stop`. Whatever it raises, it has closed the producer and the consumer before; after a regular end
        they stay open."""
        try:
            self._consumer.subscribe(self._topics, on_assign=self._assigned)
            self._producer.init(self._times.init)
            while not self._ended.is_set():
                try:
                    self._round()
                except GroupFencedError as error:
                    self._rejoin(error)
        except BaseException:
            self._producer.close()
            with contextlib.suppress(KafkaException, RuntimeError):
                self._consumer.close()
            raise

    # --- one transaction ----------------------------------------------------------------------------------------------

    def _round(self) -> None:
        batch = self._take()
        if not batch:
            return
        membership = self._consumer.consumer_group_metadata()
        _repeat(lambda seconds: self._producer.begin(), self._times.init)
        problem = self._send(batch, membership)
        if problem is None:
            try:
                _repeat(self._producer.commit, self._times.commit, self._times.commit_try)
            except CommitFailedError as error:
                problem = error
        if problem is None:
            self._failures = 0
            return
        # First abort, then rewind: pending offsets would block the question for committed ones.
        _repeat(self._producer.abort, self._times.abort)
        self._rewind()
        self._bear(problem)

    def _send(self, batch: list[Message], membership: object) -> Exception | None:
        """The first phase: what speaks against a commit, if anything."""
        producer = self._producer
        try:
            for record in self._transform(batch):
                producer.send(*record)
            # Asked for again: the group refuses an older one, but it takes that of somebody without any.
            now = self._consumer.consumer_group_metadata()
            if now != membership:
                raise GroupChanged("the group was rebalanced during the transaction")
            producer.send_offsets(next_positions(batch), now, self._times.offsets)
        except (ProducerStateError, ProtocolBugError, FatalProducerError):
            raise
        except Exception as error:
            return error
        return None

    def _bear(self, problem: Exception) -> None:
        """Waits before the next try, or gives up."""
        self._failures += 1
        if self._failures >= self._patience.tries:
            raise problem
        pause = self._patience.pause(self._failures)
        log.warning("Failed for the %d. time in a row, tried again in %.1f s: %s", self._failures, pause, problem)
        self._ended.wait(pause)

    # --- the consumer -------------------------------------------------------------------------------------------------

    def _take(self) -> list[Message]:
        batch = []
        for message in self._consumer.consume(self._max_records, self._times.wait):
            error = message.error()
            if error is None:
                batch.append(message)
            elif error.code() in _PASSING and not error.fatal():
                log.debug("The consumer says: %s", error)
            else:
                raise KafkaException(error)
        for message in batch:
            self._starts.setdefault((message.topic() or "", message.partition() or 0), message.offset() or 0)
        return batch

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._starts.pop((each.topic, each.partition), None)

    def _rewind(self) -> None:
        """Back to what is committed, or to where reading began."""
        assigned = self._consumer.assignment()
        if not assigned:
            return
        for each in self._committed(assigned):
            offset = each.offset if each.offset >= 0 else self._starts.get((each.topic, each.partition))
            if offset is not None:  # else nothing of it was read yet
                self._seek(TopicPartition(each.topic, each.partition, offset))

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        def ask(left: float) -> list[TopicPartition]:
            found = self._consumer.committed(partitions, left)
            for each in found:
                if each.error is not None:
                    raise KafkaException(each.error)
            return list(found)

        return ask_for(self._times.rewind, ask, Backoff(0.1))

    def _seek(self, place: TopicPartition) -> None:
        try:
            self._consumer.seek(place)
        except KafkaException as error:
            if place in self._consumer.assignment():
                raise
            log.info("%s[%d] is no longer ours: %s", place.topic, place.partition, error)

    def _rejoin(self, error: GroupFencedError) -> None:
        """Others have our partitions: forget them, join again; the same producer goes on with another handle."""
        self._bear(error)
        self._consumer.unsubscribe()
        self._starts.clear()
        self._producer.reset()
        self._producer.init(self._times.init)
        self._consumer.subscribe(self._topics, on_assign=self._assigned)


def _repeat(call: Callable[[float], None], limit: float, slice: float | None = None) -> None:
    """Calls again what timed out, and does nothing else in between: nothing else is allowed. At the end the time-out
    comes out; after a commit its outcome is unknown, and whoever comes next must read the committed positions."""
    deadline = time.monotonic() + limit
    while True:
        left = max(deadline - time.monotonic(), 0.1)
        try:
            return call(left if slice is None else min(left, slice))
        except OperationTimeoutError:
            if time.monotonic() >= deadline:
                raise


def next_positions(batch: Iterable[Message]) -> list[TopicPartition]:
    """Where to read on after a batch: for each of its partitions the offset after the last one."""
    last = {(message.topic() or "", message.partition() or 0): message.offset() or 0 for message in batch}
    return [TopicPartition(topic, partition, offset + 1) for (topic, partition), offset in last.items()]
