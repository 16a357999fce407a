"""The task's own producer: sends the pipeline's columns to Kafka and knows when all of it has arrived."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headgate.kafka.native import calls as native
from headgate.kafka.native.calls import Message
from headgate.kafka.native.columns import Arguments, address, column, slices
from headgate.kafka.native.oversize import Oversize
from headgate.kafka.native.rows import QUEUE_FULL, rows_of
from headgate.kafka.native.topic_settings import settings_of
from headgate.kafka.settings import ONE_AT_A_TIME, USUAL, ClientKind, translate
from headgate.kafka.statistics import traced
from headgate.log import Complaints
from headgate.model import Config

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_FAST: Final = {"queue.buffering.max.messages": 1_000_000, "linger.ms": 5, "socket.nagle.disable": True}
_PURGED: Final = (-152, -151)
_TOO_LARGE: Final = 10
_INVALID_TOPIC: Final = 17
_UNKNOWN_TOPIC: Final = 3
_LARGEST: Final = 1_000_000
"""Most bytes of a batch, unless settings say less."""
_ASK_S: Final = 3.0
_SILENCE: Final = 0
_SILENCE_S: Final = 10.0
"""Who has not answered is asked nothing for so long: what is sent goes into the queue meanwhile."""
_FEEL: Final = 16_384
"""Bytes that go first to a topic that may not be asked: as many as the batches of Java's client have."""
_TRIES: Final = 2
"""How often a topic that is not there is asked for its limit: before its first record, and after it."""
_OF_THE_RECORD: Final = frozenset({_TOO_LARGE, _INVALID_TOPIC, 3, 29, 87, -188, -190})
"""What librdkafka may have against a record before it is sent: its size, its form, a topic or a partition that is not
there or not allowed. The Java client tells these to the send callback, too; all else is the producer's own trouble."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that Kafka does not take."""

    message: Message
    """Its number is that of its row, counted from the first that was sent."""
    reason: str


class DeliveryFailed(Exception):
    """The producer cannot send: not this record's fault, or nobody wants it sent any more."""


