"""TopicLog: one compacted topic, read from its beginning to its end and followed from there.

A consumer without a group reads all partitions on a thread of its own and hands each record to one callback. Broker
restarts are waited out. What is in the topic, and who writes to it, others know.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata, OffsetSpec  # type: ignore[attr-defined]

from headgate.kafka.admin_clients import wait
from headgate.kafka.asking import NOT_YET
from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.kafka.statistics import watched
from headgate.log import Complaints
from headgate.model import Config
from headgate.runtime.ports import KafkaAway

_log: Final = logging.getLogger(__name__)

_POLL_S: Final = 0.2
_BATCH: Final = 1000
_ASK_S: Final = 5.0
_SOON_S: Final = 2.0
_PAUSE_S: Final = 0.2


class LogRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int = -1
    """Milliseconds; -1 if the broker does not say."""


OnRecord = Callable[[LogRecord], None]


class ReadTimeout(Exception):
    """The end of the topic was not reached in time: Kafka is away, or a transaction is still open. Try again."""


class TopicGone(ReadTimeout):
    """Kafka does not have it any more, or not all of its partitions."""


class Log(Protocol):
    """What the stores need of a TopicLog."""

    topic: str

    def start(self, on_record: OnRecord, timeout: float) -> None: ...

    def read_to_end(self, timeout: float, *, at_once: bool = False) -> None: ...

    def begin_again(self, partitions: int) -> None: ...

    def close(self) -> None: ...


class TopicLog:
    """`read_to_end` may be called from any thread, but not from the callback."""

    def __init__(self, topic: str, clients: Config, admin: AdminClient, *, read_committed: bool = False) -> None:
        """`clients` are settings by Apache's names. With `read_committed`, aborted records are not seen, and open
        transactions keep the end from being reached. Raises ClientConfigError."""
        self.topic = topic
        self._admin = admin
        self._committed = read_committed
        self._servers = clients.get("bootstrap.servers", "")
        self._settings = {
            **USUAL,
            **translate(ClientKind.CONSUMER, _consumer(topic, clients, read_committed)).config,
            # Says where a partition ends; positions alone would stop before control records and gaps of compaction.
            "enable.partition.eof": True,
        }
        self._complaints = Complaints(_log, f"Reading {topic}")
        self._last_error = ""
        self._on_record: OnRecord | None = None
        self._partitions: list[int] = []
        self._positions: dict[int, int] = {}
        self._moved = threading.Condition()
        self._gone = False
        self._anew = threading.Event()
        """The topic is another one by now: read it from its beginning."""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, on_record: OnRecord, timeout: float) -> None:
        """Returns when `on_record` has had all that was in the topic. It is called from the log's thread, for each
        record in its partition's order, until `close`. Raises ReadTimeout, and is closed then."""
        if self._thread is not None:
            raise RuntimeError(f"the log of {self.topic} was started before")
        deadline = time.monotonic() + timeout
        self._on_record = on_record
        consumer = Consumer(watched(ClientKind.CONSUMER, {**self._settings, "error_cb": self._on_error}))
        try:
            self._partitions = self._find_partitions(consumer, deadline, timeout)
            self._begin(consumer)
        except BaseException:
            consumer.close()
            raise
        self._thread = threading.Thread(target=self._follow, args=(consumer,), name=f"log-{self.topic}", daemon=True)
        self._thread.start()
        try:
            self._read_to_end(deadline, timeout)
        except BaseException:
            self.close()
            raise

    def read_to_end(self, timeout: float, *, at_once: bool = False) -> None:
        """Returns when the callback has had every record that was in the topic when this was called, including those
        of transactions that were open. Raises ReadTimeout; with `at_once`, a Kafka that does not answer and a topic
        that is not there are not waited for: KafkaAway, TopicGone."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(f"the callback of topic {self.topic} would wait for itself: read from another thread")
        self._read_to_end(time.monotonic() + timeout, timeout, at_once)

    def begin_again(self, partitions: int) -> None:
        """Another topic of so many partitions has taken its place: it is read from its beginning. From any thread."""
        self._partitions = list(range(partitions))
        self._anew.set()

    def close(self) -> None:
        """No callback comes after this. Harmless when closed."""
        self._closing.set()
        with self._moved:
            self._moved.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(30)

    # --- where the end is ---------------------------------------------------------------------------------------------

    def _find_partitions(self, consumer: Consumer, deadline: float, timeout: float) -> list[int]:
        while True:
            left = deadline - time.monotonic()
            try:
                found = consumer.list_topics(self.topic, timeout=min(max(left, 0.1), _ASK_S)).topics[self.topic]
                if found.error is None and found.partitions:
                    return sorted(found.partitions)
                self._last_error = str(found.error.str()) if found.error else "it has no partitions"
            except KafkaException as error:
                self._last_error = error.args[0].str()
            self._pause(deadline, f"Topic {self.topic} was not found within {timeout:g} s")

    def _read_to_end(self, deadline: float, timeout: float, at_once: bool = False) -> None:
        if not self._partitions or self._closing.is_set():
            raise ReadTimeout(f"The log of topic {self.topic} is closed")
        before = dict(self._positions)
        ends = self._ends(deadline, timeout, at_once)
        if at_once and (self._gone or any(end < before.get(number, 0) for number, end in ends.items())):
            self._gone = False
            self._anew.set()

        def reached() -> bool:
            at_end = (self._positions.get(number, 0) >= end for number, end in ends.items())
            return not self._anew.is_set() and all(at_end)

        with self._moved:
            self._moved.wait_for(lambda: reached() or self._closing.is_set(), max(deadline - time.monotonic(), 0.0))
            if reached():
                return
        complaint = f"Topic {self.topic} was not read to its end within {timeout:g} s"
        raise self._too_late(complaint + self._open_transaction(ends))

    def _open_transaction(self, ends: dict[int, int]) -> str:
        """What keeps committed records from being read up to these ends, as far as Kafka tells."""
        if not self._committed or self._closing.is_set():
            return ""
        with suppress(KafkaException):
            for number, decided in self._asked_ends(IsolationLevel.READ_COMMITTED, _SOON_S).items():
                if decided < ends[number]:
                    return (
                        f": a transaction has been open since offset {decided} of partition {number}. If it stays open,"
                        " its producer is gone and the broker has lost sight of it:"
                        " `kafka-transactions.sh find-hanging` and `abort` end it"
                    )
        return ""

    def _asked_ends(self, level: IsolationLevel, seconds: float) -> dict[int, int]:
        """Raises KafkaException."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self.topic, number): latest for number in self._partitions}
        answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=seconds)
        return {at.partition: wait(self._admin, answer, seconds + 1).offset for at, answer in answers.items()}

    def _ends(self, deadline: float, timeout: float, at_once: bool) -> dict[int, int]:
        """The ends with all open transactions: whoever reads committed records waits until those are decided."""
        most = _SOON_S if at_once else _ASK_S
        while True:
            left = min(max(deadline - time.monotonic(), 0.1), most)
            try:
                return self._asked_ends(IsolationLevel.READ_UNCOMMITTED, left)
            except KafkaException as error:
                self._last_error = error.args[0].str()
                # The client goes on asking whom it knows, by an epoch that is over, until it looks around.
                found = None
                with suppress(KafkaException):
                    found = self._admin.list_topics(timeout=min(max(deadline - time.monotonic(), 0.1), most))
                if at_once:
                    self._require_topic(found)
            self._pause(deadline, f"Kafka did not tell the end of topic {self.topic} within {timeout:g} s")

    def _require_topic(self, found: ClusterMetadata | None) -> None:
        """`found`: what the cluster has; None if it did not tell."""
        if found is None:
            raise KafkaAway(self._servers, self._last_error)
        if self.topic not in found.topics or not set(self._partitions) <= found.topics[self.topic].partitions.keys():
            self._gone = True
            raise TopicGone(f"Topic {self.topic} is not there any more, or not all of it")

    def _pause(self, deadline: float, complaint: str) -> None:
        if time.monotonic() + _PAUSE_S > deadline or self._closing.wait(_PAUSE_S):
            raise self._too_late(complaint)

    def _too_late(self, complaint: str) -> ReadTimeout:
        if self._closing.is_set():
            return ReadTimeout(f"The log of topic {self.topic} was closed")
        return ReadTimeout(
            f"{complaint}; Kafka's client said last: {self._last_error}" if self._last_error else complaint
        )

    # --- the log's thread ---------------------------------------------------------------------------------------------

    def _begin(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in self._partitions])

    def _follow(self, consumer: Consumer) -> None:
        while not self._closing.is_set():
            try:
                if self._anew.is_set():
                    self._begin(consumer)
                    self._positions.clear()
                    self._anew.clear()
                # The first is waited for; what has come with it is taken without waiting for more.
                first = consumer.poll(_POLL_S)
                if first is not None:
                    self._take([first, *consumer.consume(_BATCH, 0)])
            except Exception:  # the callback's are caught where they belong
                _log.exception("Topic %s could not be read; trying again", self.topic)
                self._closing.wait(_PAUSE_S)
        consumer.close()

    def _take(self, messages: list[Message]) -> None:
        reached: dict[int, int] = {}
        for message in messages:
            if self._closing.is_set():
                return
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                self._on_error(error)
            elif partition is None or offset is None:
                continue  # only so that types agree: messages of a consumer have both
            elif error is None:
                self._tell(LogRecord(message.key(), message.value(), partition, offset, message.timestamp()[1]))
                reached[partition] = offset + 1
            else:
                reached[partition] = offset
        if reached:
            self._last_error = ""
            with self._moved:
                self._positions.update(reached)
                self._moved.notify_all()

    def _tell(self, record: LogRecord) -> None:
        assert self._on_record is not None
        try:
            self._on_record(record)
        except Exception:
            _log.exception("Record %d of %s-%d failed", record.offset, self.topic, record.partition)

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()
        gone = error.code() in NOT_YET  # which is said of each partition, again and again
        self._complaints.say(KafkaError(error.code()).str() if gone else error.str(), once=gone)


def _consumer(topic: str, clients: Config, read_committed: bool) -> Config:
    made = {
        # Asked for by the client, never joined. The worker's own: it may at least ask about that one.
        "group.id": topic,
        "reconnect.backoff.max.ms": "1000",
        # An end that comes with a control record is told when a fetch has found nothing: that long after it.
        **({"fetch.max.wait.ms": "100"} if read_committed else {}),
        **clients,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": "false",
        "isolation.level": "read_committed" if read_committed else "read_uncommitted",
    }
    return {key: value for key, value in made.items() if key not in ("group.instance.id", "group.protocol")}
