"""A consumer in a group: fetches records as columns, tells of partitions that come and go, commits what it is told."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Native

from headgate.java.regex import compiled
from headgate.kafka.asking import NOT_YET, Asker
from headgate.kafka.messages import Messages
from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.kafka.statistics import watched
from headgate.log import Complaints
from headgate.model import BUFFER_BYTES, Config, PartitionStart, TopicPartition

log = logging.getLogger(__name__)

_ASK_S: Final = 10.0
"""How long a question to the broker may take."""
_HEARD_S: Final = 6.0
"""A broker that answered so lately is there: one that is complained of is asked every five seconds."""
_COMPLAINED_S: Final = 30.0
"""A complaint is that old at most: clients whose broker is away try it every ten seconds at least, and say so."""
_FRESH_S: Final = 30.0
"""For so long after it was asked, a broker that nobody complains of need not be asked again where nothing is new."""
_LAG_S: Final = 2.0
"""How long the question may take that is only asked to tell how far behind a task is."""
_PATIENT: Final = Asker(tries=6)
"""A broker that is away for a moment, or not yet what it will be, does not fail the task."""
_MANY: Final = 10_000
"""Messages thrown away at once, when nobody wants them any more."""
_SEEK_S: Final = 0.05
_SEEK_TIMES: Final = 40
_FAST: Final = {
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 1_000,
    # Of each partition: as much as a batch. What waits is thrown away when executors read the rest of a long backlog.
    "queued.min.messages": 20_000,
    "socket.nagle.disable": True,
}
"""librdkafka's defaults pause for a second when a queue is full, which a loop of batches makes it often, and let small
packets wait, as Java's client does not. A fetch ends as soon as there is a record: how long it may last only says how
often a client with nothing to do is at work, twice a second by default."""
_METADATA_MS: Final = 300_000
"""Java's default of metadata.max.age.ms: how often topics that match a pattern are looked for."""
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The topics that brokers say are their own: no pattern means them."""


class GroupConsumer:
    """One thread uses it; rebalances happen inside `fetch` and `keep_alive`, and what they raise comes out there."""

    def __init__(self, config: Config, rebalances: Any, buffer_bytes: int = BUFFER_BYTES) -> None:
        """`rebalances` is told of partitions: `on_assigned(starts)`, which says where to begin with each, `on_revoked`
        and `on_lost(partitions)`. `buffer_bytes`: most that is fetched ahead."""
        translated = translate(ClientKind.CONSUMER, config)
        ignored = [key for key in translated.ignored if key != "max.poll.records"]
        if ignored:
            log.info("Consumer settings without meaning here are ignored: %s", ", ".join(ignored))
        room = {"queued.max.messages.kbytes": buffer_bytes // 1024}
        settings: dict[str, Any] = {**USUAL, **_FAST, **room, "allow.auto.create.topics": True, **translated.config}
        settings["enable.auto.commit"] = False
        settings["enable.auto.offset.store"] = False
        settings["error_cb"] = self._on_error
        strategy = settings.setdefault("partition.assignment.strategy", "range,roundrobin")
        self._cooperative = "cooperative" in strategy
        self._from_end = settings.get("auto.offset.reset", "earliest") in ("latest", "largest", "end")
        self._complaints = Complaints(log, "Consumer")
        self._consumer = Consumer(watched(ClientKind.CONSUMER, settings))
        self._rebalances = rebalances
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._heard = time.monotonic()
        """When a broker answered last, as far as this is noticed."""
        self._servers = config.get("bootstrap.servers", "Kafka")
        self._committing = math.inf
        """Since when a commit waits for its answer, which librdkafka does for as long as it takes."""
        self._failure: Exception | None = None
        self._asked = -math.inf
        """When a broker was asked last for the ends of partitions."""
        self._paused = False
        self._fetches_all = True
        self._closed = False
        self._pattern: re.Pattern[str] | None = None
        self._subscribed: tuple[str, ...] = ()
        self._refresh_s = int(config.get("metadata.max.age.ms", _METADATA_MS)) / 1000
        self._next_refresh = 0.0

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        """To these topics, or to those that the pattern matches, now and later."""
        self._pattern = compiled(pattern) if pattern else None
        if self._pattern is None:
            self._subscribe(topics)
        else:
            self._refresh()

    def _subscribe(self, topics: Sequence[str]) -> None:
        self._subscribed = tuple(topics)
        if not topics:
            self._consumer.unsubscribe()  # librdkafka takes no empty list
            return
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _refresh(self) -> None:
        """Looks for topics that match. librdkafka could, but its patterns are not those that Connect's users write."""
        assert self._pattern is not None
        self._next_refresh = time.monotonic() + self._refresh_s
        try:
            known = self._consumer.list_topics(timeout=_ASK_S).topics
        except KafkaException as error:
            log.warning("Topics could not be listed, will try again: %s", error.args[0].str())
            self._next_refresh = time.monotonic() + min(_ASK_S, self._refresh_s)
            return
        found = tuple(topic for topic in sorted(known.keys() - _INTERNAL) if self._pattern.fullmatch(topic))
        if found != self._subscribed:
            log.info("The pattern matches %s", ", ".join(found) or "no topic")
            self._subscribe(found)

    def fetch(self, most: int, seconds: float) -> Messages | None:
        """What has arrived, at once if anything has; else what arrives within `seconds`. Raises fatal errors."""
        if self._pattern is not None and time.monotonic() >= self._next_refresh:
            self._refresh()
        # Not poll(): that one looks five times a second whether a signal has come.
        messages = self._consumer.consume(1, seconds) if seconds > 0 else []
        if messages or seconds <= 0:
            messages += self._consumer.consume(most - len(messages), 0)
        self._check()
        if messages:
            self._heard = time.monotonic()
        good = [message for message in messages if self._good(message)]
        return Messages(good) if good else None

    def keep_alive(self) -> None:
        """Takes part in the group while nothing is fetched; the partitions must be paused."""
        for message in self._consumer.consume(1, 0):
            if self._good(message):  # it was on its way when the partition was paused
                self._consumer.seek(Native(message.topic() or "", message.partition() or 0, message.offset() or 0))
        self._check()

    def _check(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _good(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.fatal():
            raise KafkaException(error)
        self._complain(error)
        return False

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            self._failure = KafkaException(error)
        else:
            self._complain(error)

    def _complain(self, error: Any) -> None:
        self._complaints.say(error.str(), once=error.code() in NOT_YET)

    # --- pausing and moving -------------------------------------------------------------------------------------------

    def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """These; None: all, and those that come."""
        self._paused = self._paused or partitions is None
        self._fetches_all = False
        chosen = self._assigned if partitions is None else partitions
        if chosen:
            self._consumer.pause(_natives(chosen))

    def resume(self, but: frozenset[TopicPartition] = frozenset()) -> None:
        if self._assigned - but:
            self._consumer.resume(_natives(self._assigned - but))
        self._paused = False
        self._fetches_all = not self._assigned & but

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The next fetch of these partitions begins here."""
        for each in _native(offsets):
            self._seek(each)

    def _seek(self, native: Any) -> None:
        for left in reversed(range(_SEEK_TIMES)):
            try:
                self._consumer.seek(native)
                return
            except KafkaException as error:
                # Of one that was assigned just now, librdkafka has yet to begin to fetch.
                if left == 0 or error.args[0].code() != KafkaError._STATE:
                    raise
                time.sleep(_SEEK_S)

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Waits for the broker. Raises KafkaException, also when it did not take some of them."""
        self._committing = time.monotonic()
        try:
            answered = self._consumer.commit(offsets=_native(offsets), asynchronous=False) or ()
        finally:
            self._committing = math.inf
        for done in answered:
            if done.error is not None:
                raise KafkaException(KafkaError(done.error.code(), f"{_ours(done)}: {done.error.str()}"))

    def ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """The first offset and the one after the last that may be read, of every assigned partition, asked of the
        broker; a reader of committed records is told the end of those."""
        return {
            _ours(native): self._consumer.get_watermark_offsets(native, timeout=_ASK_S)
            for native in _natives(self._assigned)
        }

    def lag(self, positions: Mapping[TopicPartition, int], *, ask: bool) -> int | None:
        """Of the partition furthest behind; `ask`: the broker, or else by what came with the last records. None when
        that is not known of all of them: a broker that is away leaves behind what it said last."""
        known = _furthest(positions, self._known_ends(positions))
        if not ask or (known == 0 and self._fresh()):
            return known
        try:
            return _furthest(positions, self._asked_ends(positions))
        except KafkaException as error:
            # librdkafka may lose sight of a broker that was away for a moment, and then complains no more itself.
            self._complaints.note(error.args[0].str())
            return None

    def _fresh(self) -> bool:
        """Whether what it knows of the ends is not old: each fetch brings them, also one that brings no record."""
        lately = self._asked > time.monotonic() - _FRESH_S
        return lately and self._fetches_all and self._complaints.since(self._asked) is None

    def _asked_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """All of them at once; what it has no answer for has a negative offset."""
        asked = _native(dict.fromkeys(partitions, OFFSET_END))
        found = self._consumer.offsets_for_times(asked, timeout=_LAG_S) if asked else ()
        self._heard = self._asked = time.monotonic()
        return {_ours(native): native.offset for native in found if native.error is None}

    def _known_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        known = ((each, self._consumer.get_watermark_offsets(each, cached=True)) for each in _natives(partitions))
        return {_ours(native): low_high[1] for native, low_high in known if low_high is not None}

    def trouble(self) -> str | None:
        """What keeps it from fetching, in one line. From any thread."""
        now = time.monotonic()
        if now - self._committing > _HEARD_S:  # nobody hears what it complains of meanwhile
            return f"{self._servers} has not answered a commit of offsets"
        if self._heard > now - _HEARD_S:
            return None
        return self._complaints.since(max(self._heard, now - _COMPLAINED_S))

    def close(self) -> None:
        """Leaves the group. The partitions must have been given up before: nobody is told of it.

        It goes step by step: a rebalance that librdkafka tells of while it closes may find nobody left to take its
        answer, and `unassign` then waits for ever, with Python's lock in its hand (librdkafka's issue 4884)."""
        self._closed = True
        try:
            self._consumer.unsubscribe()
            while self._consumer.consume(_MANY, 0):  # serves rebalances that were on their way, the last one among them
                pass
        finally:
            self._consumer.close()

    def abandon(self) -> None:
        """The same, but nobody waits for it: the broker may be what does not answer."""
        threading.Thread(target=self.close, name="leave-group", daemon=True).start()

    # --- rebalances ---------------------------------------------------------------------------------------------------

    def _on_assign(self, _: Any, natives: list[Any]) -> None:
        if self._closed:  # taken as they come, and given back at once: nothing is asked of a broker about them
            self._take(natives)
            return
        try:
            starts = self._starts(natives)
            self._assigned |= starts.keys()
            begin: Mapping[TopicPartition, int] = self._rebalances.on_assigned(starts) if starts else {}
        except Exception as error:  # raised inside librdkafka's callback it would be lost
            self._failure = self._failure or error
            self._assigned -= set(map(_ours, natives))
            return
        for native in natives:
            native.offset = begin[_ours(native)]
        self._take(natives)
        if self._paused:
            self.pause()

    def _take(self, natives: list[Any]) -> None:
        if self._cooperative:
            self._consumer.incremental_assign(natives)
        else:
            self._consumer.assign(natives)

    def _starts(self, natives: list[Any]) -> dict[TopicPartition, PartitionStart]:
        """Where to begin: the group's offset, else the end that `auto.offset.reset` names."""
        starts = {}
        committed = partial(self._consumer.committed, natives, timeout=_ASK_S)
        for native in _PATIENT.ask(committed, NOT_YET) if natives else ():
            where = _ours(native)
            low, high = _PATIENT.ask(partial(self._consumer.get_watermark_offsets, native, timeout=_ASK_S), NOT_YET)
            offset = native.offset
            known = low <= offset <= high
            if not known:
                if offset >= 0:
                    log.warning("Offset %d of %s is outside %d to %d: starting over", offset, where, low, high)
                offset = high if self._from_end else low
            starts[where] = PartitionStart(offset, known, low, high)
        return starts

    def _on_revoke(self, _: Any, natives: list[Any]) -> None:
        if not self._closed:
            self._tell(self._rebalances.on_revoked, natives)
        self._drop(natives)

    def _on_lost(self, _: Any, natives: list[Any]) -> None:
        log.warning("Partitions were lost: %s", ", ".join(str(_ours(native)) for native in natives))
        self._tell(self._rebalances.on_lost, natives)
        self._drop(natives)

    def _tell(self, listener: Callable[[Sequence[TopicPartition]], None], natives: list[Any]) -> None:
        held = [where for where in map(_ours, natives) if where in self._assigned]
        try:
            if held:
                listener(held)
        except Exception as error:
            self._failure = self._failure or error

    def _drop(self, natives: list[Any]) -> None:
        if natives:  # librdkafka remembers a pause even when a partition goes and comes back
            self._consumer.resume(natives)
        self._assigned -= set(map(_ours, natives))
        if self._cooperative:
            self._consumer.incremental_unassign(natives)
        else:
            self._consumer.unassign()


def _furthest(positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int | None:
    """How far behind its end one is at most; None when not all of them are known."""
    if not positions or any(ends.get(where, -1) < 0 for where in positions):
        return None
    return max(max(ends[where] - offset, 0) for where, offset in positions.items())


def _natives(partitions: Iterable[TopicPartition]) -> list[Any]:
    return _native(dict.fromkeys(partitions, -1001))


def _native(offsets: Mapping[TopicPartition, int]) -> list[Any]:
    return [Native(where.topic, where.partition, offset) for where, offset in offsets.items()]


def _ours(native: Any) -> TopicPartition:
    return TopicPartition(native.topic, native.partition)