class Delivery:
    """One thread sends. `send` and `flush` tell `on_refused` what Kafka refused, and let out what that raises."""

    def __init__(self, config: Config, may_go_on: Callable[[], bool], on_refused: Callable[[Refused], None]) -> None:
        translated = translate(ClientKind.PRODUCER, config)
        if translated.ignored:
            log.info("Producer settings without meaning here are ignored: %s", ", ".join(translated.ignored))
        # Only failures are reported: what has left the queue without one has arrived.
        only_errors = {"delivery.report.only.error": True}
        self._settings = settings = {**USUAL, **ONE_AT_A_TIME, **_FAST, **translated.config, **only_errors}
        self._calls = native.library()
        self._traced = traced(str(settings.get("client.id", "rdkafka")))
        self._largest = min(int(settings.get(key, _LARGEST)) for key in ("batch.size", "message.max.bytes"))
        self._topics: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._ask_after = 0.0
        self._may_go_on = may_go_on
        self._on_refused = on_refused
        self._refused: deque[Refused] = deque()
        self._oversize = Oversize()
        self._failure: Exception | None = None
        self._complaints = Complaints(log, "Producer")
        self.count = 0
        """Rows that were sent: the number of the next one."""
        self._closed = False
        self._begin()

    # --- its client ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._closed:
            raise DeliveryFailed("The producer is closed")
        events = native.EVENT_DELIVERY | native.EVENT_ERROR
        self._handle = native.new_producer(self._settings, self._traced.sockets.install, events=events)
        self._queue = self._calls.rd_kafka_queue_get_main(self._handle)

    def rest(self) -> None:
        """Lets the client go, with its threads and connections, unless Kafka has to answer for something. There is
        another one as soon as something is sent."""
        if not self.unanswered:
            self._end()

    def _end(self) -> None:
        if not self._handle:
            return
        self._calls.rd_kafka_purge(self._handle, native.PURGE_ALL)
        self._serve(0)
        for topic in self._topics.values():
            self._calls.rd_kafka_topic_destroy(topic)
        self._topics.clear()
        self._calls.rd_kafka_queue_destroy(self._queue)
        self._calls.rd_kafka_destroy_flags(self._handle, native.DESTROY_AT_ONCE)
        self._handle = 0

    def close(self) -> None:
        """Forgets what was not acknowledged: its offsets are not committed either. May be repeated."""
        self._closed = True
        self._end()

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, table: pa.Table) -> None:
        """Hands all rows to the producer, in order; waits where its queue is full."""
        if not self._handle:
            self._begin()
        for topic, rows, limited in slices(table, self._limit):
            self._send_rows(topic, rows)
            if limited:
                self._settle()  # before the next: so no batch has more than these rows
                self._oversize.taken(topic, rows.nbytes, self._largest)
        self._look()

    def _limit(self, topic: str) -> int | None:
        """The most bytes of this topic at a time; None: as much as goes into a batch. The topic is asked before
        anything is sent: what is refused arrives behind what was under way with it. One that is not there yet is made
        for its first record, which goes alone."""
        asked = self._asked.get(topic, 0)
        if asked < _TRIES and time.monotonic() >= self._ask_after:
            told = self._learn(topic)
            if told == _UNKNOWN_TOPIC:
                self._asked[topic] = asked + 1
                return self._oversize.limit(topic) if asked else 1
            if told != _SILENCE:
                self._asked[topic] = _TRIES
                if isinstance(told, int):  # it may not be asked
                    self._oversize.feel(topic, min(_FEEL, self._largest))
        return self._oversize.limit(topic)

    def _learn(self, topic: str) -> dict[str, str] | int:
        told = settings_of(self._handle, topic, _ASK_S, self._may_go_on)
        if told == _SILENCE:
            self._ask_after = time.monotonic() + _SILENCE_S
        elif isinstance(told, dict):
            most = int(told.get("max.message.bytes", self._largest))
            if most < self._largest:
                self._oversize.learn(topic, most)
        return told

    def _send_rows(self, topic: str, batch: pa.RecordBatch) -> None:
        handle = self._topic(topic)
        if not handle:
            self._refuse_all(topic, batch)
            return
        rows = rows_of(topic, batch, self.count)
        while rows.left:
            for refused in rows.push(self._handle, handle):
                self._refuse(refused)
            if rows.left:
                self._wait_for_room()
        self.count += batch.num_rows
        self._look()

    def _send_again(self, messages: list[Message]) -> None:
        """A group that was refused as part of a larger one."""
        arguments = Arguments(self._topic(messages[0].topic))
        for each in messages:
            value, key = ((0, 0) if data is None else (address(data), len(data)) for data in (each.value, each.key))
            code = self._produce(arguments.set(value, key, each.partition, each.timestamp, each.headers, each.number))
            if code:
                self._refuse(each._replace(code=code))

    def _produce(self, arguments: Arguments) -> int:
        """What the library has against it; 0: it is on its way."""
        while True:
            code = native.produce(self._handle, arguments)
            if code != QUEUE_FULL:
                return code
            self._wait_for_room()

    def _topic(self, name: str) -> int:
        """0: no topic can have this name."""
        found = self._topics.get(name)
        if found is None:
            found = self._calls.rd_kafka_topic_new(self._handle, name.encode(), None) or 0
            if found:
                self._topics[name] = found
        return found

    def _wait_for_room(self) -> None:
        """Back-pressure: the broker is slower than the source."""
        self._serve(100)
        self.check()
        if not self._may_go_on():
            raise DeliveryFailed("Given up on while the producer's queue was full")

    def _refuse(self, message: Message) -> None:
        """The library does not even send it."""
        reason = native.words(message.code)
        if message.code not in _OF_THE_RECORD:
            raise DeliveryFailed(f"Unrecoverable exception trying to send: {reason}, record for topic {message.topic}")
        self._refused.append(Refused(message, reason))

    def _refuse_all(self, topic: str, rows: pa.RecordBatch) -> None:
        """There can be no such topic."""
        for key, value in zip(*(column(rows, name).to_pylist() for name in ("key", "value")), strict=True):
            self._refuse(Message(_INVALID_TOPIC, self.count, topic, native.ANY_PARTITION, key, value))
            self.count += 1

    # --- what Kafka answered ------------------------------------------------------------------------------------------

    def _serve(self, milliseconds: int) -> None:
        """Looks at what failed; waits for that long for something to look at."""
        calls = self._calls
        while event := calls.rd_kafka_queue_poll(self._queue, milliseconds):
            kind = calls.rd_kafka_event_type(event)
            if kind == native.EVENT_DELIVERY:
                while message := calls.rd_kafka_event_message_next(event):
                    code = native.error_of(message)
                    if code and code not in _PURGED:
                        self._returned(native.message_of(message))
            elif kind == native.EVENT_ERROR:
                text = calls.rd_kafka_event_error_string(event).decode()
                if calls.rd_kafka_event_error_is_fatal(event):
                    self._fail(text)
                else:
                    self._complaints.say(text)
            calls.rd_kafka_event_destroy(event)
            milliseconds = 0

    def _returned(self, message: Message) -> None:
        """Kafka did not take a message. Whatever can be put right by trying again, the library has tried."""
        fatal = native.fatal_error(self._handle)
        if fatal is not None:  # and then this is not the record's fault
            self._fail(fatal[1])
        elif message.code != _TOO_LARGE or not self._oversize.takes(message):
            self._refused.append(Refused(message, native.words(message.code)))

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or DeliveryFailed(f"The producer failed for good: {reason}")

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure
        while self._refused:
            self._on_refused(self._refused.popleft())

    def _look(self) -> None:
        self._serve(0)
        self.check()
        if self._oversize:
            self._settle()

    def _settle(self) -> None:
        """Waits for Kafka's answer to all that was sent, for as long as it takes."""
        while not self.flush(1.0):
            if not self._may_go_on():
                raise DeliveryFailed("Given up on while Kafka was slow to take what it had refused in larger batches")

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has everything that it takes; False when it has not within this time."""
        deadline = time.monotonic() + seconds
        while True:
            if self._handle:
                self._serve(0)
            self.check()
            if self.outstanding > 0:
                left = deadline - time.monotonic()
                if left <= 0 or not self._may_go_on():
                    return False
                # With events, the library's flush only wakes up what lingers; what failed is served above.
                self._calls.rd_kafka_flush(self._handle, int(min(left, 0.1) * 1000))
            elif self._oversize:
                for topic in self._oversize.returned:
                    known = self._oversize.limit(topic)
                    self._learn(topic)  # it takes less than it did, or could not be asked before
                    if known is None and self._oversize.limit(topic) is not None:
                        log.warning("Records of %s may be out of order: it takes smaller batches than it did", topic)
                self._send_again(self._oversize.group())
            else:
                return True

    @property
    def outstanding(self) -> int:
        return int(self._calls.rd_kafka_outq_len(self._handle)) if self._handle else 0

    @property
    def unanswered(self) -> int:
        """Rows that Kafka has not acknowledged, and of which nobody was told that it refused them."""
        return self.outstanding + len(self._oversize) + len(self._refused)

    def trouble(self, since: float) -> str | None:
        """What its brokers were last complained about after that moment of the monotonic clock. From any thread."""
        return self._complaints.since(since)
