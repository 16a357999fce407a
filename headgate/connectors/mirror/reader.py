"""MirrorReader: a consumer that reads the partitions of one task, from where it is told."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.mirror.offset_policy import Begin, OffsetPolicy
from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.log import Complaints

log = logging.getLogger(__name__)

_ASK_S: Final = 1.0
_FAST: Final = {
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 65_536,
}
"""librdkafka's defaults pause for a second when a queue is full, which reading in batches makes it often."""
_DEFAULTS: Final = {"isolation.level": "read_committed", "allow.auto.create.topics": "false"}
_OURS: Final = {"enable.auto.commit": False, "enable.auto.offset.store": False, "auto.offset.reset": "error"}


class MirrorReader:
    """`settings` are by Apache's names. It is never a member of its group: partitions are assigned to it. One thread
    uses it."""

    def __init__(self, settings: Mapping[str, str], group: str) -> None:
        """Raises ClientConfigError. Asks nothing of a broker yet."""
        from confluent_kafka import Consumer, KafkaError

        translated = translate(ClientKind.CONSUMER, {**_DEFAULTS, **settings, "group.id": group})
        if translated.ignored:
            log.info("Settings below source. without meaning here are ignored: %s", ", ".join(translated.ignored))
        self._complaints = Complaints(log, "The cluster that is read")
        self._lost: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION)
        self._refusals: Final = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
        self._consumer = Consumer({**USUAL, **_FAST, **translated.config, **_OURS, "error_cb": self._complain})
        self.group_metadata: object = self._consumer.consumer_group_metadata()
        """It does not change, as it is of no member."""
        self.lost: set[TopicPartition] = set()
        """Partitions that have no such offset, as it turned out. They are not read until they are assigned again."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """These, from there on, and no others."""
        self.lost.clear()
        self._consumer.assign([_native(where, at) for where, at in positions.items()])

    def fetch(self, most: int, seconds: float) -> list[Any]:
        """What has arrived, at once if anything has; else what arrives within `seconds`. Raises ConnectError."""
        messages = self._consumer.consume(most, 0)
        if not messages:
            first = self._consumer.poll(seconds)
            if first is not None:
                messages = [first, *self._consumer.consume(most - 1, 0)]
        return [message for message in messages if self._good(message)]

    def close(self) -> None:
        self._consumer.close()

    def _good(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() in self._lost and message.topic() is not None:
            self.lost.add(TopicPartition(message.topic(), message.partition()))
        elif error.code() in self._refusals and message.topic() is not None:
            raise ConnectError(f"Topic {message.topic()} may not be read: {error.str()}")
        else:
            self._complain(error)
        return False

    def _complain(self, error: Any) -> None:
        self._complaints.say(error.str())

    # --- where to begin -----------------------------------------------------------------------------------------------

    def bounds(self, where: TopicPartition) -> tuple[int, int] | None:
        """The first offset that a partition has, and the one after its last that may be read; None: no answer."""
        from confluent_kafka import KafkaException

        try:
            found = self._consumer.get_watermark_offsets(_native(where), timeout=_ASK_S)
        except KafkaException as error:
            self._complaints.say(f"where {where} begins and ends is not known yet: {error.args[0].str()}")
            return None
        return (found[0], found[1]) if found is not None else None

    def wanted(self, policy: OffsetPolicy, places: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """What the group or the clock says, where the policy asks them; None: nothing. Those that there was no answer
        for are left out."""
        from confluent_kafka import KafkaException

        if policy.begin not in (Begin.COMMITTED, Begin.TIMESTAMP):
            return dict.fromkeys(places)
        try:
            if policy.begin is Begin.COMMITTED:
                found = self._consumer.committed([_native(where) for where in places], timeout=_ASK_S)
            else:
                asked = [_native(where, policy.timestamp) for where in places]
                found = self._consumer.offsets_for_times(asked, timeout=_ASK_S)
        except KafkaException as error:
            self._complaints.say(f"where to begin is not known yet: {error.args[0].str()}")
            return {}
        known = [each for each in found if each.error is None]
        return {TopicPartition(e.topic, e.partition): e.offset if e.offset >= 0 else None for e in known}


def _native(where: TopicPartition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition as Native

    return Native(where.topic, where.partition) if offset is None else Native(where.topic, where.partition, offset)
