"""The partitions of a sink task: its consumer in the group, where it stands in each, what it has committed."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from headgate.api.errors import ConnectError
from headgate.kafka.settings import QUIET, ClientKind, Complaints, translate
from headgate.model import Config, TopicPartition

log = logging.getLogger(__name__)

_ASK_S: Final = 10.0
"""How long a question to the broker may take."""
_ASK_TIMES: Final = 6
_ASK_AGAIN_S: Final = 1.0
_SEEK_S: Final = 0.05
_SEEK_TIMES: Final = 40
_FAST: Final = {
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 65_536,
}
"""librdkafka's defaults pause for a second when a queue is full, which a loop of batches makes it often."""
_METADATA_MS: Final = 300_000
"""Java's default of metadata.max.age.ms: how often topics that match a pattern are looked for."""

OnOpen = Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]]
"""Told which partitions were assigned; answers where to begin instead, where it knows better than the group."""
OnClose = Callable[[Sequence[TopicPartition]], None]


class _Start(NamedTuple):
    """Where the group begins with a partition, and what the topic has of it."""

    offset: int
    known: bool
    """Whether the group has this offset; else it is an end of the topic."""
    low: int
    high: int

    def checked(self, where: TopicPartition, wanted: int) -> int:
        """An offset that the task has, as far as the topic has it too. Raises ConnectError."""
        if wanted > self.high:
            raise ConnectError(
                f"The task wants to go on at offset {wanted} of {where}, but the topic ends at {self.high}: it was made"
                " anew, or has lost records. To begin elsewhere, stop the connector, alter or reset its offsets, and"
                " resume it"
            )
        if wanted < self.low:
            log.warning("Offsets %d to %d of %s are gone before the task saw them", wanted, self.low - 1, where)
        return max(wanted, self.low)


