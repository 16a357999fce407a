"""OffsetLog: source offsets in an offsets topic.

A partition is known by its content, but Kafka knows keys by their bytes, and Java's workers may have written the same
partition with its fields in another order. So an offset is written under the key that is there; where several are, the
others are removed with it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError

from headgate.model import Offset, Partition
from headgate.runtime.ports import OffsetsLost
from headgate.storage.offset_records import decode_key, decode_offset, encode_key, encode_offset
from headgate.storage.offset_table import Offsets, identity
from headgate.storage.records import MalformedRecord
from headgate.storage.topic_log import Log, LogRecord, TopicGone
from headgate.storage.topic_writer import SendingWriter, Writer

_log: Final = logging.getLogger(__name__)

TIMEOUT_S: Final = 30.0


@dataclass(slots=True)
class _Known:
    """A partition with an offset."""

    partition: Partition | None
    offset: Offset | None = None
    keys: dict[bytes, Offset | None] = field(default_factory=dict)
    """All keys that have a value, the last written one last."""


class OffsetLog:
    """May be used from any thread. Reads see all that was in the topic when they began; they and writes take up to
    `timeout` seconds each, then raise ReadTimeout or WriteFailed."""

    def __init__(self, log: Log, writer: SendingWriter, *, timeout: float = TIMEOUT_S) -> None:
        self._topic_log = log
        self._writer: Writer = writer
        self._sender = writer
        self._timeout = timeout
        self._connectors: dict[str, dict[str, _Known]] = {}
        self._folding = threading.Lock()

    @property
    def topic(self) -> str:
        return self._topic_log.topic

    def written_by(self, writer: Writer) -> OffsetLog:
        """The same log, whose `put` leaves it to another writer: all of them or none, if that one is transactional."""
        made = copy(self)
        made._writer = writer
        return made

    def start(self, timeout: float = 60.0) -> None:
        """Returns when the topic has been read. Raises ReadTimeout."""
        self._topic_log.start(self._on_record, timeout)

    def begin_again(self, partitions: int) -> None:
        """Another topic has taken its place. What the last one said is known until that says something else."""
        self._topic_log.begin_again(partitions)

    def close(self) -> None:
        self._writer.close()
        self._topic_log.close()

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        """Raises InvalidOffset, ReadTimeout."""
        asked = [identity(partition) for partition in partitions]
        self._topic_log.read_to_end(self._timeout)
        with self._folding:
            known = self._connectors.get(connector, {})
            found = [known[each].offset if each in known else None for each in asked]
        return [None if offset is None else dict(offset) for offset in found]

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """In the order in which the partitions were first seen. The partition null has no place in a list. People wait
        for it: a Kafka that is away is not waited for. Raises ReadTimeout, KafkaAway, OffsetsLost."""
        try:
            self._topic_log.read_to_end(self._timeout, at_once=True)
        except TopicGone as gone:
            raise OffsetsLost(self.topic, self._known(connector)) from gone
        return self._known(connector)

    def _known(self, connector: str) -> list[tuple[Partition, Offset]]:
        with self._folding:
            return [
                (dict(each.partition), dict(each.offset))
                for each in self._connectors.get(connector, {}).values()
                if each.partition is not None and each.offset is not None
            ]

    def put(self, connector: str, offsets: Offsets) -> None:
        """None removes an offset. Kafka has all of them when this returns. Raises InvalidOffset, and then has written
        nothing, or WriteFailed, and then may have written some."""
        entries = self.entries(connector, offsets)
        if entries:
            self._writer.write(entries, self._timeout)

    def put_soon(self, connector: str, offsets: Offsets) -> None:
        """Without waiting; what fails is only logged. Raises InvalidOffset."""

        def told(error: KafkaError | None, _: int) -> None:
            if error is not None:
                _log.warning("An offset of %s was not written to topic %s: %s", connector, self.topic, error.str())

        for key, value in self.entries(connector, offsets):
            self._sender.send(key, value, told)

    def entries(self, connector: str, offsets: Offsets) -> list[tuple[bytes, bytes | None]]:
        """The records that say so, for whoever writes them in a transaction of its own. Of what is said twice, the last
        counts. Raises InvalidOffset."""
        last = {identity(partition): (partition, offset) for partition, offset in offsets}
        made: list[tuple[bytes, bytes | None]] = []
        with self._folding:
            known = self._connectors.get(connector, {})
            for which, (partition, offset) in last.items():
                present = list(known[which].keys) if which in known else []
                own = present.pop() if present else encode_key(connector, partition)
                made.append((own, None if offset is None else encode_offset(offset)))
                made += [(other, None) for other in present]
        return made

    # --- the log's thread ---------------------------------------------------------------------------------------------

    def _on_record(self, record: LogRecord) -> None:
        try:
            connector, partition = decode_key(record.key)
        except MalformedRecord as error:
            _log.warning("Record %d of %s-%d is ignored: %s", record.offset, self.topic, record.partition, error)
            return
        assert record.key is not None
        try:
            offset = decode_offset(record.value)
        except MalformedRecord as error:
            _log.warning("The offset of %r in topic %s is unreadable: %s", record.key, self.topic, error)
            offset = None
        with self._folding:
            self._fold(connector, partition, record.key, offset, removed=record.value is None)

    def _fold(
        self, connector: str, partition: Partition | None, key: bytes, offset: Offset | None, removed: bool
    ) -> None:
        which = identity(partition)
        partitions = self._connectors.setdefault(connector, {})
        known = partitions.get(which) or _Known(partition)
        known.keys.pop(key, None)
        if not removed:
            known.keys[key] = offset
            partitions[which] = known
        # What another key of the same content says is older, but it is what is left.
        known.offset = next((left for left in reversed(known.keys.values()) if left is not None), None)
        if not known.keys:
            partitions.pop(which, None)
        if not partitions:
            del self._connectors[connector]
