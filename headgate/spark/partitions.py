"""The partitions of a sink task: its consumer in the group, where it stands in each, what it has committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headgate.clients import QUIET, ClientKind, translate
from headgate.model import Config, TopicPartition

log = logging.getLogger(__name__)

_ASK_S: Final = 10.0
"""How long a question to the broker may take."""

OnChange = Callable[[Sequence[TopicPartition]], None]


class Partitions:
    """A real consumer in the sink's group. One thread uses it; rebalances happen inside `fetch` and `keep_alive`."""

    def __init__(self, config: Config, opened: OnChange, closing: OnChange, lost: OnChange) -> None:
        from confluent_kafka import Consumer

        translated = translate(ClientKind.CONSUMER, config)
        ignored = [key for key in translated.ignored if key != "max.poll.records"]
        if ignored:
            log.info("Consumer settings without meaning here are ignored: %s", ", ".join(ignored))
        settings: dict[str, Any] = {**QUIET, "allow.auto.create.topics": True, **translated.config}
        settings["enable.auto.commit"] = False
        settings["enable.auto.offset.store"] = False
        settings["error_cb"] = self._on_error
        strategy = settings.setdefault("partition.assignment.strategy", "range,roundrobin")
        self._cooperative = "cooperative" in strategy
        self._from_end = settings.get("auto.offset.reset", "earliest") in ("latest", "largest", "end")
        self._committed_only = config.get("isolation.level") == "read_committed"
        self._consumer = Consumer(settings, logger=log)
        self._opened, self._closing, self._lost = opened, closing, lost
        self.positions: dict[TopicPartition, int] = {}
        """Of every assigned partition: the offset after the last record that was put."""
        self.committed: dict[TopicPartition, int] = {}
        self.failure: Exception | None = None
        self._paused = False

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        # librdkafka takes what begins with ^ for a pattern, and Connect's pattern must match the whole name.
        wanted = [f"^(?:{pattern})$"] if pattern else list(topics)
        self._consumer.subscribe(wanted, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def fetch(self, most: int, seconds: float) -> list[Any]:
        """What has arrived, at once if anything has; else what arrives within `seconds`. Raises fatal errors."""
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
            if self._good(message):
                raise AssertionError("a record came from a paused partition")
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
        log.warning("Consumer: %s", error.str())
        return False

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            from confluent_kafka import KafkaException

            self.failure = KafkaException(error)
        else:
            log.warning("Consumer: %s", error.str())

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
            self._consumer.seek(each)
        self.positions |= offsets

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Waits for the broker. Raises KafkaException."""
        self._consumer.commit(offsets=_native(offsets), asynchronous=False)
        self.committed |= offsets

    def ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """The first offset and the one after the last, of every assigned partition, asked of the broker."""
        if self._committed_only:
            return self._stable_ends()
        return {
            where: self._consumer.get_watermark_offsets(native, timeout=_ASK_S)
            for where, native in zip(self.positions, _native(self.positions), strict=True)
        }

    def _stable_ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """Readers of committed records may only go up to the oldest open transaction; librdkafka knows that end once
        it has fetched."""
        found = {}
        for where, native in zip(self.positions, _native(self.positions), strict=True):
            low, _ = self._consumer.get_watermark_offsets(native, timeout=_ASK_S)
            found[where] = (low, self.positions[where])
        return found

    def lag(self) -> int:
        """Of the partition furthest behind, by what the consumer already knows."""
        most = 0
        for where, native in zip(self.positions, _native(self.positions), strict=True):
            low_high = self._consumer.get_watermark_offsets(native, cached=True)
            if low_high is not None and low_high[1] >= 0:
                most = max(most, low_high[1] - self.positions[where])
        return most

    def close(self) -> None:
        self._consumer.close()

    # --- rebalances ---------------------------------------------------------------------------------------------------

    def _on_assign(self, _: Any, natives: list[Any]) -> None:
        try:
            starts = self._starts(natives)
        except Exception as error:  # raised inside librdkafka's callback it would be lost
            self.failure = error
            return
        for native in natives:
            native.offset = starts[_ours(native)]
        if self._cooperative:
            self._consumer.incremental_assign(natives)
        else:
            self._consumer.assign(natives)
        self.positions |= starts
        if self._paused:
            self.pause()
        self._guarded(self._opened, list(starts))

    def _starts(self, natives: list[Any]) -> dict[TopicPartition, int]:
        """Where to begin: the group's offset, else the end that `auto.offset.reset` names."""
        starts = {}
        for native in self._consumer.committed(natives, timeout=_ASK_S) if natives else ():
            where = _ours(native)
            low, high = self._consumer.get_watermark_offsets(native, timeout=_ASK_S)
            offset = native.offset
            if offset >= 0:
                self.committed[where] = offset
            if offset < 0 or not low <= offset <= high:
                if offset >= 0:
                    log.warning("Offset %d of %s is outside %d to %d: starting over", offset, where, low, high)
                offset = high if self._from_end else low
            starts[where] = offset
        return starts

    def _on_revoke(self, _: Any, natives: list[Any]) -> None:
        gone = [_ours(native) for native in natives]
        self._guarded(self._closing, [where for where in gone if where in self.positions])
        self._drop(gone, natives)

    def _on_lost(self, _: Any, natives: list[Any]) -> None:
        gone = [_ours(native) for native in natives]
        log.warning("Partitions were lost: %s", ", ".join(map(str, gone)))
        self._guarded(self._lost, [where for where in gone if where in self.positions])
        self._drop(gone, natives)

    def _drop(self, gone: Sequence[TopicPartition], natives: list[Any]) -> None:
        for where in gone:
            self.positions.pop(where, None)
            self.committed.pop(where, None)
        if self._cooperative:
            self._consumer.incremental_unassign(natives)
        else:
            self._consumer.unassign()

    def _guarded(self, callback: OnChange, partitions: Sequence[TopicPartition]) -> None:
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