class Partitions:
    """A real consumer in the sink's group. One thread uses it; rebalances happen inside `fetch` and `keep_alive`."""

    def __init__(self, config: Config, opened: OnOpen, closing: OnClose, lost: OnClose) -> None:
        from confluent_kafka import Consumer

        translated = translate(ClientKind.CONSUMER, config)
        ignored = [key for key in translated.ignored if key != "max.poll.records"]
        if ignored:
            log.info("Consumer settings without meaning here are ignored: %s", ", ".join(ignored))
        settings: dict[str, Any] = {**QUIET, **_FAST, "allow.auto.create.topics": True, **translated.config}
        settings["enable.auto.commit"] = False
        settings["enable.auto.offset.store"] = False
        settings["error_cb"] = self._on_error
        strategy = settings.setdefault("partition.assignment.strategy", "range,roundrobin")
        self._cooperative = "cooperative" in strategy
        self._from_end = settings.get("auto.offset.reset", "earliest") in ("latest", "largest", "end")
        self._complaints = Complaints(log, "Consumer")
        self._consumer = Consumer(settings)
        self._opened, self._closing, self._lost = opened, closing, lost
        self.positions: dict[TopicPartition, int] = {}
        """Of every assigned partition: the offset after the last record that was put."""
        self.safe: dict[TopicPartition, int] = {}
        """Where to go back to: what the task let pass last, or where it began."""
        self.committed: dict[TopicPartition, int] = {}
        """What the group has; where it has nothing, where it begins."""
        self.failure: Exception | None = None
        self._paused = False
        self._closed = False
        self._pattern: re.Pattern[str] | None = None
        self._subscribed: tuple[str, ...] = ()
        self._refresh_s = int(config.get("metadata.max.age.ms", _METADATA_MS)) / 1000
        self._next_refresh = 0.0

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        """To these topics, or to those that the pattern matches, now and later."""
        self._pattern = re.compile(pattern) if pattern else None
        if self._pattern is None:
            self._subscribe(topics)
        else:
            self._refresh()

    def _subscribe(self, topics: Sequence[str]) -> None:
        self._subscribed = tuple(topics)
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _refresh(self) -> None:
        """Looks for topics that match. librdkafka could, but its patterns are not those that Connect's users write."""
        from confluent_kafka import KafkaException

        assert self._pattern is not None
        self._next_refresh = time.monotonic() + self._refresh_s
        try:
            known = self._consumer.list_topics(timeout=_ASK_S).topics
        except KafkaException as error:
            log.warning("Topics could not be listed, will try again: %s", error.args[0].str())
            return
        found = sorted(topic for topic in known if self._pattern.fullmatch(topic) and not topic.startswith("__"))
        if found and tuple(found) != self._subscribed:
            log.info("The pattern matches %s", ", ".join(found))
            self._subscribe(found)

    def fetch(self, most: int, seconds: float) -> list[Any]:
        """What has arrived, at once if anything has; else what arrives within `seconds`. Raises fatal errors."""
        if self._pattern is not None and time.monotonic() >= self._next_refresh:
            self._refresh()
        messages = self._consumer.consume(most, 0)
        if not messages and seconds > 0:
            first = self._consumer.poll(seconds)
            if first is not None:
                messages = [first, *self._consumer.consume(most - 1, 0)]
        self.check()
        return [message for message in messages if self._good(message)]

    def keep_alive(self) -> None:
        """Takes part in the group while nothing is fetched; the partitions must be paused."""
        for message in self._consumer.consume(1, 0):
            if self._good(message):  # it was on its way when the partition was paused
                self._consumer.seek(_native({_where(message): int(message.offset() or 0)})[0])
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _good(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.fatal():
            from confluent_kafka import KafkaException

            raise KafkaException(error)
        self._complaints.say(error.str())
        return False

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            from confluent_kafka import KafkaException

            self.failure = KafkaException(error)
        else:
            self._complaints.say(error.str())

    # --- pausing and moving -------------------------------------------------------------------------------------------

    def pause(self) -> None:
        if self.positions:
            self._consumer.pause(_native(self.positions))
        self._paused = True

    def resume(self, but: frozenset[TopicPartition] = frozenset()) -> None:
        if self.positions:
            self._consumer.resume([each for each in _native(self.positions) if _ours(each) not in but])
        self._paused = False

    def pause_some(self, partitions: Sequence[TopicPartition]) -> None:
        self._consumer.pause(_native(dict.fromkeys(partitions, -1001)))

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The next fetch of these partitions begins here."""
        for each in _native(offsets):
            self._seek(each)
        self.positions |= offsets

    def go_back(self) -> None:
        """To `positions`: what was fetched beyond them comes again."""
        self.seek(dict(self.positions))

    def _seek(self, native: Any) -> None:
        from confluent_kafka import KafkaError, KafkaException

        for left in reversed(range(_SEEK_TIMES)):
            try:
                self._consumer.seek(native)
                return
            except KafkaException as error:
                # Of one that was assigned just now, librdkafka has yet to begin to fetch.
                if left == 0 or error.args[0].code() != KafkaError._STATE:
                    raise
                time.sleep(_SEEK_S)

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The same, and there is no way back behind it: the task knows what it has."""
        self.seek(offsets)
        self.safe |= offsets

    def begin_anew(self) -> None:
        """The task gets the partitions that it has as if they had just come; to be followed by `go_back`."""
        own = self._opened(list(self.positions))
        self.positions |= {**self.safe, **own}
        self.safe |= own

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Waits for the broker. Raises KafkaException."""
        self._consumer.commit(offsets=_native(offsets), asynchronous=False)
        self.committed |= offsets

    def ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """The first offset and the one after the last that may be read, of every assigned partition, asked of the
        broker; a reader of committed records is told the end of those."""
        return {
            where: self._consumer.get_watermark_offsets(native, timeout=_ASK_S)
            for where, native in zip(self.positions, _native(self.positions), strict=True)
        }

    def lag(self) -> int:
        """Of the partition furthest behind, by what the consumer already knows."""
        most = 0
        for where, native in zip(self.positions, _native(self.positions), strict=True):
            low_high = self._consumer.get_watermark_offsets(native, cached=True)
            if low_high is not None and low_high[1] >= 0:
                most = max(most, low_high[1] - self.positions[where])
        return most

    def close(self) -> None:
        """Leaves the group. The partitions must have been given up before: nobody is told of it."""
        self._closed = True
        self._consumer.close()

    def abandon(self) -> None:
        """The same, but nobody waits for it: the broker may be what does not answer."""
        threading.Thread(target=self.close, name="leave-group", daemon=True).start()

    # --- rebalances ---------------------------------------------------------------------------------------------------

    def _on_assign(self, _: Any, natives: list[Any]) -> None:
        try:
            starts = self._starts(natives)
            self.positions |= {where: start.offset for where, start in starts.items()}
            own = self._opened(list(starts)) if starts else {}
            self.positions |= {where: starts[where].checked(where, offset) for where, offset in own.items()}
            # An end of the topic where reading begins need not be committed; an offset that the task has is.
            self.committed |= {
                where: start.offset for where, start in starts.items() if start.known or where not in own
            }
            self.safe |= {where: self.positions[where] for where in starts}
        except Exception as error:  # raised inside librdkafka's callback it would be lost
            self.failure = self.failure or error
            self._forget(map(_ours, natives))  # what the task could not open it is not asked about
            return
        for native in natives:
            native.offset = self.positions[_ours(native)]
        if self._cooperative:
            self._consumer.incremental_assign(natives)
        else:
            self._consumer.assign(natives)
        if self._paused:
            self.pause()

    def _starts(self, natives: list[Any]) -> dict[TopicPartition, _Start]:
        """Where to begin: the group's offset, else the end that `auto.offset.reset` names."""
        starts = {}
        for native in self._patiently(lambda: self._consumer.committed(natives, timeout=_ASK_S)) if natives else ():
            where = _ours(native)
            low, high = self._patiently(partial(self._consumer.get_watermark_offsets, native, timeout=_ASK_S))
            offset = native.offset
            known = low <= offset <= high
            if not known:
                if offset >= 0:
                    log.warning("Offset %d of %s is outside %d to %d: starting over", offset, where, low, high)
                offset = high if self._from_end else low
            starts[where] = _Start(offset, known, low, high)
        return starts

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """A broker that is away for a moment, or not yet what it will be, does not fail the task."""
        from confluent_kafka import KafkaError, KafkaException

        passing = {  # librdkafka does not call these retriable, as Java does
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.FENCED_LEADER_EPOCH,
            KafkaError.OFFSET_NOT_AVAILABLE,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
        }
        for left in reversed(range(_ASK_TIMES)):
            try:
                return ask()
            except KafkaException as error:
                problem = error.args[0]
                if left == 0 or not (problem.retriable() or problem.code() in passing):
                    raise
                log.warning("The broker cannot answer and is asked again: %s", problem.str())
                time.sleep(_ASK_AGAIN_S)
        raise AssertionError

    def _on_revoke(self, _: Any, natives: list[Any]) -> None:
        gone = [_ours(native) for native in natives]
        if not self._closed:
            self._guarded(self._closing, [where for where in gone if where in self.positions])
        self._drop(gone, natives)

    def _on_lost(self, _: Any, natives: list[Any]) -> None:
        gone = [_ours(native) for native in natives]
        log.warning("Partitions were lost: %s", ", ".join(map(str, gone)))
        self._guarded(self._lost, [where for where in gone if where in self.positions])
        self._drop(gone, natives)

    def _drop(self, gone: Sequence[TopicPartition], natives: list[Any]) -> None:
        if natives:  # librdkafka remembers a pause even when a partition goes and comes back
            self._consumer.resume(natives)
        self._forget(gone)
        if self._cooperative:
            self._consumer.incremental_unassign(natives)
        else:
            self._consumer.unassign()

    def _forget(self, gone: Iterable[TopicPartition]) -> None:
        for where in gone:
            for offsets in (self.positions, self.safe, self.committed):
                offsets.pop(where, None)

    def _guarded(self, callback: OnClose, partitions: Sequence[TopicPartition]) -> None:
        try:
            if partitions:
                callback(partitions)
        except Exception as error:
            self.failure = self.failure or error


def _native(offsets: Mapping[TopicPartition, int]) -> list[Any]:
    from confluent_kafka import TopicPartition as Native

    return [Native(where.topic, where.partition, offset) for where, offset in offsets.items()]


def _ours(native: Any) -> TopicPartition:
    return TopicPartition(native.topic, native.partition)


def _where(message: Any) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())
